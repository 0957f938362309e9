//! Component: an operator for its own namespace, with one Role and without cluster-scoped objects.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use super::super::kustomize::Target;
use super::super::rbac;
use super::{CONTAINER, Component, PatchFile, deployment, flag, removal};
use crate::api::names;

pub(super) fn component() -> Component {
    Component {
        name: "namespaced",
        note: "The operator manages only its own namespace, with one Role. Exactly one other \
               installation owns the\nCRDs and serves the webhooks; this one has neither.\nkubectl apply -k deploy/overlays/namespaced",
        has_overlay: true,
        needs: &[],
        resources: Vec::new(),
        patches: vec![
            PatchFile { file: "deployment.yaml", body: run(), targets: vec![deployment()] },
            PatchFile {
                file: "role.yaml",
                body: json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": {"name": names::OPERATOR},
                    "rules": rules(),
                }),
                targets: vec![Target::object("Role", names::OPERATOR)],
            },
            removal(vec![
                Target::all("CustomResourceDefinition"),
                Target::all("ClusterRole"),
                Target::all("ClusterRoleBinding"),
                Target::all("MutatingWebhookConfiguration"),
                Target::all("ValidatingWebhookConfiguration"),
                Target::object("Service", names::WEBHOOK_SERVICE),
            ]),
        ],
    }
}

/// The permissions of all scopes for one namespace, without the webhook CA Secret: another
/// installation serves the webhooks.
fn rules() -> Value {
    let permissions = [
        rbac::leases(),
        rbac::watch_own_kinds(),
        rbac::watch_owned_objects(),
        rbac::statuses(),
        rbac::owned_objects(),
    ];
    json!(rbac::rules(permissions.concat()))
}

/// The flag, with the namespace inserted by Kubernetes, and no webhook port.
fn run() -> Value {
    let port = format!("{CONTAINER}/ports/1");
    json!([
        flag(&format!("--watch-namespace=$({})", names::POD_NAMESPACE_VARIABLE)),
        {"op": "test", "path": format!("{port}/name"), "value": names::WEBHOOK_PORT_NAME},
        {"op": "remove", "path": port},
    ])
}
