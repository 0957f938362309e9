//! Stored objects carried to another version by Kubernetes' own migrator.
//! Comes in: nothing. Goes out: a part with the flag, and the rights that it takes.
//! May touch: `api::names`. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::json;

use super::super::yaml::{Unwritable, document};
use super::super::{access, rights};
use super::{Change, Component, Resources, deployment, flag};
use crate::api::names;

pub(super) fn component(namespace: &str) -> Result<Component, Unwritable> {
    let name = names::MIGRATION_ROLE;
    Ok(Component {
        name: "kubernetes-migration",
        note: "Stored objects are carried to another version by the migrator of Kubernetes 1.37 or newer, and not by \
               the\noperator, which still proves the result. docs/upgrading.md has the difference.\nkubectl apply -k \
               deploy/overlays/kubernetes-migration",
        stands_alone: true,
        needs: &[],
        resources: vec![Resources {
            file: "access.yaml",
            note: "The right to ask that migrator, and nothing else.",
            documents: vec![
                document(&access::cluster_role(name, rights::errands()))?,
                document(&access::cluster_role_binding(name, namespace))?,
            ],
        }],
        changes: vec![Change {
            file: "flag.yaml",
            body: json!([flag("--storage-migration=kubernetes")]),
            targets: vec![deployment()],
        }],
    })
}
