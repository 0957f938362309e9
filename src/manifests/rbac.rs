//! The permissions of the operator: exactly the calls it makes, each with its reason.
//!
//! They become the rules of the roles and the table that a test compares with the audit log. No
//! permission has wildcards, and none is for Secrets of all namespaces.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod storage;

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::api::kinds::{self, Kind};
use crate::api::names;
pub(super) use storage::{definitions, delegated_migrations, migration, migration_record};

/// The group of roles and bindings.
pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const CORE_GROUP: &str = "";
const LEASE_GROUP: &str = "coordination.k8s.io";
const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
const POLICY_GROUP: &str = "policy";
const CERT_MANAGER_GROUP: &str = "cert-manager.io";
const EVENTS_GROUP: &str = "events.k8s.io";
const WEBHOOK_GROUP: &str = "admissionregistration.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "patch", "delete"];

/// Where a permission holds, which is also the role that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The namespace that the operator lives in: the Role `quorate`.
    OwnNamespace,
    /// The whole cluster: the `ClusterRole` `quorate`.
    Cluster,
    /// The whole cluster, for the certificates alone: the `ClusterRole` `quorate-webhooks`. It
    /// stands apart so that it can be left out where somebody else makes the certificates.
    Webhooks,
    /// A namespace in which it was granted: the `ClusterRole` `quorate-namespace`.
    GrantedNamespace,
}

/// One permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Where it holds.
    pub scope: Scope,
    /// The API group; nothing is the core group.
    pub group: &'static str,
    /// The resources, with a subresource behind a slash.
    pub resources: Vec<String>,
    /// The objects by name. With `list` and `watch` this holds for requests that select the one
    /// name. If there is none the permission is for all.
    pub names: Vec<String>,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// What it is for.
    pub reason: &'static str,
}

/// Every permission of the operator.
#[must_use]
pub fn permissions() -> Vec<Permission> {
    [
        leases(),
        webhook_ca_secret(),
        migration_record(),
        watch_own_kinds(),
        watch_owned_objects(),
        namespace_bindings(),
        definitions(),
        ca_bundles(),
        statuses(),
        owned_objects(),
        migration(),
    ]
    .concat()
}

/// What the replicas need to compete for their Lease.
pub(super) fn leases() -> Vec<Permission> {
    let lease = |verbs, names, reason| Permission {
        scope: Scope::OwnNamespace,
        group: LEASE_GROUP,
        resources: strings(&["leases"]),
        names,
        verbs,
        reason,
    };
    vec![
        // Kubernetes cannot restrict `create` by name: it is not known yet when that is judged.
        lease(&["create"], Vec::new(), "make the Lease; a creation cannot be bound to a name"),
        lease(&["get", "update"], strings(&[names::LEASE]), "compete for the Lease and renew it"),
    ]
}

/// The Secret with the authorities that sign the webhooks' certificates, and no other.
pub(super) fn webhook_ca_secret() -> Vec<Permission> {
    let secret = |verbs, names, reason| Permission {
        scope: Scope::OwnNamespace,
        group: CORE_GROUP,
        resources: strings(&["secrets"]),
        names,
        verbs,
        reason,
    };
    let named = strings(&[names::WEBHOOK_CA_SECRET]);
    vec![
        secret(
            &["create"],
            Vec::new(),
            "make the Secret with the authorities; a creation cannot be bound to a name",
        ),
        secret(
            &["get", "list", "watch", "update"],
            named,
            "sign certificates with the authorities, and renew them",
        ),
    ]
}

/// Our kinds, wherever they are.
pub(super) fn watch_own_kinds() -> Vec<Permission> {
    by_group(|kind| Some(kind.plural()))
        .into_iter()
        .map(|(group, resources)| Permission {
            scope: Scope::Cluster,
            group,
            resources,
            names: Vec::new(),
            verbs: READ,
            reason: "see the objects of our kinds",
        })
        .collect()
}

/// What belongs to etcd clusters, wherever they are. Secrets are not of it.
pub(super) fn watch_owned_objects() -> Vec<Permission> {
    let permission = |group, resources: &[&str], reason| Permission {
        scope: Scope::Cluster,
        group,
        resources: strings(resources),
        names: Vec::new(),
        verbs: &["list", "watch"],
        reason,
    };
    vec![
        permission(
            CORE_GROUP,
            &["pods", "persistentvolumeclaims", "services"],
            "see the members of etcd clusters, their volumes and their Services",
        ),
        permission(POLICY_GROUP, &["poddisruptionbudgets"], "see the budgets of etcd clusters"),
    ]
}

