//! Client of one named object: read, create, replace, watch.
//!
//! For the objects that cannot use the leader guard: the Lease, by which a replica becomes leader,
//! and the webhook CA Secret, which every replica reads. Each call has a timeout of its caller.
//! Nothing is retried here.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{GetParams, PartialObjectMeta};
use kube::core::Request;
use kube::{Api, Client};

use super::error::{ApiError, Operation, none_if_not_found};
use super::kube::request_text;
use super::notify::{self, ChangeStream};
use super::objects::{NamespacedResource, describe, post_params, request};

/// The leader election Lease.
pub(crate) type LeaseClient = NamedObject<Lease>;
/// The Secret with the CAs of the webhooks.
pub(crate) type CaSecretClient = NamedObject<Secret>;

/// One object at the API server.
#[derive(Clone)]
pub(crate) struct NamedObject<K> {
    client: Client,
    pub(crate) name: String,
    pub(crate) namespace: String,
    kind: PhantomData<K>,
}

impl<K: NamespacedResource> NamedObject<K> {
    /// The object `name` in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { client, name, namespace, kind: PhantomData }
    }

    /// The object, or none if it does not exist.
    pub(crate) async fn read(&self, timeout: Duration) -> Result<Option<K>, ApiError> {
        let request = self.request().get(&self.name, &GetParams::default());
        none_if_not_found(self.call("read", timeout, request_text(&self.client, request)).await)
    }

    /// Creates the object; a conflict if it exists.
    pub(crate) async fn create(&self, object: &K, timeout: Duration) -> Result<K, ApiError> {
        let call = async {
            let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
            request_text(&self.client, self.request().create(&post_params(), body)).await
        };
        self.call("create", timeout, call).await
    }

    /// Replaces the object; a conflict if it is no longer the version in `object`.
    pub(crate) async fn replace(&self, object: &K, timeout: Duration) -> Result<K, ApiError> {
        let call = async {
            let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
            let request = self.request().replace(&self.name, &post_params(), body);
            request_text(&self.client, request).await
        };
        self.call("replace", timeout, call).await
    }

    /// Notifications of changes to the object.
    pub(crate) fn changes(&self) -> ChangeStream
    where
        K: Debug + Send + 'static,
    {
        let api = Api::<PartialObjectMeta<K>>::namespaced(self.client.clone(), &self.namespace);
        notify::merge([notify::on_change(api, &self.name)])
    }

    fn request(&self) -> Request {
        request::<K>(&self.namespace)
    }

    async fn call(
        &self,
        verb: &'static str,
        timeout: Duration,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<K, ApiError> {
        let what = describe::<K>(&self.namespace, &self.name);
        Operation { verb, what: &what, timeout }.response(call).await
    }
}
