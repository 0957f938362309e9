//! kube-proxy: Services by nftables.

use anyhow::Result;
use serde_json::json;

use super::{Plan, flags};
use crate::processes::Daemon;
use crate::settings::NODE_NAME;

/// The component's name.
pub const NAME: &str = "kube-proxy";

/// The process to run.
///
/// # Errors
/// If the configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let kubeconfig = plan.paths.kubeconfig("kube-proxy");
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
            // Zero keeps the settings of the kernel.
            "conntrack": {
                "maxPerCore": 0, "min": 0,
                "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
            },
            "nftables": { "syncPeriod": "30s", "minSyncPeriod": "100ms" },
        }),
    )?;
    let args = flags([("config", &config)]);
    let program = plan.kubernetes.join("kube-proxy");
    Ok(Daemon { component: NAME, program, args, files: vec![config, kubeconfig] })
}
