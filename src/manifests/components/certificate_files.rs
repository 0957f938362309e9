//! Component: serving certificate from files; the operator's permissions for its own CA are
//! removed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::json;

use super::super::kustomize::Target;
use super::super::rbac;
use super::{Component, PatchFile, deployment, flag, removal};
use crate::api::names;

/// The name of this component, for those that need it.
pub(super) const NAME: &str = "certificate-files";
/// The mount path of the files.
const MOUNT_PATH: &str = "/etc/quorate/webhook-certs";
const VOLUME: &str = "webhook-certs";

pub(super) fn component() -> Component {
    Component {
        name: NAME,
        note: "The webhook certificate comes from the Secret quorate-webhook-tls, which another \
               component creates and renews.\nThe operator issues none, and has no permission to \
               read Secrets or to change CA bundles.\nSee webhook-certs/README.md.",
        has_overlay: false,
        needs: &[],
        resources: Vec::new(),
        patches: vec![
            PatchFile {
                file: "flag.yaml",
                body: json!([flag(&format!("--webhook-cert-dir={MOUNT_PATH}"))]),
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

/// The whole Secret as a directory. A `subPath` mount would never be updated.
fn volume() -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names::OPERATOR},
        "spec": {"template": {"spec": {
            "containers": [{
                "name": names::OPERATOR,
                "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": true}],
            }],
            "volumes": [{"name": VOLUME, "secret": {"secretName": names::WEBHOOK_TLS_SECRET}}],
        }}},
    })
}
