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
/// The ports of etcd's members: the first is asked, the first two are called when authorities change, and at the third
/// they tell how far they are from each other.
const MEMBERS: [u16; 3] =
    [names::ETCD_CLIENT_PORT, names::ETCD_PEER_PORT, names::ETCD_METRICS_PORT];

pub(super) fn component(namespace: &str) -> Result<Component, YamlError> {
    Ok(Component {
        name: "network-policy",
        note: "Rules for who may talk to the operator and whom it may talk to. They hold only \
               where the cluster's network\nenforces NetworkPolicy.\nkubectl apply -k \
               deploy/overlays/network-policy",
        has_overlay: true,
        needs: &[],
        resources: vec![ResourceFile {
            file: "network-policy.yaml",
            note: "In: probes and metrics (the kubelet comes from the node, whose address no \
                   selector can name), and webhooks\n(the API server is rarely a pod).\nOut: DNS \
                   (the resolver may run on the node), and the API server. Rules see the address \
                   behind the `kubernetes`\nService: its port is 6443 in most clusters and 443 in \
                   many managed ones. And the members of etcd clusters, on their three ports.\nWhatever is not named is denied, reason both directions \
                   are.",
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
