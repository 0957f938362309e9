//! Objects in a namespace, of any kind: read, applied, patched, deleted; each call with a time limit.
//! Comes in: what to send. Goes out: the answer, or how the call ended. May touch: the API server.
//! It chooses nothing and repeats nothing; a write is made only while this replica leads, and a
//! deletion hits exactly the object that was looked at or nothing.

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

use super::call::{About, CallError, Class, if_there};
use super::mandate::{Mandate, Unled};
use crate::api::names;

const LIMIT: Duration = Duration::from_secs(10);

/// What can be asked for here.
pub(crate) trait Kept:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Serialize + Clone
{
}

impl<K> Kept for K where
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
    Call(CallError),
    /// It was not made, or not waited for, because this replica does not lead any more.
    #[error("failed to {doing} {what}")]
    Unled {
        doing: &'static str,
        what: String,
        #[source]
        source: Unled,
    },
}

impl ObjectError {
    /// Whether something of that name is there already. Other conflicts say nothing of the kind: a quota may answer
    /// so, too.
    pub(crate) fn is_already_there(&self) -> bool {
        let Self::Call(CallError::Call { source, .. }) = self else { return false };
        matches!(source.as_ref(), kube::Error::Api(status) if status.reason == "AlreadyExists")
    }

    /// Whether the object itself is not taken: by a quota, a policy, or the API server's own rules.
    pub(crate) fn is_denied(&self) -> bool {
        let Self::Call(CallError::Call { source, .. }) = self else { return false };
        matches!(source.as_ref(), kube::Error::Api(status) if matches!(status.code, 403 | 422))
    }

    /// What the failure means.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Call(error) => error.class(),
            Self::Unled { .. } => Class::Unreachable,
        }
    }
}

/// The objects that this process can reach.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    mandate: Mandate,
}

impl Objects {
    /// The objects that `client` can reach, written while `mandate` lasts.
    pub(crate) const fn new(client: Client, mandate: Mandate) -> Self {
        Self { client, mandate }
    }

    /// The object, or none if the API server says that there is none.
    pub(crate) async fn get<K: Kept>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, CallError> {
        let asked = request::<K>(namespace).get(name, &GetParams::default());
        let what = words::<K>(namespace, name);
        let about = About { doing: "read", what: &what, limit: LIMIT };
        if_there(about.answer(self.text(asked)).await)
    }

    /// Every object with these labels, as the API server has them now and not as a cache had them.
    pub(crate) async fn list<K: Kept>(
        &self,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<K>, CallError> {
        let asked = request::<K>(namespace).list(&ListParams::default().labels(labels));
        let what = words::<K>(namespace, labels);
        let about = About { doing: "list", what: &what, limit: LIMIT };
        let list: ObjectList<K> = about.answer(self.text(asked)).await?;
        Ok(list.items)
    }

    /// Makes an object that must not be there yet.
    pub(crate) async fn create<K: Kept>(&self, object: &K) -> Result<K, ObjectError> {
        let (namespace, name) = place(object);
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        let bytes = serde_json::to_vec(object).map_err(kube::Error::SerdeError);
        let call = async {
            let asked = request::<K>(&namespace).create(&params, bytes?);
            self.text(asked).await
        };
        self.write("make", &words::<K>(&namespace, &name), call).await
    }

    /// Makes an object, or changes what this operator owns of it.
    pub(crate) async fn apply<K: Kept>(&self, object: &K) -> Result<K, ObjectError> {
        let (namespace, name) = place(object);
        let params = PatchParams::apply(names::OPERATOR).force();
        let asked =
            request::<K>(&namespace).patch(&name, &params, &Patch::Apply(with_kind(object)));
        self.write("apply", &words::<K>(&namespace, &name), self.text(asked)).await
    }

    /// Applies the status of an object.
    pub(crate) async fn apply_status<K: Kept>(
        &self,
        namespace: &str,
        name: &str,
        body: &Value,
    ) -> Result<K, ObjectError> {
        let params = PatchParams::apply(names::OPERATOR).force();
        let asked =
            request::<K>(namespace).patch_subresource("status", name, &params, &Patch::Apply(body));
        self.write("report", &words::<K>(namespace, name), self.text(asked)).await
    }

    /// Changes some fields of an object that is there. A `resourceVersion` in the patch binds it to what
    /// was looked at.
    pub(crate) async fn merge<K: Kept>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<K, ObjectError> {
        let params = PatchParams {
            field_manager: Some(names::OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let asked = request::<K>(namespace).patch(name, &params, &Patch::Merge(patch));
        self.write("change", &words::<K>(namespace, name), self.text(asked)).await
    }

    /// Deletes exactly this object, as it was looked at. One that is gone already is fine.
    pub(crate) async fn delete<K: Kept>(&self, object: &K) -> Result<(), ObjectError> {
        let (namespace, name) = place(object);
        let exactly =
            Preconditions { resource_version: object.resource_version(), uid: object.uid() };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default().preconditions(exactly)
        };
        let asked = request::<K>(&namespace).delete(&name, &params);
        let what = words::<K>(&namespace, &name);
        match self.write::<Done>("delete", &what, self.text(asked)).await {
            Ok(Done {}) => Ok(()),
            Err(error) if error.class() == Class::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn text(
        &self,
        asked: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<String> {
        self.client.request_text(asked.map_err(kube::Error::BuildRequest)?).await
    }

    async fn write<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        what: &str,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<T, ObjectError> {
        let about = About { doing, what, limit: LIMIT };
        match self.mandate.during(LIMIT, about.answer(call)).await {
            Ok(answer) => answer.map_err(ObjectError::Call),
            Err(source) => Err(ObjectError::Unled { doing, what: what.to_owned(), source }),
        }
    }
}

/// The answer to a deletion is the object or a word about it; nothing of either matters.
#[derive(Deserialize)]
struct Done {}

fn request<K: Kept>(namespace: &str) -> Request {
    Request::new(K::url_path(&(), Some(namespace)))
}

fn place<K: Kept>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn words<K: Kept>(namespace: &str, name: &str) -> String {
    format!("the {} {namespace}/{name}", K::kind(&()))
}

/// What is applied must say what it is; objects of Kubernetes' own types do not carry that.
fn with_kind<K: Kept>(object: &K) -> Value {
    let mut body = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut body {
        fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
        fields.insert("kind".to_owned(), K::kind(&()).into());
    }
    body
}