/// What is made, changed and deleted for etcd clusters.
pub(super) fn owned_objects() -> Vec<Permission> {
    let permission = |group, resource: &str, verbs, reason| Permission {
        scope: Scope::GrantedNamespace,
        group,
        resources: strings(&[resource]),
        names: Vec::new(),
        verbs,
        reason,
    };
    vec![
        permission(names::ETCD_GROUP, "etcdmembers", WRITE, "write down what becomes of a member"),
        permission(CORE_GROUP, "pods", WRITE, "run the members of an etcd cluster"),
        permission(
            CORE_GROUP,
            "persistentvolumeclaims",
            WRITE,
            "give members their volumes, let them grow, and clear away those of members that left",
        ),
        permission(
            CORE_GROUP,
            "services",
            &["create", "patch"],
            "let members and clients find each other",
        ),
        permission(
            CORE_GROUP,
            "secrets",
            &["get", "create", "patch"],
            "sign the certificates of members and clients",
        ),
        permission(
            CERT_MANAGER_GROUP,
            "certificates",
            &["get", "create", "patch"],
            "ask cert-manager for the certificates of members and clients",
        ),
        permission(
            POLICY_GROUP,
            "poddisruptionbudgets",
            &["create", "patch"],
            "keep enough voters up while nodes are drained",
        ),
        permission(EVENTS_GROUP, "events", &["create", "patch"], "tell what was done, and why"),
    ]
}

/// Grants itself the permissions in a namespace, and gives them back. `bind` is for that one role: the
/// operator can hand out nothing else.
pub(super) fn namespace_bindings() -> Vec<Permission> {
    let permission = |resource: &str, names, verbs, reason| Permission {
        scope: Scope::Cluster,
        group: RBAC_GROUP,
        resources: strings(&[resource]),
        names,
        verbs,
        reason,
    };
    vec![
        permission(
            "rolebindings",
            Vec::new(),
            &["create"],
            "grant itself the permissions in a namespace that has objects of ours",
        ),
        permission(
            "rolebindings",
            strings(&[names::NAMESPACE_ROLE_BINDING]),
            &["list", "watch", "patch", "delete"],
            "see that grant, mend it, and give it back with the last object",
        ),
        permission(
            "clusterroles",
            strings(&[names::NAMESPACE_ROLE]),
            &["bind"],
            "grant this one role and no other",
        ),
    ]
}

/// Sees what an administrator has granted, and says in an object whose namespace is not granted
/// that it waits for it.
pub(super) fn manual_namespace_access() -> Vec<Permission> {
    let mut permissions = vec![Permission {
        scope: Scope::Cluster,
        group: RBAC_GROUP,
        resources: strings(&["rolebindings"]),
        names: strings(&[names::NAMESPACE_ROLE_BINDING]),
        verbs: &["list", "watch"],
        reason: "see what was granted",
    }];
    permissions.extend(write_statuses(Scope::Cluster));
    permissions
}

/// Tells the API server whom to trust: `caBundle` of the definitions that are converted and of our
/// two configurations.
pub(super) fn ca_bundles() -> Vec<Permission> {
    let permission = |group, resources, names, reason| Permission {
        scope: Scope::Webhooks,
        group,
        resources,
        names,
        verbs: &["get", "list", "watch", "patch"],
        reason,
    };
    vec![
        permission(
            DEFINITION_GROUP,
            strings(&["customresourcedefinitions"]),
            converted(),
            "put the authorities into the definitions that are converted",
        ),
        permission(
            WEBHOOK_GROUP,
            strings(&["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]),
            strings(&[names::WEBHOOK_CONFIGURATION]),
            "put the authorities into the webhook configurations",
        ),
    ]
}

/// What is done in a namespace that has objects of ours.
pub(super) fn statuses() -> Vec<Permission> {
    write_statuses(Scope::GrantedNamespace)
}

fn write_statuses(scope: Scope) -> Vec<Permission> {
    by_group(|kind| Some(format!("{}/status", kind.plural())))
        .into_iter()
        .map(|(group, resources)| Permission {
            scope,
            group,
            resources,
            names: Vec::new(),
            verbs: &["patch"],
            reason: "report in the status of our objects",
        })
        .collect()
}

/// Rights as the rules of a role.
pub(super) fn rules(permissions: Vec<Permission>) -> Vec<PolicyRule> {
    permissions
        .into_iter()
        .map(|Permission { scope: _, group, resources, names, verbs, reason: _ }| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(resources),
            resource_names: (!names.is_empty()).then_some(names),
            verbs: strings(verbs),
            ..PolicyRule::default()
        })
        .collect()
}

/// The definitions that have versions to convert between.
pub(super) fn converted() -> Vec<String> {
    let several = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
    several.map(Kind::crd_name).collect()
}

/// Words for each kind that has some, by group; each group once, in the order of the kinds.
pub(super) fn by_group(
    resource: impl Fn(&Kind) -> Option<String>,
) -> Vec<(&'static str, Vec<String>)> {
    let mut groups: Vec<(&'static str, Vec<String>)> = Vec::new();
    for kind in kinds::ALL {
        let Some(resource) = resource(kind) else { continue };
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, words)) => words.push(resource),
            None => groups.push((kind.group, vec![resource])),
        }
    }
    groups
}

/// Whether the number of replicas of a kind can be set alone.
pub(super) fn has_scale(kind: &Kind) -> bool {
    let versions = kind.hub().crd().spec.versions;
    versions.iter().any(|it| it.subresources.as_ref().is_some_and(|it| it.scale.is_some()))
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
