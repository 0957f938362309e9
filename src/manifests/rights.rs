//! What the operator may do: exactly the calls that it makes, each with its reason.
//! Comes in: nothing. Goes out: rights, which become the rules of the roles and the table that a
//! test compares with the audit log.
//! May touch: `api` and k8s-openapi types. Pure. No right is for everything, and none is for the
//! Secrets of other namespaces.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod stored;

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::api::kinds::{self, Kind};
use crate::api::names;
pub(super) use stored::{definitions, errands, migration, migration_record};

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
const KEEP: &[&str] = &["create", "patch", "delete"];

/// Where a right holds, which is also the role that carries it.
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

/// One right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Where it holds.
    pub scope: Scope,
    /// The API group; nothing is the core group.
    pub group: &'static str,
    /// The resources, with a subresource behind a slash.
    pub resources: Vec<String>,
    /// The objects by name. With `list` and `watch` this holds for requests that select the one
    /// name. If there is none the right is for all.
    pub names: Vec<String>,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// What it is for.
    pub because: &'static str,
}

/// Every right of the operator.
#[must_use]
pub fn rights() -> Vec<Right> {
    [
        leases(),
        authorities(),
        migration_record(),
        kinds_everywhere(),
        belongings_everywhere(),
        grants(),
        definitions(),
        trust(),
        statuses(),
        belongings(),
        migration(),
    ]
    .concat()
}

/// What the replicas need to compete for their Lease.
pub(super) fn leases() -> Vec<Right> {
    let lease = |verbs, names, because| Right {
        scope: Scope::OwnNamespace,
        group: LEASE_GROUP,
        resources: texts(&["leases"]),
        names,
        verbs,
        because,
    };
    vec![
        // Kubernetes cannot restrict `create` by name: it is not known yet when that is judged.
        lease(&["create"], Vec::new(), "make the Lease; a creation cannot be bound to a name"),
        lease(&["get", "update"], texts(&[names::LEASE]), "compete for the Lease and renew it"),
    ]
}

