//! Component: serving certificate from files; the operator's permissions for its own CA are removed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::json;

use super::super::kustomize::Target;
use super::super::rbac;
use super::{Component, PatchFile, deployment, flag, removal};
use crate::api::names;

/// The name of this part, for those that need it.
pub(super) const NAME: &str = "certificate-files";
/// Where the files are in the pod.
const FOLDER: &str = "/etc/quorate/webhook-certs";
const VOLUME: &str = "webhook-certs";

pub(super) fn component() -> Component {
    Component {
        name: NAME,
        note: "The webhooks' certificate comes from the Secret quorate-webhook-tls, which somebody \
               else makes and renews.\nThe operator then makes none, and has no right to read a \
               Secret or to change what the API server trusts.\nSee webhook-certs/README.md.",
        has_overlay: false,
        needs: &[],
        resources: Vec::new(),
        patches: vec![
            PatchFile {
                file: "flag.yaml",
                body: json!([flag(&format!("--webhook-cert-dir={FOLDER}"))]),
                targets: vec![deployment()],
            },
            PatchFile { file: "volume.yaml", body: volume(), targets: vec![deployment()] },
            PatchFile {
                file: "role.yaml",
                body: json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": {"name": names::OPERATOR},
                    "rules": rbac::rules([rbac::leases(), rbac::migration_record()].concat()),
                }),
                targets: vec![Target::object("Role", names::OPERATOR)],
            },
            removal(vec![
                Target::object("ClusterRole", names::WEBHOOKS_ROLE),
                Target::object("ClusterRoleBinding", names::WEBHOOKS_ROLE),
            ]),
        ],
    }
}

/// The whole Secret as a folder. A single file of it would never be refreshed.
fn volume() -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names::OPERATOR},
        "spec": {"template": {"spec": {
            "containers": [{
                "name": names::OPERATOR,
                "volumeMounts": [{"name": VOLUME, "mountPath": FOLDER, "readOnly": true}],
            }],
            "volumes": [{"name": VOLUME, "secret": {"secretName": names::WEBHOOK_TLS_SECRET}}],
        }}},
    })
}
