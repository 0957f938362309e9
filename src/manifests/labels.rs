//! Labels and metadata that all installed objects have in common.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::api::names;

/// The labels of all installed objects.
pub(super) fn labels() -> BTreeMap<String, String> {
    string_map(&[
        (names::NAME_LABEL, names::OPERATOR),
        (names::COMPONENT_LABEL, "operator"),
        (names::PART_OF_LABEL, names::OPERATOR),
        (names::VERSION_LABEL, names::VERSION),
        (names::MANAGED_BY_LABEL, "kubectl"),
    ])
}

/// Selects the operator's pods, only by name: a selector is immutable.
pub(super) fn selector() -> LabelSelector {
    LabelSelector { match_labels: Some(selector_labels()), match_expressions: None }
}

/// The labels of the selector.
pub(super) fn selector_labels() -> BTreeMap<String, String> {
    string_map(&[(names::NAME_LABEL, names::OPERATOR)])
}

/// The metadata of an object called `quorate` in `namespace`.
pub(super) fn metadata(namespace: &str) -> ObjectMeta {
    named(names::OPERATOR, namespace)
}

/// The metadata of an object in `namespace`.
pub(super) fn named(name: &str, namespace: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), ..cluster_scoped(name) }
}

/// The metadata of a cluster-scoped object.
pub(super) fn cluster_scoped(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels()), ..ObjectMeta::default() }
}

/// A map of owned strings.
pub(super) fn string_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
