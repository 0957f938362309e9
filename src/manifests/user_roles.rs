//! Aggregated `ClusterRoles` for users of the operator's kinds, added to `view`, `edit` and
//! `admin`.
//!
//! Without them only cluster admins could use the kinds. EtcdMember is written by the operator:
//! users read it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use super::labels;
use super::rbac::{by_group, has_scale};
use crate::api::kinds::{self, Kind};
use crate::api::names;

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// What `kubectl scale` and autoscalers need.
const SCALE: [&str; 3] = ["get", "update", "patch"];

/// Read access to all kinds, aggregated to `view`.
pub(super) fn view() -> ClusterRole {
    // Kubernetes aggregates `view` to `edit` and `admin`.
    role(names::VIEW_ROLE, &["view"], rules(&READ, |kind| Some(kind.plural())))
}

/// Write access to all kinds but EtcdMember, aggregated to `edit` and `admin`.
pub(super) fn edit() -> ClusterRole {
    let writable = |kind: &Kind| (kind.name != kinds::ETCD_MEMBER.name).then(|| kind.plural());
    let scalable = |kind: &Kind| has_scale(kind).then(|| format!("{}/scale", kind.plural()));
    let rules = [rules(&WRITE, writable), rules(&SCALE, scalable)].concat();
    role(names::EDIT_ROLE, &["edit", "admin"], rules)
}

fn role(name: &str, aggregate_to: &[&str], rules: Vec<PolicyRule>) -> ClusterRole {
    let mut metadata = labels::cluster_scoped(name);
    let label =
        |role: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".to_owned());
    metadata.labels.get_or_insert_default().extend(aggregate_to.iter().map(label));
    ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() }
}

fn rules(verbs: &[&str], resource: impl Fn(&Kind) -> Option<String>) -> Vec<PolicyRule> {
    let rule = |(group, resources): (&str, Vec<String>)| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    by_group(resource).into_iter().map(rule).collect()
}
