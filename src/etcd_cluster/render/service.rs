//! Renders the Services: a headless one for all members, one for each member, and one for clients.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Blueprint;
use super::metadata::string_map;
use crate::api::names;
use crate::etcd_cluster::state::MemberName;

/// The names and numbers of a member's ports.
pub(super) const PORTS: [(&str, u16); 3] = [
    (CLIENT, names::ETCD_CLIENT_PORT),
    ("peer", names::ETCD_PEER_PORT),
    (METRICS, names::ETCD_METRICS_PORT),
];
const CLIENT: &str = "client";
/// The name of the port for probes and metrics.
pub(super) const METRICS: &str = "metrics";

impl Blueprint<'_> {
    /// The headless Service that resolves to every member.
    pub(crate) fn members_service(&self) -> Service {
        Service {
            metadata: self.metadata(self.name),
            spec: Some(ServiceSpec {
                cluster_ip: Some("None".to_owned()),
                // Members must resolve each other before any of them can be ready.
                publish_not_ready_addresses: Some(true),
                ports: Some(PORTS.map(|(name, number)| port(name, number)).to_vec()),
                selector: Some(self.member_selector()),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// The Service of one member, which gives it its host name. The name exists before the member
    /// does, and its address stays when that of the pod changes: DNS servers cache missing names
    /// and old addresses for half a minute.
    pub(crate) fn member_service(&self, member: &MemberName, member_uid: &str) -> Service {
        let selector =
            string_map(&[(names::CLUSTER_LABEL, self.name), (names::MEMBER_LABEL, &member.0)]);
        Service {
            metadata: self.member_metadata(member.0.as_str(), member, member_uid),
            spec: Some(ServiceSpec {
                type_: Some("ClusterIP".to_owned()),
                // Other members must reach the member before it can be ready.
                publish_not_ready_addresses: Some(true),
                ports: Some(
                    PORTS.iter().take(2).map(|(name, number)| port(name, *number)).collect(),
                ),
                selector: Some(selector),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// The Service for clients. It selects voters only: learners reject most client requests.
    pub(crate) fn client_service(&self) -> Service {
        Service {
            metadata: self.metadata(names::client_service(self.name)),
            spec: Some(ServiceSpec {
                type_: Some("ClusterIP".to_owned()),
                ports: Some(vec![port(CLIENT, names::ETCD_CLIENT_PORT)]),
                selector: Some(self.voter_selector()),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// The labels that select every member.
    pub(super) fn member_selector(&self) -> BTreeMap<String, String> {
        string_map(&[(names::CLUSTER_LABEL, self.name)])
    }

    /// The labels that select every voter.
    pub(super) fn voter_selector(&self) -> BTreeMap<String, String> {
        string_map(&[(names::CLUSTER_LABEL, self.name), (names::ROLE_LABEL, names::VOTER)])
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
