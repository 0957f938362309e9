//! Component: a NetworkPolicy for the operator's pods.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::labels;
use super::super::yaml::{YamlError, document};
use super::{Component, ResourceFile};
use crate::api::names;

const DNS: i32 = 53;
/// The API server's port: behind the `kubernetes` Service in most clusters, and in managed ones.
const API_SERVER: [i32; 2] = [6443, 443];
/// The ports of etcd members: client requests, TLS probes of the client and peer ports during a CA
/// rotation, and the peer RTT in the metrics.
const MEMBERS: [u16; 3] =
    [names::ETCD_CLIENT_PORT, names::ETCD_PEER_PORT, names::ETCD_METRICS_PORT];

pub(super) fn component(namespace: &str) -> Result<Component, YamlError> {
    Ok(Component {
        name: "network-policy",
        note: "Restricts connections to and from the operator. Effective only if the network plugin \
               of the cluster\nenforces NetworkPolicy.\nkubectl apply -k \
               deploy/overlays/network-policy",
        has_overlay: true,
        needs: &[],
        resources: vec![ResourceFile {
            file: "network-policy.yaml",
            note: "Ingress: probes and metrics (the kubelet connects from the node, whose address no \
                   selector matches), and\nwebhooks (the API server is rarely a pod).\nEgress: DNS (the \
                   resolver may run on the node), the API server (policies apply to the endpoints \
                   of the\n`kubernetes` Service: port 6443 in most clusters, 443 in many managed ones), \
                   and the three ports of etcd members.\nEverything else is denied in both directions.",
            documents: vec![document(&policy(namespace))?],
        }],
        patches: Vec::new(),
    })
}

fn policy(namespace: &str) -> NetworkPolicy {
    let into = |number: u16| NetworkPolicyIngressRule {
        ports: Some(vec![port("TCP", i32::from(number))]),
        from: None,
    };
    let out = |ports| NetworkPolicyEgressRule { ports: Some(ports), to: None };
    NetworkPolicy {
        metadata: labels::metadata(namespace),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(labels::selector()),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: Some(vec![into(names::METRICS_PORT), into(names::WEBHOOK_PORT)]),
            egress: Some(vec![
                out(vec![port("UDP", DNS), port("TCP", DNS)]),
                out(API_SERVER.map(|number| port("TCP", number)).to_vec()),
                out(MEMBERS.map(|number| port("TCP", i32::from(number))).to_vec()),
            ]),
        }),
    }
}

fn port(protocol: &str, number: i32) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(protocol.to_owned()),
        port: Some(IntOrString::Int(number)),
        end_port: None,
    }
}
