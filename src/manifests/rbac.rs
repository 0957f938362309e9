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

/// The scope of a permission, which also determines its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The operator's own namespace: the Role `quorate`.
    OwnNamespace,
    /// The whole cluster: the `ClusterRole` `quorate`.
    Cluster,
    /// The whole cluster, for the webhook certificates only: the `ClusterRole` `quorate-webhooks`.
    /// It is separate so that it can be omitted where another component issues the certificates.
    Webhooks,
    /// Namespaces with the operator's `RoleBinding`: the `ClusterRole` `quorate-namespace`.
    GrantedNamespace,
}

/// One permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Its scope.
    pub scope: Scope,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resources, with a subresource after a slash.
    pub resources: Vec<String>,
    /// The names of the objects; empty for all. `list` and `watch` are then allowed only with a
    /// field selector for one name.
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// What the permission is for.
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

/// The Lease of leader election.
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
        // RBAC cannot restrict `create` by name: the name is not known at authorization.
        lease(&["create"], Vec::new(), "create the Lease; create cannot be restricted by name"),
        lease(&["get", "update"], strings(&[names::LEASE]), "acquire and renew the Lease"),
    ]
}

/// The Secret with the CAs of the webhook certificates, and no other.
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
            "create the Secret with the webhook CAs; create cannot be restricted by name",
        ),
        secret(
            &["get", "list", "watch", "update"],
            named,
            "issue webhook certificates and rotate their CAs",
        ),
    ]
}

/// The operator's kinds, in all namespaces.
pub(super) fn watch_own_kinds() -> Vec<Permission> {
    by_group(|kind| Some(kind.plural()))
        .into_iter()
        .map(|(group, resources)| Permission {
            scope: Scope::Cluster,
            group,
            resources,
            names: Vec::new(),
            verbs: READ,
            reason: "watch the objects of the operator's kinds",
        })
        .collect()
}

/// The objects of etcd clusters in all namespaces, without Secrets.
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
            "watch the pods, volumes and Services of etcd clusters",
        ),
        permission(
            POLICY_GROUP,
            &["poddisruptionbudgets"],
            "watch the disruption budgets of etcd clusters",
        ),
    ]
}

/// The objects that are created, changed and deleted for etcd clusters.
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
        permission(names::ETCD_GROUP, "etcdmembers", WRITE, "record the state of members"),
        permission(CORE_GROUP, "pods", WRITE, "run the members of etcd clusters"),
        permission(
            CORE_GROUP,
            "persistentvolumeclaims",
            WRITE,
            "create and expand the volumes of members, and delete those of removed members",
        ),
        permission(
            CORE_GROUP,
            "services",
            &["create", "patch"],
            "publish the addresses of members and clusters",
        ),
        permission(
            CORE_GROUP,
            "secrets",
            &["get", "create", "patch"],
            "store the certificates of members and clients",
        ),
        permission(
            CERT_MANAGER_GROUP,
            "certificates",
            &["get", "create", "patch"],
            "request the certificates of members and clients from cert-manager",
        ),
        permission(
            POLICY_GROUP,
            "poddisruptionbudgets",
            &["create", "patch"],
            "keep a quorum of voters while nodes are drained",
        ),
        permission(
            EVENTS_GROUP,
            "events",
            &["create", "patch"],
            "report actions and their reasons",
        ),
    ]
}

/// The operator's own `RoleBindings`. `bind` is restricted to one role: the operator can grant
/// nothing else.
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
            "bind the namespace role in namespaces with objects of the operator's kinds",
        ),
        permission(
            "rolebindings",
            strings(&[names::NAMESPACE_ROLE_BINDING]),
            &["list", "watch", "patch", "delete"],
            "watch and repair these RoleBindings, and delete each with the last object",
        ),
        permission(
            "clusterroles",
            strings(&[names::NAMESPACE_ROLE]),
            &["bind"],
            "bind the namespace role, and no other",
        ),
    ]
}

/// Watches the `RoleBindings` of an administrator, and reports in the status of objects whose
/// namespace has none.
pub(super) fn manual_namespace_access() -> Vec<Permission> {
    let mut permissions = vec![Permission {
        scope: Scope::Cluster,
        group: RBAC_GROUP,
        resources: strings(&["rolebindings"]),
        names: strings(&[names::NAMESPACE_ROLE_BINDING]),
        verbs: &["list", "watch"],
        reason: "watch the RoleBindings that an administrator creates",
    }];
    permissions.extend(write_statuses(Scope::Cluster));
    permissions
}

/// `caBundle` of the CRDs with conversion and of the two webhook configurations.
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
            "inject the CA bundle into CRDs with conversion",
        ),
        permission(
            WEBHOOK_GROUP,
            strings(&["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]),
            strings(&[names::WEBHOOK_CONFIGURATION]),
            "inject the CA bundle into the webhook configurations",
        ),
    ]
}

/// The status of the operator's kinds.
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
            reason: "update the status of the operator's kinds",
        })
        .collect()
}

/// The rules of a role with these permissions.
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

/// The names of the CRDs with more than one version.
pub(super) fn converted() -> Vec<String> {
    let several = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
    several.map(Kind::crd_name).collect()
}

/// The resources of all kinds by group; each group once, in the order of the kinds.
pub(super) fn by_group(
    resource: impl Fn(&Kind) -> Option<String>,
) -> Vec<(&'static str, Vec<String>)> {
    let mut groups: Vec<(&'static str, Vec<String>)> = Vec::new();
    for kind in kinds::ALL {
        let Some(resource) = resource(kind) else { continue };
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, resources)) => resources.push(resource),
            None => groups.push((kind.group, vec![resource])),
        }
    }
    groups
}

/// Whether a kind has the scale subresource.
pub(super) fn has_scale(kind: &Kind) -> bool {
    let versions = kind.hub().crd().spec.versions;
    versions
        .iter()
        .any(|version| version.subresources.as_ref().is_some_and(|all| all.scale.is_some()))
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
