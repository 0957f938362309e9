//! Who the operator is and what it may do: exactly the calls that it makes.
//! Comes in: a namespace. Goes out: a `ServiceAccount`, a Role and its `RoleBinding`.
//! May touch: `api::names` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};

use super::labels;
use crate::api::names;

const LEASE_GROUP: &str = "coordination.k8s.io";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The operator's account. Only the operator's own pod mounts its token, and says so itself.
pub(super) fn service_account(namespace: &str) -> ServiceAccount {
    ServiceAccount {
        metadata: labels::metadata(namespace),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// What the replicas need to compete for their Lease. `create` stands alone because Kubernetes
/// cannot restrict it by name: the name is not known yet when a creation is judged.
pub(super) fn role(namespace: &str) -> Role {
    let leases = |verbs: &[&str], named: Option<&str>| PolicyRule {
        api_groups: Some(vec![LEASE_GROUP.to_owned()]),
        resources: Some(vec!["leases".to_owned()]),
        resource_names: named.map(|name| vec![name.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    Role {
        metadata: labels::metadata(namespace),
        rules: Some(vec![
            leases(&["create"], None),
            leases(&["get", "update"], Some(names::LEASE)),
        ]),
    }
}

/// Gives the Role to the account.
pub(super) fn role_binding(namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: labels::metadata(namespace),
        role_ref: RoleRef {
            api_group: RBAC_GROUP.to_owned(),
            kind: "Role".to_owned(),
            name: names::OPERATOR.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: names::OPERATOR.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
    }
}
