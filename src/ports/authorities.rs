//! The Secret with the authorities at the API server: read, create, replace, watch.
//! Comes in: a Secret to send. Goes out: the Secret as the API server has it, or how the call ended.
//! May touch: the API server, each call within a limit. It chooses nothing and repeats nothing.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{GetParams, PartialObjectMeta, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource};

use super::call::{About, CallError, if_there};
use super::changes::{self, Changes};
use crate::api::names;

/// The Secret with the authorities.
#[derive(Clone)]
pub(crate) struct AuthoritiesPort {
    client: Client,
    request: Request,
    /// The Secret's namespace.
    pub(crate) namespace: String,
    what: String,
}

impl AuthoritiesPort {
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
    pub(crate) async fn read(&self, limit: Duration) -> Result<Option<Secret>, CallError> {
        let call = async {
            let asked = self.request.get(names::WEBHOOK_CA_SECRET, &GetParams::default());
            self.client.request_text(asked.map_err(kube::Error::BuildRequest)?).await
        };
        if_there(self.about("read", limit).answer(call).await)
    }

    /// Makes the Secret; a conflict if it exists.
    pub(crate) async fn create(
        &self,
        secret: &Secret,
        limit: Duration,
    ) -> Result<Secret, CallError> {
        let call = async {
            let body = serde_json::to_vec(secret).map_err(kube::Error::SerdeError)?;
            let asked = self.request.create(&as_us(), body);
            self.client.request_text(asked.map_err(kube::Error::BuildRequest)?).await
        };
        self.about("create", limit).answer(call).await
    }

    /// Replaces the Secret; a conflict if it is not the version in `secret` any more.
    pub(crate) async fn replace(
        &self,
        secret: &Secret,
        limit: Duration,
    ) -> Result<Secret, CallError> {
        let call = async {
            let body = serde_json::to_vec(secret).map_err(kube::Error::SerdeError)?;
            let asked = self.request.replace(names::WEBHOOK_CA_SECRET, &as_us(), body);
            self.client.request_text(asked.map_err(kube::Error::BuildRequest)?).await
        };
        self.about("replace", limit).answer(call).await
    }

    /// The news that the Secret has changed.
    pub(crate) fn changes(&self) -> Changes {
        let api =
            Api::<PartialObjectMeta<Secret>>::namespaced(self.client.clone(), &self.namespace);
        changes::all([changes::of(api, names::WEBHOOK_CA_SECRET)])
    }

    fn about(&self, doing: &'static str, limit: Duration) -> About<'_> {
        About { doing, what: &self.what, limit }
    }
}

fn as_us() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) }
}
