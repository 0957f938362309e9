//! What is sent to the API server: the binding, its repair, and the conditions of an object. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::conditions::{AccessCondition, ConditionUpdate, MissingAccess};
use super::decide::Target;
use super::state;
use crate::api::condition::{NAMESPACE_NOT_GRANTED, READY, STALLED};
use crate::api::names;

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The binding for `namespace`, for an operator that runs in the namespace `operator`.
pub(crate) fn binding(namespace: &str, operator: &str) -> RoleBinding {
    let labels = [
        (names::NAME_LABEL, names::OPERATOR),
        (names::PART_OF_LABEL, names::OPERATOR),
        (names::MANAGED_BY_LABEL, names::OPERATOR),
    ];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    RoleBinding {
        metadata: ObjectMeta {
            name: Some(names::NAMESPACE_ROLE_BINDING.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels.into_iter().map(owned).collect::<BTreeMap<_, _>>()),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: RBAC_GROUP.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: names::NAMESPACE_ROLE.to_owned(),
        },
        subjects: Some(vec![account(operator)]),
    }
}

fn account(operator: &str) -> Subject {
    Subject {
        api_group: None,
        kind: "ServiceAccount".to_owned(),
        name: names::OPERATOR.to_owned(),
        namespace: Some(operator.to_owned()),
    }
}

/// Resets the subjects to the operator's service account. Another UID or version is a conflict.
pub(crate) fn repair(target: &Target, operator: &str) -> Value {
    let Target { uid, resource_version } = target;
    json!({
        "metadata": { "uid": uid, "resourceVersion": resource_version },
        "subjects": [account(operator)],
    })
}

/// The body to apply to the status of `object`; `None` if the status is up to date. Server-side
/// apply removes the conditions that the body no longer has.
pub(crate) fn status(
    object: &DynamicObject,
    update: &ConditionUpdate,
    operator: &str,
    now: Timestamp,
) -> Option<Value> {
    let has_condition = state::has_condition(&object.metadata);
    let kind = update.kind.0;
    let body = |status: Option<Value>| {
        let mut body = json!({
            "apiVersion": kind.api_version(kind.hub()),
            "kind": kind.name,
            "metadata": { "name": update.name, "namespace": update.namespace, "uid": update.uid },
        });
        if let (Some(fields), Some(status)) = (body.as_object_mut(), status) {
            fields.insert("status".to_owned(), status);
        }
        body
    };
    let missing = match update.condition {
        AccessCondition::Absent => return has_condition.then(|| body(None)),
        AccessCondition::NotGranted(missing) => missing,
    };
    let message = message(missing, &update.namespace, operator);
    let conditions = [(READY, "False"), (STALLED, "True")]
        .map(|(kind, status)| condition(object, kind, status, &message, now));
    let unchanged = conditions.iter().all(|desired| current(object, desired) == Some(desired));
    (!has_condition || !unchanged).then(|| body(Some(json!({ "conditions": conditions }))))
}

/// One condition. An unchanged status keeps its `lastTransitionTime`.
fn condition(
    object: &DynamicObject,
    kind: &str,
    status: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    let mut condition = json!({
        "type": kind,
        "status": status,
        "observedGeneration": object.metadata.generation.unwrap_or_default(),
        "lastTransitionTime": now.round(Unit::Second).unwrap_or(now).to_string(),
        "reason": NAMESPACE_NOT_GRANTED,
        "message": message,
    });
    let current =
        current(object, &condition).filter(|current| current.get("status") == Some(&json!(status)));
    let since = current.and_then(|current| current.get("lastTransitionTime")).cloned();
    if let (Some(fields), Some(since)) = (condition.as_object_mut(), since) {
        fields.insert("lastTransitionTime".to_owned(), since);
    }
    condition
}

/// The condition of the object with the type of `desired`.
fn current<'a>(object: &'a DynamicObject, desired: &Value) -> Option<&'a Value> {
    let conditions = object.data.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type") == desired.get("type"))
}

fn message(missing: MissingAccess, namespace: &str, operator: &str) -> String {
    let (binding, role, account) =
        (names::NAMESPACE_ROLE_BINDING, names::NAMESPACE_ROLE, names::OPERATOR);
    let command = format!(
        "kubectl -n {namespace} create rolebinding {binding} --clusterrole={role} \
         --serviceaccount={operator}:{account}"
    );
    match missing {
        MissingAccess::NoBinding => format!(
            "The operator has no access to namespace {namespace}: RoleBinding {binding} not found. \
             Reconciliation starts automatically once an administrator creates it: {command}"
        ),
        MissingAccess::BindingMismatch => format!(
            "The operator has no access to namespace {namespace}: RoleBinding {binding} does not \
             bind ClusterRole {role} to ServiceAccount {operator}/{account}. Reconciliation starts \
             automatically once it does. If that RoleBinding is not needed, an administrator can \
             delete it and run: {command}"
        ),
    }
}

#[cfg(test)]
mod tests;
