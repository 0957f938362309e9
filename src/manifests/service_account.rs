//! The operator's `ServiceAccount`, roles and bindings.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject,
};

use super::labels;
use super::rbac::{self, Permission, RBAC_GROUP, Scope};
use crate::api::names;

/// The operator's `ServiceAccount`. Its token is mounted only by the operator's pods, which request
/// it explicitly.
pub(super) fn service_account(namespace: &str) -> ServiceAccount {
    ServiceAccount {
        metadata: labels::metadata(namespace),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// The permissions in the operator's own namespace.
pub(super) fn role(namespace: &str, permissions: Vec<Permission>) -> Role {
    Role { metadata: labels::metadata(namespace), rules: Some(rbac::rules(permissions)) }
}

/// Binds the Role to the `ServiceAccount`.
pub(super) fn role_binding(namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: labels::metadata(namespace),
        role_ref: reference("Role", names::OPERATOR),
        subjects: Some(vec![account(namespace)]),
    }
}

/// The `ClusterRole` of one scope. The namespace role is not bound here: the operator binds it in
/// namespaces with objects of its kinds.
pub(super) fn cluster_role(name: &str, permissions: Vec<Permission>) -> ClusterRole {
    ClusterRole {
        metadata: labels::cluster_scoped(name),
        rules: Some(rbac::rules(permissions)),
        ..ClusterRole::default()
    }
}

/// Binds the `ClusterRole` of the same name to the `ServiceAccount`.
pub(super) fn cluster_role_binding(name: &str, namespace: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: labels::cluster_scoped(name),
        role_ref: reference("ClusterRole", name),
        subjects: Some(vec![account(namespace)]),
    }
}

/// The permissions of one scope.
pub(super) fn permissions_in(scope: Scope) -> Vec<Permission> {
    rbac::permissions().into_iter().filter(|permission| permission.scope == scope).collect()
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: RBAC_GROUP.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

fn account(namespace: &str) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: names::OPERATOR.to_owned(),
        namespace: Some(namespace.to_owned()),
        ..Subject::default()
    }
}
