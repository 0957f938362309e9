//! Namespaced objects of any kind: get, list, create, apply, patch, delete.
//!
//! Each call has a timeout. Nothing is retried here; a write is sent only while this replica leads,
//! and a deletion hits exactly the observed object or nothing.

use std::time::Duration;

use kube::api::{
    DeleteParams, GetParams, ListParams, ObjectList, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy,
};
use kube::core::{NamespaceResourceScope, Request};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{ApiError, ErrorClass, Operation, none_if_not_found};
use super::kube::request_text;
use super::leader_guard::{LeaderGuard, NotLeading};
use crate::api::names;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A namespaced kind.
pub(crate) trait NamespacedResource:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Serialize + Clone
{
}

impl<K> NamespacedResource for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + DeserializeOwned
        + Serialize
        + Clone
{
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// The call failed.
    #[error(transparent)]
    Call(ApiError),
    /// Not sent, or no longer waited for, because this replica does not lead.
    #[error("failed to {verb} {what}")]
    NotLeading {
        verb: &'static str,
        what: String,
        #[source]
        source: NotLeading,
    },
}

impl ObjectError {
    /// See [`ApiError::is_already_exists`].
    pub(crate) fn is_already_exists(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_already_exists())
    }

    /// See [`ApiError::is_denied`].
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_denied())
    }

    /// The class of the error.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Call(error) => error.class(),
            Self::NotLeading { .. } => ErrorClass::Unreachable,
        }
    }
}

/// Client of namespaced objects.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    leader_guard: LeaderGuard,
}

impl Objects {
    /// Writes are sent only while `leader_guard` allows.
    pub(crate) const fn new(client: Client, leader_guard: LeaderGuard) -> Self {
        Self { client, leader_guard }
    }

    /// The object, or none if it does not exist.
    pub(crate) async fn get<K: NamespacedResource>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, ApiError> {
        let request = request::<K>(namespace).get(name, &GetParams::default());
        let what = describe::<K>(namespace, name);
        let operation = Operation { verb: "read", what: &what, timeout: REQUEST_TIMEOUT };
        none_if_not_found(operation.response(request_text(&self.client, request)).await)
    }

    /// Every object with these labels, read from the API server and not from a cache.
    pub(crate) async fn list<K: NamespacedResource>(
        &self,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<K>, ApiError> {
        let request = request::<K>(namespace).list(&ListParams::default().labels(labels));
        let what = describe::<K>(namespace, labels);
        let operation = Operation { verb: "list", what: &what, timeout: REQUEST_TIMEOUT };
        let list: ObjectList<K> = operation.response(request_text(&self.client, request)).await?;
        Ok(list.items)
    }

    /// Creates an object that must not exist yet.
    pub(crate) async fn create<K: NamespacedResource>(&self, object: &K) -> Result<K, ObjectError> {
        let (namespace, name) = namespaced_name(object);
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError);
        let call = async {
            let request = request::<K>(&namespace).create(&post_params(), body?);
            request_text(&self.client, request).await
        };
        self.write("create", &describe::<K>(&namespace, &name), call).await
    }

    /// Creates an object, or changes the fields that the operator owns, by server-side apply.
    pub(crate) async fn apply<K: NamespacedResource>(&self, object: &K) -> Result<K, ObjectError> {
        let (namespace, name) = namespaced_name(object);
        let params = PatchParams::apply(names::OPERATOR).force();
        let request =
            request::<K>(&namespace).patch(&name, &params, &Patch::Apply(with_kind(object)));
        self.write("apply", &describe::<K>(&namespace, &name), request_text(&self.client, request))
            .await
    }

    /// Applies the status of an object.
    pub(crate) async fn apply_status<K: NamespacedResource>(
        &self,
        namespace: &str,
        name: &str,
        body: &Value,
    ) -> Result<K, ObjectError> {
        let params = PatchParams::apply(names::OPERATOR).force();
        let request =
            request::<K>(namespace).patch_subresource("status", name, &params, &Patch::Apply(body));
        self.write(
            "apply the status of",
            &describe::<K>(namespace, name),
            request_text(&self.client, request),
        )
        .await
    }

    /// Changes some fields of an existing object. A `resourceVersion` in the patch binds the write
    /// to the observed version.
    pub(crate) async fn merge<K: NamespacedResource>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<K, ObjectError> {
        let params = PatchParams {
            field_manager: Some(names::OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let request = request::<K>(namespace).patch(name, &params, &Patch::Merge(patch));
        self.write("patch", &describe::<K>(namespace, name), request_text(&self.client, request))
            .await
    }

    /// Deletes exactly this object at the observed version. Success if it does not exist.
    pub(crate) async fn delete<K: NamespacedResource>(
        &self,
        object: &K,
    ) -> Result<(), ObjectError> {
        let (namespace, name) = namespaced_name(object);
        let preconditions =
            Preconditions { resource_version: object.resource_version(), uid: object.uid() };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default().preconditions(preconditions)
        };
        let request = request::<K>(&namespace).delete(&name, &params);
        let what = describe::<K>(&namespace, &name);
        match self.write::<Deleted>("delete", &what, request_text(&self.client, request)).await {
            Ok(Deleted {}) => Ok(()),
            Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        what: &str,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<T, ObjectError> {
        let operation = Operation { verb, what, timeout: REQUEST_TIMEOUT };
        match self.leader_guard.run(REQUEST_TIMEOUT, operation.response(call)).await {
            Ok(response) => response.map_err(ObjectError::Call),
            Err(source) => Err(ObjectError::NotLeading { verb, what: what.to_owned(), source }),
        }
    }
}

/// The response to a deletion is the object or a Status; neither is needed.
#[derive(Deserialize)]
struct Deleted {}

pub(super) fn request<K: NamespacedResource>(namespace: &str) -> Request {
    Request::new(K::url_path(&(), Some(namespace)))
}

fn namespaced_name<K: NamespacedResource>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// The kind, namespace and name.
pub(super) fn describe<K: NamespacedResource>(namespace: &str, name: &str) -> String {
    format!("{} {namespace}/{name}", K::kind(&()))
}

pub(super) fn post_params() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) }
}

/// The object with `apiVersion` and `kind`, which server-side apply requires and the types of
/// Kubernetes itself do not serialize.
fn with_kind<K: NamespacedResource>(object: &K) -> Value {
    let mut body = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut body {
        fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
        fields.insert("kind".to_owned(), K::kind(&()).into());
    }
    body
}
