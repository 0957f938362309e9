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

/// Reads and trims `storedVersions`, and reports it. Events about cluster-scoped objects are in the
/// namespace `default`.
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
            "read the stored versions of the operator's kinds",
        ),
        permission(
            DEFINITION_GROUP,
            "customresourcedefinitions/status",
            converted(),
            &["patch"],
            "remove versions from storedVersions after a verified migration",
        ),
        permission(
            EVENTS_GROUP,
            "events",
            Vec::new(),
            &["create", "patch"],
            "report storage version migration on the CRD",
        ),
    ]
}

/// The ConfigMap with the migration record.
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
            "create the ConfigMap with the migration record; create cannot be restricted by name",
        ),
        permission(
            &["get", "patch"],
            strings(&[names::MIGRATION_RECORD]),
            "record the progress of storage version migration",
        ),
    ]
}

/// Rewrites stored objects without changing them.
pub(in crate::manifests) fn migration() -> Vec<Permission> {
    by_group(|kind| kind.has_older_versions().then(|| kind.plural()))
        .into_iter()
        .map(|(group, resources)| Permission {
            scope: Scope::GrantedNamespace,
            group,
            resources,
            names: Vec::new(),
            verbs: &["patch"],
            reason: "rewrite stored objects in the storage version, without changing them",
        })
        .collect()
}

/// Delegates migrations to the `StorageVersionMigration` API; only with that component.
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
            "create StorageVersionMigrations; create cannot be restricted by name",
        ),
        permission(
            &["get", "delete"],
            named.map(Kind::migration_name).collect(),
            "follow these StorageVersionMigrations, and recreate failed ones",
        ),
    ]
}
