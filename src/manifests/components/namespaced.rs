//! An operator for its own namespace alone.
//! Comes in: nothing. Goes out: a part with one Role, and without anything that belongs to the
//! whole cluster.
//! May touch: `api::names`. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use super::super::kustomize::Target;
use super::super::rights;
use super::{CONTAINER, Change, Component, deployment, flag, removal};
use crate::api::names;

pub(super) fn component() -> Component {
    Component {
        name: "namespaced",
        note: "The operator works in its own namespace alone, with one Role. Another installation, \
               exactly one, owns the\ncustom resource definitions and answers the webhooks; this \
               one has neither.\nkubectl apply -k deploy/overlays/namespaced",
        stands_alone: true,
        needs: &[],
        resources: Vec::new(),
        changes: vec![
            Change { file: "deployment.yaml", body: run(), targets: vec![deployment()] },
            Change {
                file: "role.yaml",
                body: json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": {"name": names::OPERATOR},
                    "rules": rules(),
                }),
                targets: vec![Target::one("Role", names::OPERATOR)],
            },
            removal(vec![
                Target::every("CustomResourceDefinition"),
                Target::every("ClusterRole"),
                Target::every("ClusterRoleBinding"),
                Target::every("MutatingWebhookConfiguration"),
                Target::every("ValidatingWebhookConfiguration"),
                Target::one("Service", names::WEBHOOK_SERVICE),
            ]),
        ],
    }
}

/// The webhooks' certificates are another's, so that Secret is not of it. What holds everywhere else holds
/// here for one namespace.
fn rules() -> Value {
    let rights = [
        rights::leases(),
        rights::kinds_everywhere(),
        rights::belongings_everywhere(),
        rights::statuses(),
        rights::belongings(),
    ];
    json!(rights::rules(rights.concat()))
}

/// The flag, and no port for webhooks. Kubernetes itself puts the namespace in.
fn run() -> Value {
    let port = format!("{CONTAINER}/ports/1");
    json!([
        flag(&format!("--watch-namespace=$({})", names::POD_NAMESPACE_VARIABLE)),
        {"op": "test", "path": format!("{port}/name"), "value": names::WEBHOOK_PORT_NAME},
        {"op": "remove", "path": port},
    ])
}
