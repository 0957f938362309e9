//! The operator's namespace, in which only restricted pods are admitted.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::labels;

/// The namespace, with the `restricted` pod security standard, which the operator's pods meet.
pub(super) fn namespace(name: &str) -> Namespace {
    let mut all = labels::labels();
    all.extend(labels::string_map(&[
        ("pod-security.kubernetes.io/enforce", "restricted"),
        ("pod-security.kubernetes.io/audit", "restricted"),
        ("pod-security.kubernetes.io/warn", "restricted"),
    ]));
    Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(all),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}
