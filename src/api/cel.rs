//! CEL rules for the API server: entries of `x-kubernetes-validations`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

#[cfg(test)]
use std::sync::LazyLock;

#[cfg(test)]
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// A rule and the message of its violation.
pub(crate) fn rule(expression: impl Into<String>, message: impl Into<String>) -> Value {
    json!({ "rule": expression.into(), "message": message.into() })
}

/// Whether every field of `path` exists. CEL fails on the first one that does not, so `has` is
/// called for each of them.
pub(crate) fn has_path(root: &str, path: &str) -> String {
    let mut checks = Vec::new();
    let mut so_far = root.to_owned();
    for field in path.split('.') {
        so_far = format!("{so_far}.{field}");
        checks.push(format!("has({so_far})"));
    }
    checks.join(" && ")
}

/// A field that may neither be changed nor added nor removed.
pub(crate) fn immutable(path: &str, reason: &str) -> Value {
    let (has, had) = (has_path("self", path), has_path("oldSelf", path));
    rule(
        format!("({has}) == ({had}) && (!({has}) || self.{path} == oldSelf.{path})"),
        format!("`{path}` may not be changed: {reason}"),
    )
}

/// The size of volumes may not be removed. That it may not shrink is a rule of the size itself.
pub(crate) fn size_not_removed(path: &str) -> Value {
    rule(
        format!("!({}) || ({})", has_path("oldSelf", path), has_path("self", path)),
        format!("`{path}` may not be removed: the volumes have this size"),
    )
}

/// A name that begins with a letter and has at most `max_length` characters.
pub(crate) fn name_rule(max_length: usize, reason: &str) -> Value {
    rule(
        format!(
            "self.metadata.name.size() <= {max_length} && \
             self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"
        ),
        format!(
            "the name must begin with a letter, have only lower case letters, digits and dashes, \
             and at most {max_length} characters: {reason}"
        ),
    )
}

/// The messages of the CEL rules of one version that an object violates.
#[cfg(test)]
#[track_caller]
pub(crate) fn violations(
    kind: &str,
    version: &str,
    old: Option<&Value>,
    new: &Value,
) -> Vec<String> {
    static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(crate::api::crd::all);
    let crd = CRDS.iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let version = crd.spec.versions.iter().find(|served| served.name == version).unwrap();
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    let schema = serde_json::to_value(schema).unwrap();
    let result = kube::core::cel::Validator::new().validate(&schema, new, old);
    let errors = result.err().map(kube::core::cel::ValidationErrors::into_vec).unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}
