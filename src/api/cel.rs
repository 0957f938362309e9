//! Rules for the apiserver, in its language CEL.
//! Comes in: an expression and a sentence. Goes out: entries of `x-kubernetes-validations`.
//! May touch: `serde_json`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

#[cfg(test)]
use std::sync::LazyLock;

#[cfg(test)]
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// One rule with the sentence that a user reads when it is broken.
pub(crate) fn rule(expression: impl Into<String>, message: impl Into<String>) -> Value {
    json!({ "rule": expression.into(), "message": message.into() })
}

/// Whether every step of `path` is there. CEL fails on the first that is not, so each is asked for.
pub(crate) fn has_path(root: &str, path: &str) -> String {
    let mut asked = Vec::new();
    let mut so_far = root.to_owned();
    for step in path.split('.') {
        so_far = format!("{so_far}.{step}");
        asked.push(format!("has({so_far})"));
    }
    asked.join(" && ")
}

/// A value that is there stays what it is, and one that is not there stays away.
pub(crate) fn immutable(path: &str, because: &str) -> Value {
    let (has, had) = (has_path("self", path), has_path("oldSelf", path));
    rule(
        format!("({has}) == ({had}) && (!({has}) || self.{path} == oldSelf.{path})"),
        format!("`{path}` may not be changed: {because}"),
    )
}

/// The size of volumes stays said. That it does not shrink is a rule of the size itself.
pub(crate) fn size_not_removed(path: &str) -> Value {
    rule(
        format!("!({}) || ({})", has_path("oldSelf", path), has_path("self", path)),
        format!("`{path}` may not be removed: the volumes have this size; leave it as it is"),
    )
}

/// A name that begins with a letter, with at most `most` characters, and the reason for that.
pub(crate) fn name_rule(most: usize, because: &str) -> Value {
    rule(
        format!(
            "self.metadata.name.size() <= {most} && \
             self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"
        ),
        format!(
            "the name must begin with a letter, have only lower case letters, digits and dashes, \
             and at most {most} characters: {because}"
        ),
    )
}

/// What the rules of a kind, in one version, say to an object that was `old`.
#[cfg(test)]
#[track_caller]
pub(crate) fn violations(
    kind: &str,
    version: &str,
    old: Option<&Value>,
    new: &Value,
) -> Vec<String> {
    static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> =
        LazyLock::new(crate::api::crd::all);
    let definition = DEFINITIONS.iter().find(|it| it.spec.names.kind == kind).unwrap();
    let version = definition.spec.versions.iter().find(|it| it.name == version).unwrap();
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    let schema = serde_json::to_value(schema).unwrap();
    let judged = kube::core::cel::Validator::new().validate(&schema, new, old);
    let errors = judged.err().map(kube::core::cel::ValidationErrors::into_vec).unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}
