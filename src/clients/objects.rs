//! Namespaced objects of any kind: get, list, create, apply, patch, delete.
//!
//! Each call has a timeout. Nothing is retried here; a write is sent only while this replica leads, and
//! a deletion hits exactly the observed object or nothing.

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
use super::leader_guard::{LeaderGuard, NotLeading};
use crate::api::names;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What can be request for here.
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

/// Why a write has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// The call failed.
    #[error(transparent)]
    Call(ApiError),
    /// It was not made, or not waited for, because this replica does not lead any more.
    #[error("failed to {verb} {what}")]
    NotLeading {
        verb: &'static str,
        what: String,
        #[source]
        source: NotLeading,
    },
}

impl ObjectError {
    /// Whether something of that name is there already. Other conflicts say nothing of the kind: a quota may answer
    /// so, too.
    pub(crate) fn is_already_exists(&self) -> bool {
        let Self::Call(ApiError::Call { source, .. }) = self else { return false };
        matches!(source.as_ref(), kube::Error::Api(status) if status.reason == "AlreadyExists")
    }

    /// Whether the object itself is not taken: by a quota, a policy, or the API server's own rules.
    pub(crate) fn is_denied(&self) -> bool {
        let Self::Call(ApiError::Call { source, .. }) = self else { return false };
        matches!(source.as_ref(), kube::Error::Api(status) if matches!(status.code, 403 | 422))
    }

    /// What the failure means.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Call(error) => error.class(),
            Self::NotLeading { .. } => ErrorClass::Unreachable,
        }
    }
}

/// The objects that this process can reach.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    leader_guard: LeaderGuard,
}

impl Objects {
    /// The objects that `client` can reach, written while `leader_guard` lasts.
    pub(crate) const fn new(client: Client, leader_guard: LeaderGuard) -> Self {
        Self { client, leader_guard }
    }

    /// The object, or none if the API server says that there is none.
    pub(crate) async fn get<K: NamespacedResource>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, ApiError> {
        let request = request::<K>(namespace).get(name, &GetParams::default());
        let what = describe::<K>(namespace, name);
        let operation = Operation { verb: "read", what: &what, timeout: REQUEST_TIMEOUT };
        none_if_not_found(operation.answer(self.text(request)).await)
    }

    /// Every object with these labels, as the API server has them now and not as a cache had them.
    pub(crate) async fn list<K: NamespacedResource>(
        &self,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<K>, ApiError> {
        let request = request::<K>(namespace).list(&ListParams::default().labels(labels));
        let what = describe::<K>(namespace, labels);
        let operation = Operation { verb: "list", what: &what, timeout: REQUEST_TIMEOUT };
        let list: ObjectList<K> = operation.answer(self.text(request)).await?;
        Ok(list.items)
    }

    /// Makes an object that must not be there yet.
    pub(crate) async fn create<K: NamespacedResource>(&self, object: &K) -> Result<K, ObjectError> {
        let (namespace, name) = namespaced_name(object);
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        let bytes = serde_json::to_vec(object).map_err(kube::Error::SerdeError);
        let call = async {
            let request = request::<K>(&namespace).create(&params, bytes?);
            self.text(request).await
        };
        self.write("make", &describe::<K>(&namespace, &name), call).await
    }

    /// Makes an object, or changes what this operator owns of it.
    pub(crate) async fn apply<K: NamespacedResource>(&self, object: &K) -> Result<K, ObjectError> {
        let (namespace, name) = namespaced_name(object);
        let params = PatchParams::apply(names::OPERATOR).force();
        let request =
            request::<K>(&namespace).patch(&name, &params, &Patch::Apply(with_kind(object)));
        self.write("apply", &describe::<K>(&namespace, &name), self.text(request)).await
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
        self.write("report", &describe::<K>(namespace, name), self.text(request)).await
    }

    /// `ChangeStream` some fields of an object that is there. A `resourceVersion` in the patch binds it to what
    /// was looked at.
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
        self.write("change", &describe::<K>(namespace, name), self.text(request)).await
    }

    /// Deletes exactly this object, as it was looked at. One that is gone already is fine.
    pub(crate) async fn delete<K: NamespacedResource>(
        &self,
        object: &K,
    ) -> Result<(), ObjectError> {
        let (namespace, name) = namespaced_name(object);
        let exactly =
            Preconditions { resource_version: object.resource_version(), uid: object.uid() };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default().preconditions(exactly)
        };
        let request = request::<K>(&namespace).delete(&name, &params);
        let what = describe::<K>(&namespace, &name);
        match self.write::<Done>("delete", &what, self.text(request)).await {
            Ok(Done {}) => Ok(()),
            Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<String> {
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }

    async fn write<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        what: &str,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<T, ObjectError> {
        let operation = Operation { verb, what, timeout: REQUEST_TIMEOUT };
        match self.leader_guard.run(REQUEST_TIMEOUT, operation.answer(call)).await {
            Ok(answer) => answer.map_err(ObjectError::Call),
            Err(source) => Err(ObjectError::NotLeading { verb, what: what.to_owned(), source }),
        }
    }
}

/// The answer to a deletion is the object or a word operation it; nothing of either matters.
#[derive(Deserialize)]
struct Done {}

fn request<K: NamespacedResource>(namespace: &str) -> Request {
    Request::new(K::url_path(&(), Some(namespace)))
}

fn namespaced_name<K: NamespacedResource>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn describe<K: NamespacedResource>(namespace: &str, name: &str) -> String {
    format!("the {} {namespace}/{name}", K::kind(&()))
}

/// What is applied must say what it is; objects of Kubernetes' own types do not carry that.
fn with_kind<K: NamespacedResource>(object: &K) -> Value {
    let mut body = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut body {
        fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
        fields.insert("kind".to_owned(), K::kind(&()).into());
    }
    body
}
