//! What is sent to the API server: the binding, the repair of one, and what an object says.
//! Comes in: a namespace, a word, the object as it was read. Goes out: objects and patches.
//! May touch: `api` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::complain::{Lack, Says, Word};
use super::decide::Target;
use super::seen;
use crate::api::condition::{NAMESPACE_NOT_GRANTED, READY, STALLED};
use crate::api::names;

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The binding that grants `namespace` to the operator in the namespace `operator`.
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

/// Binds the operator's account again, and nobody else. With another uid or version it is refused.
pub(crate) fn repair(target: &Target, operator: &str) -> Value {
    let Target { uid, version } = target;
    json!({
        "metadata": { "uid": uid, "resourceVersion": version },
        "subjects": [account(operator)],
    })
}

/// What to apply to the status of `object`, so that it says what the word wants; nothing, if it
/// says so already. What is not in it any more is taken back.
pub(crate) fn status(
    object: &DynamicObject,
    word: &Word,
    operator: &str,
    now: Timestamp,
) -> Option<Value> {
    let marked = seen::is_marked(&object.metadata);
    let kind = word.which.0;
    let body = |status: Option<Value>| {
        let mut body = json!({
            "apiVersion": kind.api_version(kind.hub()),
            "kind": kind.name,
            "metadata": { "name": word.name, "namespace": word.namespace, "uid": word.uid },
        });
        if let (Some(fields), Some(status)) = (body.as_object_mut(), status) {
            fields.insert("status".to_owned(), status);
        }
        body
    };
    let lack = match word.says {
        Says::Nothing => return marked.then(|| body(None)),
        Says::NotGranted(lack) => lack,
    };
    let message = message(lack, &word.namespace, operator);
    let conditions = [(READY, "False"), (STALLED, "True")]
        .map(|(kind, status)| condition(object, kind, status, &message, now));
    let unchanged = conditions.iter().all(|wanted| standing(object, wanted) == Some(wanted));
    (!marked || !unchanged).then(|| body(Some(json!({ "conditions": conditions }))))
}

/// One condition. It keeps the time since when it is so.
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
    let before = standing(object, &condition).filter(|it| it.get("status") == Some(&json!(status)));
    let since = before.and_then(|it| it.get("lastTransitionTime")).cloned();
    if let (Some(fields), Some(since)) = (condition.as_object_mut(), since) {
        fields.insert("lastTransitionTime".to_owned(), since);
    }
    condition
}

/// The condition of the object that has the type of `wanted`.
fn standing<'a>(object: &'a DynamicObject, wanted: &Value) -> Option<&'a Value> {
    let conditions = object.data.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|it| it.get("type") == wanted.get("type"))
}

fn message(lack: Lack, namespace: &str, operator: &str) -> String {
    let (grant, role, account) =
        (names::NAMESPACE_ROLE_BINDING, names::NAMESPACE_ROLE, names::OPERATOR);
    let command = format!(
        "kubectl -n {namespace} create rolebinding {grant} --clusterrole={role} \
         --serviceaccount={operator}:{account}"
    );
    match lack {
        Lack::NoBinding => format!(
            "The operator may not work in the namespace {namespace} until an administrator grants \
             it; work begins by itself then. To grant it: {command}"
        ),
        Lack::OtherBinding => format!(
            "The operator may not work in the namespace {namespace}: the RoleBinding {grant} does \
             not give the ClusterRole {role} to the ServiceAccount {operator}/{account}. Work \
             begins by itself when it does. If nobody needs that RoleBinding, an administrator \
             deletes it and then grants the namespace: {command}"
        ),
    }
}

#[cfg(test)]
mod tests;
