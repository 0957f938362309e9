//! kube-proxy: Services by nftables.

use anyhow::Result;
use serde_json::json;

use super::{Plan, flags};
use crate::processes::Daemon;
use crate::settings::NODE_NAME;

/// The part's name.
pub const NAME: &str = "kube-proxy";

/// How it runs.
///
/// # Errors
/// If its configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let kubeconfig = plan.places.kubeconfig("kube-proxy");
    let network = &plan.settings.network;
    let config = plan.write_json(
        "kube-proxy.json",
        &json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": { "kubeconfig": kubeconfig },
            "mode": "nftables",
            "hostnameOverride": NODE_NAME,
            "clusterCIDR": network.pods,
            "bindAddress": network.node,
            "healthzBindAddress": format!("{}:10256", network.node),
            "metricsBindAddress": format!("{}:10249", network.node),
            "nodePortAddresses": ["primary"],
            // Zero leaves the kernel's own settings alone.
            "conntrack": {
                "maxPerCore": 0, "min": 0,
                "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
            },
            "nftables": { "syncPeriod": "30s", "minSyncPeriod": "100ms" },
        }),
    )?;
    let args = flags([("config", &config)]);
    let program = plan.kubernetes.join("kube-proxy");
    Ok(Daemon { part: NAME, program, args, files: vec![config, kubeconfig] })
}
