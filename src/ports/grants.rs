//! The objects and bindings of a namespace at the API server: watched, looked at, written; each
//! call with a time limit.
//! Comes in: what to send. Goes out: the answer, or how the call ended. May touch: the API server.
//! It chooses nothing and repeats nothing; a write is made only while this replica leads.

use std::fmt;
use std::time::Duration;

use futures::stream::BoxStream;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PartialObjectMeta,
    Patch, PatchParams, PostParams, Preconditions,
};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time;

use crate::api::kinds::Kind;
use crate::api::names;
use crate::ports::mandate::{Mandate, Unled};
use crate::ports::watch::{WatchError, follow};

/// One call takes no longer.
const LIMIT: Duration = Duration::from_secs(10);
/// The cause that the API server gives when it makes nothing new in a namespace that is going.
const TERMINATING: &str = "NamespaceTerminating";

type Told<K> = BoxStream<'static, Result<Event<K>, WatchError>>;

/// The way to objects and bindings.
#[derive(Clone)]
pub(crate) struct GrantsPort {
    client: Client,
    mandate: Mandate,
}

/// What is being done, in the words of the rights that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    List,
    Create,
    Patch,
    Delete,
    Read,
    ApplyStatus,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list objects",
            Self::Create => "create a rolebinding",
            Self::Patch => "patch a rolebinding",
            Self::Delete => "delete a rolebinding",
            Self::Read => "get an object",
            Self::ApplyStatus => "patch the status of an object",
        })
    }
}

/// How a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantsError {
    /// The API server answered with an error, or could not be reached.
    #[error("failed to {doing}")]
    Call {
        doing: Doing,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time.
    #[error("failed to {doing}: no answer within {}ms", LIMIT.as_millis())]
    TimedOut { doing: Doing },
    /// A write was not made or not waited for, because this replica does not lead any more.
    #[error("failed to {doing}")]
    Unled {
        doing: Doing,
        #[source]
        source: Unled,
    },
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// There is no such object, no such kind, or no such namespace.
    NotFound,
    /// It has changed since it was read, or exists already.
    Conflict,
    /// The namespace is going.
    Terminating,
    /// The operator's account has not the right to do this.
    Forbidden,
    /// The API server understood and said no.
    Refused,
    /// The API server is not well or cannot be reached. Nobody knows whether it was done.
    Unwell,
    /// This replica does not lead.
    NotLeading,
}

impl GrantsError {
    /// What was being done.
    pub(crate) const fn doing(&self) -> Doing {
        match self {
            Self::Call { doing, .. } | Self::TimedOut { doing } | Self::Unled { doing, .. } => {
                *doing
            }
        }
    }

    /// What the failure means; the only place that knows status codes.
    pub(crate) fn class(&self) -> Class {
        let source = match self {
            Self::Unled { source: Unled::NotLeading, .. } => return Class::NotLeading,
            Self::TimedOut { .. } | Self::Unled { source: Unled::OutOfTime(_), .. } => {
                return Class::Unwell;
            }
            Self::Call { source, .. } => source.as_ref(),
        };
        let kube::Error::Api(status) = source else { return Class::Unwell };
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        match status.code {
            403 if causes.any(|cause| cause.reason == TERMINATING) => Class::Terminating,
            401 | 403 => Class::Forbidden,
            404 => Class::NotFound,
            409 => Class::Conflict,
            429 => Class::Unwell,
            400..=499 => Class::Refused,
            _ => Class::Unwell,
        }
    }
}

impl GrantsPort {
    pub(crate) const fn new(client: Client, mandate: Mandate) -> Self {
        Self { client, mandate }
    }

    /// The metadata of all objects of a kind, wherever they are.
    pub(crate) fn watch(&self, kind: &Kind) -> Told<PartialObjectMeta<DynamicObject>> {
        follow(Api::all_with(self.client.clone(), &resource(kind)), Config::default())
    }

    /// All bindings with the name of the grant. The right to see them is restricted to that name,
    /// so the name must be in the question.
    pub(crate) fn watch_bindings(&self) -> Told<RoleBinding> {
        let named = Config::default().fields(&format!("metadata.name={}", names::GRANT));
        follow(Api::all(self.client.clone()), named)
    }

