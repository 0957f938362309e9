//! Schemas of the CRDs as JSON, generated once because that is slow.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use quorate::api::crd;
use serde_json::Value;

/// The schema of one version of a kind.
pub(crate) fn schema(kind: &str, version: &str) -> Value {
    static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(crd::all);
    let crd = CRDS.iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let version = crd.spec.versions.iter().find(|served| served.name == version).unwrap();
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref();
    serde_json::to_value(schema.unwrap()).unwrap()
}
