//! The settings of the local cluster, and the versions of its components.
//!
//! Read once from flags and environment, and fixed for the lifetime of the cluster.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::{files, stale_resources};

/// The Kubernetes releases that can be built here; the first is the default.
pub const KUBERNETES_VERSIONS: [&str; 3] = ["1.37.1", "1.36.4", "1.35.4"];
/// The etcd version of the control plane.
pub const CONTROL_PLANE_ETCD: &str = "3.6.16";
/// The etcd releases that are built as images for the e2e tests.
pub const ETCD_VERSIONS: [&str; 5] = ["3.5.21", "3.5.35", "3.6.10", "3.6.16", "3.7.3"];
/// The cluster's name server.
pub const COREDNS_VERSION: &str = "1.15.0";
/// The S3 server.
pub const VERSITYGW_VERSION: &str = "1.8.0";
/// cert-manager, for the e2e tests.
pub const CERT_MANAGER_VERSION: &str = "1.21.2";
/// The name of the node.
pub const NODE_NAME: &str = "quorate-local";
/// The DNS domain of Services and Pods.
pub const CLUSTER_DOMAIN: &str = "cluster.local";

/// The first two numbers of all addresses, unless `QUORATE_CLUSTER_NETWORK` is set.
pub const DEFAULT_NETWORK: &str = "10.231";

/// The settings of a cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// One of [`KUBERNETES_VERSIONS`].
    pub kubernetes: String,
    /// The addresses of node, pods and services.
    pub network: Network,
}

/// Optional settings, from flags or from the record of a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Choice {
    /// The Kubernetes release.
    pub kubernetes: Option<String>,
    /// The first two numbers of all addresses.
    pub network: Option<String>,
}

impl Settings {
    /// Completes the chosen settings with those of the existing cluster, or with the defaults.
    ///
    /// # Errors
    /// If a value is invalid, or differs from that of the existing cluster.
    pub fn complete(chosen: &Choice, running: &Choice) -> Result<Self> {
        let pick = |what, chosen: &Option<String>, running: &Option<String>, default: &str| match (
            chosen, running,
        ) {
            (Some(chosen), Some(running)) if chosen != running => bail!(
                "the existing cluster has {what} {running}, not {chosen}: remove the cluster first with `make cluster-down`"
            ),
            (Some(value), _) | (None, Some(value)) => Ok(value.clone()),
            (None, None) => Ok(default.to_owned()),
        };
        let [newest, ..] = KUBERNETES_VERSIONS;
        let kubernetes = pick("Kubernetes", &chosen.kubernetes, &running.kubernetes, newest)?;
        let network = pick("network", &chosen.network, &running.network, DEFAULT_NETWORK)?;
        if !KUBERNETES_VERSIONS.contains(&kubernetes.as_str()) {
            bail!(
                "Kubernetes {kubernetes:?} cannot be built here: choose one of {}",
                KUBERNETES_VERSIONS.join(", ")
            );
        }
        Ok(Self { kubernetes, network: Network::new(&network)? })
    }

    /// The settings of the running cluster, or the chosen ones. A cluster that does not run is
    /// ignored.
    ///
    /// # Errors
    /// As [`Settings::complete`].
    pub fn read(chosen: &Choice, paths: &Paths) -> Result<Self> {
        let running =
            if stale_resources::is_alive(paths) { recorded(paths) } else { Choice::default() };
        Self::complete(chosen, &running)
    }

    /// The addresses of the existing cluster, running or not; the default ones without a readable
    /// record.
    #[must_use]
    pub fn recorded_network(paths: &Paths) -> Network {
        let recorded = recorded(paths).network.and_then(|network| Network::new(&network).ok());
        recorded.unwrap_or_else(Network::default_network)
    }

    /// Records the settings in the state folder.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn record(&self, paths: &Paths) -> Result<()> {
        let [a, b, _, _] = self.network.node.octets();
        let choice =
            Choice { kubernetes: Some(self.kubernetes.clone()), network: Some(format!("{a}.{b}")) };
        files::write(&paths.settings(), serde_json::to_vec_pretty(&choice)?)
    }
}

