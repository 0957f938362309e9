//! The kubelet of the one node: its configuration, its flags, its cgroup.

use anyhow::{Context, Result};
use serde_json::json;

use super::{Plan, flags, folders};
use crate::cgroups;
use crate::pki::key_pair;
use crate::processes::Daemon;
use crate::settings::{CLUSTER_DOMAIN, NODE_NAME};

/// The component's name.
pub const NAME: &str = "kubelet";

/// The process to run.
///
/// # Errors
/// If the configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let paths = plan.paths;
    folders([&paths.kubelet(), &paths.pod_logs(), &paths.kubelet().join("volume-plugins")])?;
    cgroups::prepare().context("cannot make the cgroup of the pods")?;
    let config = plan.write_json("kubelet.json", &configuration(plan)?)?;
    let kubeconfig = paths.kubeconfig("kubelet");
    let args = flags([
        ("config", &config),
        ("kubeconfig", &kubeconfig),
        ("root-dir", &paths.kubelet()),
        ("hostname-override", &NODE_NAME),
        ("node-ip", &plan.settings.network.node),
    ]);
    let program = plan.kubernetes.join("kubelet");
    Ok(Daemon { component: NAME, program, args, files: vec![config, kubeconfig] })
}

fn configuration(plan: &Plan<'_>) -> Result<serde_json::Value> {
    let paths = plan.paths;
    let network = &plan.settings.network;
    let serving = key_pair(paths, "kubelet-server");
    // Empty: pods with the node's DNS have no name server, so no name is resolved outside the
    // cluster.
    let resolv_conf = plan.write("resolv.conf", "")?;
    Ok(json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.node,
        "healthzBindAddress": network.node,
        "tlsCertFile": serving.cert,
        "tlsPrivateKeyFile": serving.key,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": key_pair(paths, "ca").cert },
        },
        "authorization": { "mode": "Webhook" },
        "clusterDNS": [network.dns],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": resolv_conf,
        "containerRuntimeEndpoint": format!("unix://{}", paths.containerd_socket().display()),
        "podLogsDir": paths.pod_logs(),
        "volumePluginDir": paths.kubelet().join("volume-plugins"),
        // Both cgroup versions, with or without systemd.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::NAME),
        "failSwapOn": false,
        // Without CAP_SYS_RESOURCE the score cannot be lowered.
        "oomScoreAdj": 0,
        // The disk is shared with builds, so its usage must not evict pods.
        "localStorageCapacityIsolation": false,
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "imagefs.available": "0%", "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": false,
        "maxPods": 250,
        "registryPullQPS": 0,
        "serializeImagePulls": false,
        // An enlarged volume is detected with the next sync of its pod.
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "4s",
        "shutdownGracePeriod": "0s",
    }))
}
