//! kube-apiserver: Node and RBAC authorization, Pod Security admission, and an audit log of every
//! write.

use std::ffi::OsString;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Plan, etcd, flags};
use crate::install;
use crate::pki::key_pair;
use crate::processes::Daemon;
use crate::settings::CLUSTER_DOMAIN;

/// The component's name.
pub const NAME: &str = "kube-apiserver";

/// The process to run.
///
/// # Errors
/// If the configuration cannot be written.
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
        ("audit-log-path", &plan.paths.audit_log()),
        ("audit-log-maxsize", &"512"),
        ("audit-log-maxbackup", &"2"),
        // E2E tests read the log right after their requests.
        ("audit-log-mode", &"blocking"),
        ("profiling", &"false"),
    ]);
    args.extend(serving(plan));
    args.extend(storage(plan));
    args.extend(service_accounts(plan));
    args.extend(kubelets(plan));
    args.extend(aggregated_apis(plan));
    let files = vec![audit, admission, key_pair(plan.paths, "apiserver").cert];
    Ok(Daemon { component: NAME, program: plan.kubernetes.join("kube-apiserver"), args, files })
}

fn serving(plan: &Plan<'_>) -> Vec<OsString> {
    let network = &plan.settings.network;
    let own = key_pair(plan.paths, "apiserver");
    flags([
        ("bind-address", &network.node),
        ("advertise-address", &network.node),
        ("secure-port", &"6443"),
        ("service-cluster-ip-range", &network.services),
        ("tls-cert-file", &own.cert),
        ("tls-private-key-file", &own.key),
        ("client-ca-file", &key_pair(plan.paths, "ca").cert),
    ])
}

fn storage(plan: &Plan<'_>) -> Vec<OsString> {
    let client = key_pair(plan.paths, "etcd-client");
    flags([
        ("etcd-servers", &etcd::endpoint(&plan.settings.network)),
        ("etcd-cafile", &key_pair(plan.paths, "etcd-ca").cert),
        ("etcd-certfile", &client.cert),
        ("etcd-keyfile", &client.key),
    ])
}

fn service_accounts(plan: &Plan<'_>) -> Vec<OsString> {
    let pki = plan.paths.pki();
    flags([
        ("service-account-issuer", &format!("https://kubernetes.default.svc.{CLUSTER_DOMAIN}")),
        ("service-account-key-file", &pki.join("service-accounts.pub")),
        ("service-account-signing-key-file", &pki.join("service-accounts.key")),
    ])
}

/// The connection to the kubelet, for logs, exec and port-forward.
fn kubelets(plan: &Plan<'_>) -> Vec<OsString> {
    let client = key_pair(plan.paths, "apiserver-kubelet-client");
    flags([
        ("kubelet-certificate-authority", &key_pair(plan.paths, "ca").cert),
        ("kubelet-client-certificate", &client.cert),
        ("kubelet-client-key", &client.key),
        // Not by name: DNS does not know the node.
        ("kubelet-preferred-address-types", &"InternalIP"),
    ])
}

fn aggregated_apis(plan: &Plan<'_>) -> Vec<OsString> {
    let client = key_pair(plan.paths, "front-proxy-client");
    flags([
        ("requestheader-client-ca-file", &key_pair(plan.paths, "front-proxy-ca").cert),
        ("requestheader-allowed-names", &"front-proxy-client"),
        ("requestheader-username-headers", &"X-Remote-User"),
        ("requestheader-group-headers", &"X-Remote-Group"),
        ("requestheader-extra-headers-prefix", &"X-Remote-Extra-"),
        ("proxy-client-cert-file", &client.cert),
        ("proxy-client-key-file", &client.key),
    ])
}

/// Logs every write, without the bodies of Secrets and tokens, and the reads of the operator, to
/// compare its permissions with its requests.
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
            // The heartbeat of the cluster itself: metadata is enough.
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

/// Pod Security: `baseline` unless the namespace has labels.
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
