//! Aggregated `ClusterRoles` for users of our kinds, added to `view`, `edit` and `admin`.
//!
//! Without them only cluster admins could use our kinds. EtcdMember is written by the operator: users
//! read it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use super::labels;
use super::rbac::{by_group, has_scale};
use crate::api::kinds::{self, Kind};
use crate::api::names;

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// What `kubectl scale` and an autoscaler do.
const SCALE: [&str; 3] = ["get", "update", "patch"];

/// Who may look at everything may look at our kinds.
pub(super) fn view() -> ClusterRole {
    // Members of `edit` and `admin` may do what members of `view` may do: Kubernetes sees to that.
    role(names::VIEW_ROLE, &["view"], rules(&READ, |kind| Some(kind.plural())))
}

/// Who may change everything may change our kinds, but for those that are the operator's.
pub(super) fn edit() -> ClusterRole {
    let written = |kind: &Kind| (kind.name != kinds::ETCD_MEMBER.name).then(|| kind.plural());
    let scaled = |kind: &Kind| has_scale(kind).then(|| format!("{}/scale", kind.plural()));
    let rules = [rules(&WRITE, written), rules(&SCALE, scaled)].concat();
    role(names::EDIT_ROLE, &["edit", "admin"], rules)
}

fn role(name: &str, joins: &[&str], rules: Vec<PolicyRule>) -> ClusterRole {
    let mut metadata = labels::cluster_scoped(name);
    let label =
        |role: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".to_owned());
    metadata.labels.get_or_insert_default().extend(joins.iter().map(label));
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