    /// Whether a namespace has an object of this kind right now. The API server asks its store, not
    /// its cache.
    pub(crate) async fn has_any(&self, kind: &Kind, namespace: &str) -> Result<bool, GrantsError> {
        let client = self.client.clone();
        let objects = Api::<PartialObjectMeta>::namespaced_with(client, namespace, &resource(kind));
        let one = ListParams::default().limit(1);
        let list = read(Doing::List, objects.list(&one)).await?;
        Ok(!list.items.is_empty())
    }

    /// Makes a binding; a conflict if there is one.
    pub(crate) async fn create(&self, binding: &RoleBinding) -> Result<RoleBinding, GrantsError> {
        let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
        let api = self.bindings(namespace);
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        self.write(Doing::Create, api.create(&params, binding)).await
    }

    /// Merges a patch into a binding; a conflict if it names another version than there is.
    pub(crate) async fn patch(
        &self,
        namespace: &str,
        patch: &Value,
    ) -> Result<RoleBinding, GrantsError> {
        let api = self.bindings(namespace);
        let params = PatchParams {
            field_manager: Some(names::OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        self.write(Doing::Patch, api.patch(names::GRANT, &params, &patch)).await
    }

    /// Deletes exactly this version of this binding; a conflict if there is another.
    pub(crate) async fn delete(
        &self,
        namespace: &str,
        uid: &str,
        version: &str,
    ) -> Result<(), GrantsError> {
        let exactly =
            Preconditions { resource_version: Some(version.to_owned()), uid: Some(uid.to_owned()) };
        let params = DeleteParams::default().preconditions(exactly);
        let api = self.bindings(namespace);
        self.write(Doing::Delete, api.delete(names::GRANT, &params)).await.map(drop)
    }

    /// An object as it is; nothing, if there is none.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, GrantsError> {
        read(Doing::Read, self.objects(kind, namespace).get_opt(name)).await
    }

    /// Applies to an object's status what this wing has to say in it.
    pub(crate) async fn apply_status(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<DynamicObject, GrantsError> {
        let api = self.objects(kind, namespace);
        let params = PatchParams::apply(names::GRANTS_FIELD_MANAGER).force();
        let status = Patch::Apply(status);
        self.write(Doing::ApplyStatus, api.patch_status(name, &params, &status)).await
    }

    fn bindings(&self, namespace: &str) -> Api<RoleBinding> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn objects(&self, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(kind))
    }

    async fn write<T>(
        &self,
        doing: Doing,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, GrantsError> {
        match self.mandate.during(LIMIT, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(GrantsError::Call { doing, source: Box::new(source) }),
            Err(source) => Err(GrantsError::Unled { doing, source }),
        }
    }
}

async fn read<T>(
    doing: Doing,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, GrantsError> {
    match time::timeout(LIMIT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(GrantsError::Call { doing, source: Box::new(source) }),
        // The timer has nothing to tell but that it rang.
        Err(time::error::Elapsed { .. }) => Err(GrantsError::TimedOut { doing }),
    }
}

/// Where a kind is served. The plural is guessed as our definitions spell it; a test compares.
fn resource(kind: &Kind) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group, kind.hub().name, kind.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kinds;

    fn refused(code: u16, cause: &str) -> Class {
        let status = serde_json::json!({
            "status": "Failure", "code": code, "details": { "causes": [{ "reason": cause }] },
        });
        let status = serde_json::from_value(status).unwrap();
        let source = Box::new(kube::Error::Api(Box::new(status)));
        GrantsError::Call { doing: Doing::Create, source }.class()
    }

    #[test]
    fn a_namespace_that_is_going_is_told_from_a_right_that_is_missing() {
        assert_eq!(refused(403, "NamespaceTerminating"), Class::Terminating);
        assert_eq!(refused(403, ""), Class::Forbidden);
        assert_eq!(refused(401, ""), Class::Forbidden);
        assert_eq!(refused(404, ""), Class::NotFound);
        assert_eq!(refused(409, ""), Class::Conflict);
        assert_eq!(refused(422, ""), Class::Refused);
        assert_eq!(refused(429, ""), Class::Unwell);
        assert_eq!(refused(500, ""), Class::Unwell);
    }

    #[test]
    fn every_kind_is_asked_for_where_its_definition_says() {
        for kind in kinds::ALL {
            let plural = kind.hub().definition().spec.names.plural;
            assert_eq!(resource(kind).plural, plural);
        }
    }
}
