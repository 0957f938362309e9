//! Reads the CRDs of a cluster.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::GetParams;
use kube::core::Request;
use kube::{Client, Resource};

use super::error::{ApiError, Operation, none_if_not_found};
use super::kube::request_text;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The CRD with this name, or none if it does not exist.
pub(crate) async fn read(
    client: &Client,
    name: &str,
) -> Result<Option<CustomResourceDefinition>, ApiError> {
    let request = Request::new(CustomResourceDefinition::url_path(&(), None));
    let request = request.get(name, &GetParams::default());
    let what = format!("CRD {name}");
    let operation = Operation { verb: "read", what: &what, timeout: REQUEST_TIMEOUT };
    none_if_not_found(operation.response(request_text(client, request)).await)
}
