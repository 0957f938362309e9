//! What stands around the members: two Services, and the disruption budget.
//! Comes in: a blueprint, and how many vote. Goes out: objects. May touch: `api`, Kubernetes' own
//! types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Blueprint;
use super::metadata::owned;
use crate::api::names;
use crate::etcd_cluster::seen::{Name, quorum};

/// The ports of a member, and what they are called.
pub(super) const PORTS: [(&str, u16); 3] = [
    (CLIENT, names::ETCD_CLIENT_PORT),
    ("peer", names::ETCD_PEER_PORT),
    (METRICS, names::ETCD_METRICS_PORT),
];
const CLIENT: &str = "client";
/// What the port for probes and metrics is called.
pub(super) const METRICS: &str = "metrics";

impl Blueprint<'_> {
    /// The Service that finds every member, for whoever wants to see all of them.
    pub(crate) fn members_service(&self) -> Service {
        Service {
            metadata: self.metadata(self.name),
            spec: Some(ServiceSpec {
                cluster_ip: Some("None".to_owned()),
                // Members must find each other before any of them can be ready.
                publish_not_ready_addresses: Some(true),
                ports: Some(PORTS.map(|(name, number)| port(name, number)).to_vec()),
                selector: Some(self.selected()),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// The Service of one member, which gives it its host. Its name is there before the member is, and its address stays
    /// when the pod's changes: name servers remember for half a minute whom they did not find, and where somebody was.
    pub(crate) fn member_service(&self, member: &Name, member_uid: &str) -> Service {
        let selected =
            owned(&[(names::CLUSTER_LABEL, self.name), (names::MEMBER_LABEL, &member.0)]);
        Service {
            metadata: self.member_metadata(member.0.as_str(), member, member_uid),
            spec: Some(ServiceSpec {
                type_: Some("ClusterIP".to_owned()),
                // Others must reach it before it can be ready.
                publish_not_ready_addresses: Some(true),
                ports: Some(
                    PORTS.iter().take(2).map(|(name, number)| port(name, *number)).collect(),
                ),
                selector: Some(selected),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// The Service for clients. Who does not vote yet would refuse most of what they ask.
    pub(crate) fn client_service(&self) -> Service {
        Service {
            metadata: self.metadata(names::client_service(self.name)),
            spec: Some(ServiceSpec {
                type_: Some("ClusterIP".to_owned()),
                ports: Some(vec![port(CLIENT, names::ETCD_CLIENT_PORT)]),
                selector: Some(self.voters()),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// So many voters must stay up while nodes are drained that they can agree. While members come
    /// or go, what is wanted and what votes differ; the larger of the two counts.
    pub(crate) fn budget(&self, voters: usize) -> PodDisruptionBudget {
        let wanted = usize::from(self.spec.replicas);
        // Who wants no members wants none of them kept.
        let least = if wanted == 0 { 0 } else { quorum(voters.max(wanted)) };
        PodDisruptionBudget {
            metadata: self.metadata(self.name),
            spec: Some(PodDisruptionBudgetSpec {
                min_available: Some(IntOrString::Int(i32::try_from(least).unwrap_or(i32::MAX))),
                // A voter that is not ready may be evicted as long as enough others are. When they are
                // not, the one that is on its way back is what the cluster waits for.
                unhealthy_pod_eviction_policy: Some("IfHealthyBudget".to_owned()),
                selector: Some(LabelSelector {
                    match_labels: Some(self.voters()),
                    match_expressions: None,
                }),
                ..PodDisruptionBudgetSpec::default()
            }),
            ..PodDisruptionBudget::default()
        }
    }

    /// Selects every member.
    pub(super) fn selected(&self) -> BTreeMap<String, String> {
        owned(&[(names::CLUSTER_LABEL, self.name)])
    }

    fn voters(&self) -> BTreeMap<String, String> {
        owned(&[(names::CLUSTER_LABEL, self.name), (names::ROLE_LABEL, names::VOTER)])
    }
}

fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(number),
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}
