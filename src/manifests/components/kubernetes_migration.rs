//! Component: storage version migration by the `StorageVersionMigration` API.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::json;

use super::super::yaml::{YamlError, document};
use super::super::{rbac, service_account};
use super::{Component, PatchFile, ResourceFile, deployment, flag};
use crate::api::names;

pub(super) fn component(namespace: &str) -> Result<Component, YamlError> {
    let name = names::MIGRATION_ROLE;
    Ok(Component {
        name: "kubernetes-migration",
        note: "Stored objects are rewritten by the StorageVersionMigration API of Kubernetes 1.37 or newer instead of \
               the\noperator, which still verifies the result. See docs/upgrading.md for the difference.\nkubectl apply -k \
               deploy/overlays/kubernetes-migration",
        has_overlay: true,
        needs: &[],
        resources: vec![ResourceFile {
            file: "access.yaml",
            note: "Permission to use the StorageVersionMigration API.",
            documents: vec![
                document(&service_account::cluster_role(name, rbac::delegated_migrations()))?,
                document(&service_account::cluster_role_binding(name, namespace))?,
            ],
        }],
        patches: vec![PatchFile {
            file: "flag.yaml",
            body: json!([flag("--storage-migration=kubernetes")]),
            targets: vec![deployment()],
        }],
    })
}