/// The Secret with the authorities that sign the webhooks' certificates, and no other.
pub(super) fn authorities() -> Vec<Right> {
    let secret = |verbs, names, because| Right {
        scope: Scope::OwnNamespace,
        group: CORE_GROUP,
        resources: texts(&["secrets"]),
        names,
        verbs,
        because,
    };
    let named = texts(&[names::WEBHOOK_CA_SECRET]);
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
pub(super) fn kinds_everywhere() -> Vec<Right> {
    by_group(|kind| Some(kind.plural()))
        .into_iter()
        .map(|(group, resources)| Right {
            scope: Scope::Cluster,
            group,
            resources,
            names: Vec::new(),
            verbs: READ,
            because: "see the objects of our kinds",
        })
        .collect()
}

/// What belongs to etcd clusters, wherever they are. Secrets are not of it.
pub(super) fn belongings_everywhere() -> Vec<Right> {
    let right = |group, resources: &[&str], because| Right {
        scope: Scope::Cluster,
        group,
        resources: texts(resources),
        names: Vec::new(),
        verbs: &["list", "watch"],
        because,
    };
    vec![
        right(
            CORE_GROUP,
            &["pods", "persistentvolumeclaims", "services"],
            "see the members of etcd clusters, their volumes and their Services",
        ),
        right(POLICY_GROUP, &["poddisruptionbudgets"], "see the budgets of etcd clusters"),
    ]
}

/// What is made, changed and deleted for etcd clusters.
pub(super) fn belongings() -> Vec<Right> {
    let right = |group, resource: &str, verbs, because| Right {
        scope: Scope::GrantedNamespace,
        group,
        resources: texts(&[resource]),
        names: Vec::new(),
        verbs,
        because,
    };
    vec![
        right(names::ETCD_GROUP, "etcdmembers", KEEP, "write down what becomes of a member"),
        right(CORE_GROUP, "pods", KEEP, "run the members of an etcd cluster"),
        right(
            CORE_GROUP,
            "persistentvolumeclaims",
            KEEP,
            "give members their volumes, let them grow, and clear away those of members that left",
        ),
        right(
            CORE_GROUP,
            "services",
            &["create", "patch"],
            "let members and clients find each other",
        ),
        right(
            CORE_GROUP,
            "secrets",
            &["get", "create", "patch"],
            "sign the certificates of members and clients",
        ),
        right(
            CERT_MANAGER_GROUP,
            "certificates",
            &["get", "create", "patch"],
            "ask cert-manager for the certificates of members and clients",
        ),
        right(
            POLICY_GROUP,
            "poddisruptionbudgets",
            &["create", "patch"],
            "keep enough voters up while nodes are drained",
        ),
        right(EVENTS_GROUP, "events", &["create", "patch"], "tell what was done, and why"),
    ]
}

/// Grants itself the rights in a namespace, and gives them back. `bind` is for that one role: the
/// operator can hand out nothing else.
pub(super) fn grants() -> Vec<Right> {
    let right = |resource: &str, names, verbs, because| Right {
        scope: Scope::Cluster,
        group: RBAC_GROUP,
        resources: texts(&[resource]),
        names,
        verbs,
        because,
    };
    vec![
        right(
            "rolebindings",
            Vec::new(),
            &["create"],
            "grant itself the rights in a namespace that has objects of ours",
        ),
        right(
            "rolebindings",
            texts(&[names::GRANT]),
            &["list", "watch", "patch", "delete"],
            "see that grant, mend it, and give it back with the last object",
        ),
        right(
            "clusterroles",
            texts(&[names::NAMESPACE_ROLE]),
            &["bind"],
            "grant this one role and no other",
        ),
    ]
}

/// Sees what an administrator has granted, and says in an object whose namespace is not granted
/// that it waits for it.
pub(super) fn granted_by_others() -> Vec<Right> {
    let mut rights = vec![Right {
        scope: Scope::Cluster,
        group: RBAC_GROUP,
        resources: texts(&["rolebindings"]),
        names: texts(&[names::GRANT]),
        verbs: &["list", "watch"],
        because: "see what was granted",
    }];
    rights.extend(write_statuses(Scope::Cluster));
    rights
}

/// Tells the API server whom to trust: `caBundle` of the definitions that are converted and of our
/// two configurations.
pub(super) fn trust() -> Vec<Right> {
    let right = |group, resources, names, because| Right {
        scope: Scope::Webhooks,
        group,
        resources,
        names,
        verbs: &["get", "list", "watch", "patch"],
        because,
    };
    vec![
        right(
            DEFINITION_GROUP,
            texts(&["customresourcedefinitions"]),
            converted(),
            "put the authorities into the definitions that are converted",
        ),
        right(
            WEBHOOK_GROUP,
            texts(&["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]),
            texts(&[names::WEBHOOK_CONFIGURATION]),
            "put the authorities into the webhook configurations",
        ),
    ]
}

/// What is done in a namespace that has objects of ours.
pub(super) fn statuses() -> Vec<Right> {
    write_statuses(Scope::GrantedNamespace)
}

fn write_statuses(scope: Scope) -> Vec<Right> {
    by_group(|kind| Some(format!("{}/status", kind.plural())))
        .into_iter()
        .map(|(group, resources)| Right {
            scope,
            group,
            resources,
            names: Vec::new(),
            verbs: &["patch"],
            because: "report in the status of our objects",
        })
        .collect()
}

/// Rights as the rules of a role.
pub(super) fn rules(rights: Vec<Right>) -> Vec<PolicyRule> {
    rights
        .into_iter()
        .map(|Right { scope: _, group, resources, names, verbs, because: _ }| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(resources),
            resource_names: (!names.is_empty()).then_some(names),
            verbs: texts(verbs),
            ..PolicyRule::default()
        })
        .collect()
}

/// The definitions that have versions to convert between.
pub(super) fn converted() -> Vec<String> {
    let several = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
    several.map(Kind::definition_name).collect()
}

/// Words for each kind that has some, by group; each group once, in the order of the kinds.
pub(super) fn by_group(word: impl Fn(&Kind) -> Option<String>) -> Vec<(&'static str, Vec<String>)> {
    let mut groups: Vec<(&'static str, Vec<String>)> = Vec::new();
    for kind in kinds::ALL {
        let Some(word) = word(kind) else { continue };
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, words)) => words.push(word),
            None => groups.push((kind.group, vec![word])),
        }
    }
    groups
}

/// Whether the number of replicas of a kind can be set alone.
pub(super) fn has_scale(kind: &Kind) -> bool {
    let versions = kind.hub().definition().spec.versions;
    versions.iter().any(|it| it.subresources.as_ref().is_some_and(|it| it.scale.is_some()))
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
