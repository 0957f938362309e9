//! containerd, isolated from others on the machine: own folders, own socket, own runc state.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::{Plan, folders};
use crate::files;
use crate::host;
use crate::images::catalog;
use crate::processes::Daemon;

/// The component's name.
pub const NAME: &str = "containerd";
/// The name of the pod network; also part of the names of files that CNI plugins write.
pub const CNI_NETWORK: &str = "quorate";

/// The process to run.
///
/// # Errors
/// If the configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let paths = plan.paths;
    folders([&paths.containerd("root"), &paths.containerd("state"), &paths.cni("conf")])?;
    let network = serde_json::to_string_pretty(&network(plan))?;
    files::write(&paths.cni("conf").join("10-quorate.conflist"), network)?;
    let config = plan.write("containerd.toml", configuration(plan, &installed("runc")?))?;
    let args = vec!["--config".into(), config.clone().into()];
    Ok(Daemon { component: NAME, program: installed("containerd")?, args, files: vec![config] })
}

fn installed(program: &str) -> Result<PathBuf> {
    host::program(program).with_context(|| format!("{program} is not installed"))
}

fn configuration(plan: &Plan<'_>, runc: &Path) -> String {
    let paths = plan.paths;
    let path = |folder| paths.containerd(folder).display().to_string();
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{opt}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE the score cannot be lowered.
  restrict_oom_score_adj = true
  # The pods' network namespaces are mounts below our state, found and removed with it.
  netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{plugins}"
  conf_dir = "{cni}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "{program}"
  Root = "{containers}"
  SystemdCgroup = false
"#,
        root = path("root"),
        state = path("state"),
        socket = paths.containerd_socket().display(),
        opt = path("opt"),
        pause = catalog::PAUSE,
        cni = paths.cni("conf").display(),
        plugins = host::CNI_PLUGINS,
        program = runc.display(),
        containers = path("runc"),
    )
}

/// Point-to-point links without masquerading: pod to pod, pod to Service, hairpin and host to
/// Service all work, and a Service without endpoints rejects connections immediately, as on any
/// cluster.
fn network(plan: &Plan<'_>) -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": CNI_NETWORK,
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "dataDir": plan.paths.cni("addresses"),
                "ranges": [[{ "subnet": plan.settings.network.pods }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
}
