//! containerd, apart from any other on the machine: own folders, own socket, own runc state.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::{Plan, folders};
use crate::files;
use crate::images::catalog;
use crate::machine;
use crate::processes::Daemon;

/// The part's name.
pub const NAME: &str = "containerd";
/// The name of the pods' network, which also names what the CNI plugins leave in their folders.
pub const CNI_NETWORK: &str = "quorate";

/// How it runs.
///
/// # Errors
/// If its configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let places = plan.places;
    folders([&places.containerd("root"), &places.containerd("state"), &places.cni("conf")])?;
    let network = serde_json::to_string_pretty(&network(plan))?;
    files::write(&places.cni("conf").join("10-quorate.conflist"), network)?;
    let config = plan.write("containerd.toml", configuration(plan, &installed("runc")?))?;
    let args = vec!["--config".into(), config.clone().into()];
    Ok(Daemon { part: NAME, program: installed("containerd")?, args, files: vec![config] })
}

fn installed(program: &str) -> Result<PathBuf> {
    machine::program(program).with_context(|| format!("{program} is not installed"))
}

fn configuration(plan: &Plan<'_>, runc: &Path) -> String {
    let places = plan.places;
    let path = |folder| places.containerd(folder).display().to_string();
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
        socket = places.containerd_socket().display(),
        opt = path("opt"),
        pause = catalog::PAUSE,
        cni = places.cni("conf").display(),
        plugins = machine::CNI_PLUGINS,
        program = runc.display(),
        containers = path("runc"),
    )
}

/// Point-to-point links without masquerading: pod to pod, pod to Service, hairpin and host to Service all
/// work, and a Service without endpoints refuses at once, as on any cluster.
fn network(plan: &Plan<'_>) -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": CNI_NETWORK,
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "dataDir": plan.places.cni("addresses"),
                "ranges": [[{ "subnet": plan.settings.network.pods }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
}
