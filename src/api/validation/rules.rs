//! Validation rules that several kinds share.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod backup;
pub(crate) mod pod;
pub(crate) mod version;
pub(crate) mod volume;

use serde_json::Value;

use super::{Findings, features::Feature};
use crate::api::field::{Field, FromJson};
use crate::api::validation::ValidationContext;
use crate::api::{bytes, names};

/// An object in the hub version.
#[derive(Debug, Default)]
pub(crate) struct HubObject<Spec, Status> {
    pub(crate) name: String,
    /// Empty if the manifest does not set it.
    pub(crate) namespace: String,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

impl<Spec: FromJson + Default, Status: FromJson + Default> HubObject<Spec, Status> {
    pub(crate) fn read(object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self {
            name: text("/metadata/name").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            spec: Field::from_json(object.get("spec")).or_default(),
            status: Field::from_json(object.get("status")).or_default(),
        }
    }
}

/// The name must be short enough for derived names.
pub(crate) fn name(name: &str, max_length: usize, findings: &mut Findings) {
    let length = name.chars().count();
    if length > max_length {
        findings.invalid(
            "metadata.name",
            format!(
                "must have at most {max_length} characters, and has {length}: Services and Pods are \
                 named after it; choose a shorter name"
            ),
        );
    } else if !name.is_empty() && !names::is_dns_1035(name) {
        let dashed = name.to_ascii_lowercase().replace(['.', '_', ' '], "-");
        let example = if names::is_dns_1035(&dashed) { dashed } else { "main".to_owned() };
        findings.invalid(
            "metadata.name",
            format!(
                "must begin with a letter and have only lower case letters, digits and dashes, \
                 such as \"{example}\": Services and Pods are named after it"
            ),
        );
    }
}

/// A size in bytes, if valid.
pub(crate) fn size(text: Option<&str>) -> Option<u64> {
    text.and_then(bytes::parse)
}

/// Rejects an object of a kind that this release does not support.
pub(crate) fn require_kind_feature(
    feature: Feature,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    if let Some(message) = context.features.unsupported_message(feature) {
        findings.forbidden("spec", format!("{message}; do not create objects of this kind"));
    }
}

/// Rejects a field that requests a feature which this release does not support.
pub(crate) fn require_feature(
    feature: Feature,
    requested: bool,
    path: &str,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    if let Some(message) = context.features.unsupported_message(feature).filter(|_| requested) {
        findings.forbidden(path, format!("{message}; remove the field"));
    }
}
