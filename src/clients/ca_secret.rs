//! The Secret with the CAs of the webhooks: read, create, replace, watch.
//!
//! Each call has a timeout. Nothing is retried here.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{GetParams, PartialObjectMeta, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource};

use super::error::{ApiError, Operation, none_if_not_found};
use super::notify::{self, ChangeStream};
use crate::api::names;

/// The Secret with the authorities.
#[derive(Clone)]
pub(crate) struct CaSecretClient {
    client: Client,
    request: Request,
    /// The Secret's namespace.
    pub(crate) namespace: String,
    what: String,
}

impl CaSecretClient {
    /// The Secret in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            request: Request::new(Secret::url_path(&(), Some(namespace))),
            namespace: namespace.to_owned(),
            what: format!("the secret {namespace}/{}", names::WEBHOOK_CA_SECRET),
        }
    }

    /// The Secret, or none if the API server says that there is none.
    pub(crate) async fn read(&self, timeout: Duration) -> Result<Option<Secret>, ApiError> {
        let call = async {
            let request = self.request.get(names::WEBHOOK_CA_SECRET, &GetParams::default());
            self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
        };
        none_if_not_found(self.operation("read", timeout).answer(call).await)
    }

    /// Makes the Secret; a conflict if it exists.
    pub(crate) async fn create(
        &self,
        secret: &Secret,
        timeout: Duration,
    ) -> Result<Secret, ApiError> {
        let call = async {
            let body = serde_json::to_vec(secret).map_err(kube::Error::SerdeError)?;
            let request = self.request.create(&post_params(), body);
            self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
        };
        self.operation("create", timeout).answer(call).await
    }

    /// Replaces the Secret; a conflict if it is not the version in `secret` any more.
    pub(crate) async fn replace(
        &self,
        secret: &Secret,
        timeout: Duration,
    ) -> Result<Secret, ApiError> {
        let call = async {
            let body = serde_json::to_vec(secret).map_err(kube::Error::SerdeError)?;
            let request = self.request.replace(names::WEBHOOK_CA_SECRET, &post_params(), body);
            self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
        };
        self.operation("replace", timeout).answer(call).await
    }

    /// The news that the Secret has changed.
    pub(crate) fn changes(&self) -> ChangeStream {
        let api =
            Api::<PartialObjectMeta<Secret>>::namespaced(self.client.clone(), &self.namespace);
        notify::merge([notify::on_change(api, names::WEBHOOK_CA_SECRET)])
    }

    fn operation(&self, verb: &'static str, timeout: Duration) -> Operation<'_> {
        Operation { verb, what: &self.what, timeout }
    }
}

fn post_params() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) }
}
