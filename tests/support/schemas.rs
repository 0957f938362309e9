//! The schemas of the definitions, as JSON. Made once, because making them is slow.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use quorate::api::crd;
use serde_json::Value;

/// The schema of one version of a kind.
pub(crate) fn schema(kind: &str, version: &str) -> Value {
    static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(crd::all);
    let definition = DEFINITIONS.iter().find(|it| it.spec.names.kind == kind).unwrap();
    let version = definition.spec.versions.iter().find(|it| it.name == version).unwrap();
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref();
    serde_json::to_value(schema.unwrap()).unwrap()
}
