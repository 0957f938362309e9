//! kube-apiserver: Node and RBAC authorization, Pod Security admission, and an audit log of every write.

use std::ffi::OsString;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Plan, etcd, flags};
use crate::install;
use crate::pki::pair;
use crate::processes::Daemon;
use crate::settings::CLUSTER_DOMAIN;

/// The part's name.
pub const NAME: &str = "kube-apiserver";

/// How it runs.
///
/// # Errors
/// If its configuration cannot be written.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let audit = plan.write_json("audit-policy.json", &audit_policy())?;
    let admission = plan.write_json("admission.json", &admission())?;
    let mut args = flags([
        ("authorization-mode", &"Node,RBAC"),
        ("anonymous-auth", &"false"),
        ("enable-admission-plugins", &"NodeRestriction"),
        ("admission-control-config-file", &admission),
        ("allow-privileged", &"true"),
        ("audit-policy-file", &audit),
        ("audit-log-path", &plan.places.audit_log()),
        ("audit-log-maxsize", &"512"),
        ("audit-log-maxbackup", &"2"),
        // Stories read the log right after what they did.
        ("audit-log-mode", &"blocking"),
        ("profiling", &"false"),
    ]);
    args.extend(serving(plan));
    args.extend(storage(plan));
    args.extend(service_accounts(plan));
    args.extend(kubelets(plan));
    args.extend(aggregated_apis(plan));
    let files = vec![audit, admission, pair(plan.places, "apiserver").cert];
    Ok(Daemon { part: NAME, program: plan.kubernetes.join("kube-apiserver"), args, files })
}

fn serving(plan: &Plan<'_>) -> Vec<OsString> {
    let network = &plan.settings.network;
    let own = pair(plan.places, "apiserver");
    flags([
        ("bind-address", &network.node),
        ("advertise-address", &network.node),
        ("secure-port", &"6443"),
        ("service-cluster-ip-range", &network.services),
        ("tls-cert-file", &own.cert),
        ("tls-private-key-file", &own.key),
        ("client-ca-file", &pair(plan.places, "ca").cert),
    ])
}

fn storage(plan: &Plan<'_>) -> Vec<OsString> {
    let client = pair(plan.places, "etcd-client");
    flags([
        ("etcd-servers", &etcd::endpoint(&plan.settings.network)),
        ("etcd-cafile", &pair(plan.places, "etcd-ca").cert),
        ("etcd-certfile", &client.cert),
        ("etcd-keyfile", &client.key),
    ])
}

fn service_accounts(plan: &Plan<'_>) -> Vec<OsString> {
    let pki = plan.places.pki();
    flags([
        ("service-account-issuer", &format!("https://kubernetes.default.svc.{CLUSTER_DOMAIN}")),
        ("service-account-key-file", &pki.join("service-accounts.pub")),
        ("service-account-signing-key-file", &pki.join("service-accounts.key")),
    ])
}

/// How it reaches the kubelet, for logs, exec and port-forward.
fn kubelets(plan: &Plan<'_>) -> Vec<OsString> {
    let client = pair(plan.places, "apiserver-kubelet-client");
    flags([
        ("kubelet-certificate-authority", &pair(plan.places, "ca").cert),
        ("kubelet-client-certificate", &client.cert),
        ("kubelet-client-key", &client.key),
        // By name it would ask DNS for a node that only this cluster knows.
        ("kubelet-preferred-address-types", &"InternalIP"),
    ])
}

fn aggregated_apis(plan: &Plan<'_>) -> Vec<OsString> {
    let client = pair(plan.places, "front-proxy-client");
    flags([
        ("requestheader-client-ca-file", &pair(plan.places, "front-proxy-ca").cert),
        ("requestheader-allowed-names", &"front-proxy-client"),
        ("requestheader-username-headers", &"X-Remote-User"),
        ("requestheader-group-headers", &"X-Remote-Group"),
        ("requestheader-extra-headers-prefix", &"X-Remote-Extra-"),
        ("proxy-client-cert-file", &client.cert),
        ("proxy-client-key-file", &client.key),
    ])
}

/// Every write with who, what and when; bodies of Secrets and tokens never. Reads only of the operator, whose
/// rights are compared with what it does.
fn audit_policy() -> Value {
    let writes = ["create", "update", "patch", "delete", "deletecollection"];
    let operator = format!("system:serviceaccount:{}:quorate", install::NAMESPACE);
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            { "level": "Metadata", "verbs": writes, "resources": [
                { "group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"] },
                { "group": "authentication.k8s.io", "resources": ["tokenreviews"] },
            ]},
            // The heartbeat of the cluster itself: who and when is enough.
            { "level": "Metadata", "verbs": writes, "resources": [
                { "group": "coordination.k8s.io", "resources": ["leases"] },
                { "group": "", "resources": ["events", "nodes/status"] },
                { "group": "events.k8s.io", "resources": ["events"] },
            ]},
            { "level": "Request", "verbs": writes },
            { "level": "Metadata", "verbs": ["get", "list", "watch"], "users": [operator] },
            { "level": "None" },
        ],
    })
}

/// Pod Security: `baseline` where a namespace says nothing, whatever the namespace asks for otherwise.
fn admission() -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {
                    "enforce": "baseline", "enforce-version": "latest",
                    "audit": "restricted", "audit-version": "latest",
                    "warn": "restricted", "warn-version": "latest",
                },
                "exemptions": {},
            },
        }],
    })
}
