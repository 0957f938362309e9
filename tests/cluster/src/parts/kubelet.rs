//! The kubelet of the one node: its configuration, its flags, its cgroup.

use anyhow::{Context, Result};
use serde_json::json;

use super::{Plan, flags, folders};
use crate::cgroups;
use crate::pki::pair;
use crate::processes::Daemon;
use crate::settings::{CLUSTER_DOMAIN, NODE_NAME};

/// The part's name.
pub const NAME: &str = "kubelet";

/// How it runs.
///
/// # Errors
/// If its configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let places = plan.places;
    folders([&places.kubelet(), &places.pod_logs(), &places.kubelet().join("volume-plugins")])?;
    cgroups::prepare().context("cannot make the cgroup of the pods")?;
    let config = plan.write_json("kubelet.json", &configuration(plan)?)?;
    let kubeconfig = places.kubeconfig("kubelet");
    let args = flags([
        ("config", &config),
        ("kubeconfig", &kubeconfig),
        ("root-dir", &places.kubelet()),
        ("hostname-override", &NODE_NAME),
        ("node-ip", &plan.settings.network.node),
    ]);
    let program = plan.kubernetes.join("kubelet");
    Ok(Daemon { part: NAME, program, args, files: vec![config, kubeconfig] })
}

fn configuration(plan: &Plan<'_>) -> Result<serde_json::Value> {
    let places = plan.places;
    let network = &plan.settings.network;
    let serving = pair(places, "kubelet-server");
    // Empty: pods that ask for the node's DNS get none, so no name is ever looked up outside.
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
            "x509": { "clientCAFile": pair(places, "ca").cert },
        },
        "authorization": { "mode": "Webhook" },
        "clusterDNS": [network.dns],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": resolv_conf,
        "containerRuntimeEndpoint": format!("unix://{}", places.containerd_socket().display()),
        "podLogsDir": places.pod_logs(),
        "volumePluginDir": places.kubelet().join("volume-plugins"),
        // Machines of either cgroup version; no systemd is assumed.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::NAME),
        "failSwapOn": false,
        // Without CAP_SYS_RESOURCE the score cannot be lowered.
        "oomScoreAdj": 0,
        // The machine's disk is shared with builds: its fill level is none of the pods' business.
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
        // A volume that was enlarged is noticed with the next pass over its pod.
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "4s",
        "shutdownGracePeriod": "0s",
    }))
}
