//! What the operator may do about the versions in which objects are stored.
//! Comes in: nothing. Goes out: rights. May touch: `api`. Pure. An installation for one namespace has none of them: the
//! definitions are another's.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{
    CORE_GROUP, DEFINITION_GROUP, EVENTS_GROUP, READ, Right, Scope, by_group, converted, texts,
};
use crate::api::kinds::{self, Kind};
use crate::api::names;

const MIGRATION_GROUP: &str = "storagemigration.k8s.io";

/// Sees in which versions objects are stored, says when there is only one, and tells of it. Events about what has no
/// namespace are in `default`, whatever the operator's own is.
pub(in crate::manifests) fn definitions() -> Vec<Right> {
    let right = |group, resource: &str, names, verbs, because| Right {
        scope: Scope::Cluster,
        group,
        resources: texts(&[resource]),
        names,
        verbs,
        because,
    };
    let all = kinds::ALL.into_iter().map(Kind::definition_name).collect();
    vec![
        right(
            DEFINITION_GROUP,
            "customresourcedefinitions",
            all,
            READ,
            "see in which versions objects of ours are stored",
        ),
        right(
            DEFINITION_GROUP,
            "customresourcedefinitions/status",
            converted(),
            &["patch"],
            "take out of storedVersions what is proven to be gone",
        ),
        right(
            EVENTS_GROUP,
            "events",
            Vec::new(),
            &["create", "patch"],
            "tell on a definition what becomes of its stored objects",
        ),
    ]
}

/// Where it is written down how far that is.
pub(in crate::manifests) fn migration_record() -> Vec<Right> {
    let right = |verbs, names, because| Right {
        scope: Scope::OwnNamespace,
        group: CORE_GROUP,
        resources: texts(&["configmaps"]),
        names,
        verbs,
        because,
    };
    vec![
        right(
            &["create"],
            Vec::new(),
            "make the ConfigMap with the record; a creation cannot be bound to a name",
        ),
        right(
            &["get", "patch"],
            texts(&[names::MIGRATION_RECORD]),
            "write down how far stored objects are carried to another version",
        ),
    ]
}

/// Stores objects anew, without changing them.
pub(in crate::manifests) fn migration() -> Vec<Right> {
    by_group(|kind| kind.has_older_versions().then(|| kind.plural()))
        .into_iter()
        .map(|(group, resources)| Right {
            scope: Scope::GrantedNamespace,
            group,
            resources,
            names: Vec::new(),
            verbs: &["patch"],
            because: "store objects in another version, without changing them",
        })
        .collect()
}

/// Asks Kubernetes' own migrator, and takes back what was asked; only where that was chosen.
pub(in crate::manifests) fn errands() -> Vec<Right> {
    let right = |verbs, names, because| Right {
        scope: Scope::Cluster,
        group: MIGRATION_GROUP,
        resources: texts(&["storageversionmigrations"]),
        names,
        verbs,
        because,
    };
    let named = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
    vec![
        right(
            &["create"],
            Vec::new(),
            "ask Kubernetes' own migrator; a creation cannot be bound to a name",
        ),
        right(
            &["get", "delete"],
            named.map(Kind::errand_name).collect(),
            "see how far it is, and ask again when it has failed",
        ),
    ]
}