fn recorded(paths: &Paths) -> Choice {
    let text = std::fs::read(paths.settings()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The address plan: one /16, of which the node has one address, services and pods a /20 each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The node's address, on the cluster's own bridge.
    pub node: Ipv4Addr,
    /// The Service `kubernetes`.
    pub first_service: Ipv4Addr,
    /// The Service `kube-dns`.
    pub dns: Ipv4Addr,
    /// The range of Service addresses.
    pub services: String,
    /// The range of Pod addresses.
    pub pods: String,
    /// All of it.
    pub whole: String,
}

impl Network {
    fn new(first_two: &str) -> Result<Self> {
        let wrong = || {
            format!(
                "network {first_two:?} is invalid: set the first two numbers of a private /16, such as {DEFAULT_NETWORK}"
            )
        };
        let (a, b) = first_two.split_once('.').with_context(wrong)?;
        let a: u8 = a.parse().with_context(wrong)?;
        let b: u8 = b.parse().with_context(wrong)?;
        if !Ipv4Addr::new(a, b, 0, 1).is_private() {
            bail!(wrong());
        }
        Ok(Self::of(a, b))
    }

    fn default_network() -> Self {
        Self::of(10, 231)
    }

    fn of(a: u8, b: u8) -> Self {
        Self {
            node: Ipv4Addr::new(a, b, 0, 1),
            first_service: Ipv4Addr::new(a, b, 16, 1),
            dns: Ipv4Addr::new(a, b, 16, 10),
            services: format!("{a}.{b}.16.0/20"),
            pods: format!("{a}.{b}.32.0/20"),
            whole: format!("{a}.{b}.0.0/16"),
        }
    }

    /// True for an address (or route destination) of the pods' range.
    #[must_use]
    pub fn is_pod(&self, address: Ipv4Addr) -> bool {
        let [a, b, c, _] = address.octets();
        let [node_a, node_b, _, _] = self.node.octets();
        a == node_a && b == node_b && c & 0xf0 == 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(kubernetes: Option<&str>, network: Option<&str>) -> Choice {
        Choice { kubernetes: kubernetes.map(str::to_owned), network: network.map(str::to_owned) }
    }

    #[test]
    fn unsupported_kubernetes_release_is_rejected_with_the_supported_ones() {
        let error = Settings::complete(&chosen(Some("1.30.0"), None), &Choice::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("1.30.0") && error.contains("1.36.4"), "{error}");
    }

    #[test]
    fn network_is_the_first_two_numbers_of_a_private_range() {
        for wrong in ["", "10", "10.999", "8.8", "ten.two"] {
            let error =
                Settings::complete(&chosen(None, Some(wrong)), &Choice::default()).unwrap_err();
            assert!(error.to_string().contains("10.231"), "{wrong}: {error}");
        }
        let settings =
            Settings::complete(&chosen(None, Some("172.20")), &Choice::default()).unwrap();
        assert_eq!(settings.network.pods, "172.20.32.0/20");
    }

    #[test]
    fn settings_of_an_existing_cluster_cannot_change() {
        let running = chosen(Some("1.36.4"), Some("10.232"));
        let kept = Settings::complete(&Choice::default(), &running).unwrap();
        assert_eq!(
            (kept.kubernetes.as_str(), kept.network.pods.as_str()),
            ("1.36.4", "10.232.32.0/20")
        );
        let error =
            Settings::complete(&chosen(Some("1.37.1"), None), &running).unwrap_err().to_string();
        assert!(error.contains("1.36.4") && error.contains("cluster-down"), "{error}");
    }

    #[test]
    fn default_network_matches_its_constant() {
        assert_eq!(Network::new(DEFAULT_NETWORK).unwrap(), Network::default_network());
    }

    #[test]
    fn pod_addresses_are_distinguished_from_service_addresses() {
        let network = Network::new("10.231").unwrap();
        assert!(network.is_pod(Ipv4Addr::new(10, 231, 32, 7)));
        assert!(network.is_pod(Ipv4Addr::new(10, 231, 47, 255)));
        assert!(!network.is_pod(Ipv4Addr::new(10, 231, 16, 10)));
        assert!(!network.is_pod(network.node));
    }
}
