//! The custom resource definitions of this release, in the order in which they are installed.
//! Comes in: nothing. Goes out: definitions, ready to be written as YAML.
//! May touch: k8s-openapi types only. `quorate crds` and the drift test both read this one list.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every definition of this release. A new kind is one more entry here.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    Vec::new()
}

/// The name of the file that holds one definition, such as `things.example.org.yaml`.
#[must_use]
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}.{}.yaml", definition.spec.names.plural, definition.spec.group)
}
