//! Permissions for storage version migration.
//!
//! An installation for one namespace has none of them: another installation owns the CRDs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{
    CORE_GROUP, DEFINITION_GROUP, EVENTS_GROUP, Permission, READ, Scope, by_group, converted,
    strings,
};
use crate::api::kinds::{self, Kind};
use crate::api::names;

const MIGRATION_GROUP: &str = "storagemigration.k8s.io";

/// Sees in which versions objects are stored, says when there is only one, and tells of it. Events about what has no
/// namespace are in `default`, whatever the operator's own is.
pub(in crate::manifests) fn definitions() -> Vec<Permission> {
    let permission = |group, resource: &str, names, verbs, reason| Permission {
        scope: Scope::Cluster,
        group,
        resources: strings(&[resource]),
        names,
        verbs,
        reason,
    };
    let all = kinds::ALL.into_iter().map(Kind::crd_name).collect();
    vec![
        permission(
            DEFINITION_GROUP,
            "customresourcedefinitions",
            all,
            READ,
            "see in which versions objects of ours are stored",
        ),
        permission(
            DEFINITION_GROUP,
            "customresourcedefinitions/status",
            converted(),
            &["patch"],
            "take out of storedVersions what is proven to be gone",
        ),
        permission(
            EVENTS_GROUP,
            "events",
            Vec::new(),
            &["create", "patch"],
            "tell on a definition what becomes of its stored objects",
        ),
    ]
}

/// Where it is written down how far that is.
pub(in crate::manifests) fn migration_record() -> Vec<Permission> {
    let permission = |verbs, names, reason| Permission {
        scope: Scope::OwnNamespace,
        group: CORE_GROUP,
        resources: strings(&["configmaps"]),
        names,
        verbs,
        reason,
    };
    vec![
        permission(
            &["create"],
            Vec::new(),
            "make the ConfigMap with the record; a creation cannot be bound to a name",
        ),
        permission(
            &["get", "patch"],
            strings(&[names::MIGRATION_RECORD]),
            "write down how far stored objects are carried to another version",
        ),
    ]
}

/// Stores objects anew, without changing them.
pub(in crate::manifests) fn migration() -> Vec<Permission> {
    by_group(|kind| kind.has_older_versions().then(|| kind.plural()))
        .into_iter()
        .map(|(group, resources)| Permission {
            scope: Scope::GrantedNamespace,
            group,
            resources,
            names: Vec::new(),
            verbs: &["patch"],
            reason: "store objects in another version, without changing them",
        })
        .collect()
}

/// Asks Kubernetes' own migrator, and takes back what was asked; only where that was chosen.
pub(in crate::manifests) fn delegated_migrations() -> Vec<Permission> {
    let permission = |verbs, names, reason| Permission {
        scope: Scope::Cluster,
        group: MIGRATION_GROUP,
        resources: strings(&["storageversionmigrations"]),
        names,
        verbs,
        reason,
    };
    let named = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
    vec![
        permission(
            &["create"],
            Vec::new(),
            "ask Kubernetes' own migrator; a creation cannot be bound to a name",
        ),
        permission(
            &["get", "delete"],
            named.map(Kind::migration_name).collect(),
            "see how far it is, and ask again when it has failed",
        ),
    ]
}
