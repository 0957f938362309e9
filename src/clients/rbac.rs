//! Objects and `RoleBindings` of a namespace: watched, read, written.
//!
//! Each call has a timeout. Nothing is retried here; a write is sent only while this replica leads.

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
use crate::clients::leader_guard::{LeaderGuard, NotLeading};
use crate::clients::watch::{WatchError, relisting_watch};

/// One call takes no longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The cause that the API server gives when it makes nothing new in a namespace that is going.
const TERMINATING: &str = "NamespaceTerminating";

type WatchStream<K> = BoxStream<'static, Result<Event<K>, WatchError>>;

/// The way to objects and bindings.
#[derive(Clone)]
pub(crate) struct RbacClient {
    client: Client,
    leader_guard: LeaderGuard,
}

/// What is being done, in the words of the rights that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RbacOperation {
    List,
    Create,
    Patch,
    Delete,
    Read,
    ApplyStatus,
}

impl fmt::Display for RbacOperation {
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
pub(crate) enum RbacError {
    /// The API server answered with an error, or could not be reached.
    #[error("failed to {operation}")]
    Call {
        operation: RbacOperation,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time.
    #[error("failed to {operation}: no answer within {}ms", REQUEST_TIMEOUT.as_millis())]
    TimedOut { operation: RbacOperation },
    /// A write was not made or not waited for, because this replica does not lead any more.
    #[error("failed to {operation}")]
    NotLeading {
        operation: RbacOperation,
        #[source]
        source: NotLeading,
    },
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RbacErrorClass {
    /// There is no such object, no such kind, or no such namespace.
    NotFound,
    /// It has changed since it was read, or exists already.
    Conflict,
    /// The namespace is going.
    Terminating,
    /// The operator's account has not the right to do this.
    Forbidden,
    /// The API server understood and said no.
    Rejected,
    /// The API server is not well or cannot be reached. Nobody knows whether it was done.
    ServerError,
    /// This replica does not lead.
    NotLeading,
}

impl RbacError {
    /// What was being done.
    pub(crate) const fn operation(&self) -> RbacOperation {
        match self {
            Self::Call { operation, .. }
            | Self::TimedOut { operation }
            | Self::NotLeading { operation, .. } => *operation,
        }
    }

    /// What the failure means; the only place that knows status codes.
    pub(crate) fn class(&self) -> RbacErrorClass {
        let source = match self {
            Self::NotLeading { source: NotLeading::Follower, .. } => {
                return RbacErrorClass::NotLeading;
            }
            Self::TimedOut { .. } | Self::NotLeading { source: NotLeading::TimedOut(_), .. } => {
                return RbacErrorClass::ServerError;
            }
            Self::Call { source, .. } => source.as_ref(),
        };
        let kube::Error::Api(status) = source else { return RbacErrorClass::ServerError };
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        match status.code {
            403 if causes.any(|cause| cause.reason == TERMINATING) => RbacErrorClass::Terminating,
            401 | 403 => RbacErrorClass::Forbidden,
            404 => RbacErrorClass::NotFound,
            409 => RbacErrorClass::Conflict,
            429 => RbacErrorClass::ServerError,
            400..=499 => RbacErrorClass::Rejected,
            _ => RbacErrorClass::ServerError,
        }
    }
}

impl RbacClient {
    pub(crate) const fn new(client: Client, leader_guard: LeaderGuard) -> Self {
        Self { client, leader_guard }
    }

    /// The metadata of all objects of a kind, wherever they are.
    pub(crate) fn watch(&self, kind: &Kind) -> WatchStream<PartialObjectMeta<DynamicObject>> {
        relisting_watch(Api::all_with(self.client.clone(), &resource(kind)), Config::default())
    }

    /// All bindings with the name of the grant. The right to see them is restricted to that name,
    /// so the name must be in the question.
    pub(crate) fn watch_bindings(&self) -> WatchStream<RoleBinding> {
        let named =
            Config::default().fields(&format!("metadata.name={}", names::NAMESPACE_ROLE_BINDING));
        relisting_watch(Api::all(self.client.clone()), named)
    }

    /// Whether a namespace has an object of this kind right now. The API server asks its store, not
    /// its cache.
    pub(crate) async fn has_any(&self, kind: &Kind, namespace: &str) -> Result<bool, RbacError> {
        let client = self.client.clone();
        let objects = Api::<PartialObjectMeta>::namespaced_with(client, namespace, &resource(kind));
        let one = ListParams::default().limit(1);
        let list = read(RbacOperation::List, objects.list(&one)).await?;
        Ok(!list.items.is_empty())
    }

    /// Makes a binding; a conflict if there is one.
    pub(crate) async fn create(&self, binding: &RoleBinding) -> Result<RoleBinding, RbacError> {
        let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
        let api = self.bindings(namespace);
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        self.write(RbacOperation::Create, api.create(&params, binding)).await
    }

    /// Merges a patch into a binding; a conflict if it names another version than there is.
    pub(crate) async fn patch(
        &self,
        namespace: &str,
        patch: &Value,
    ) -> Result<RoleBinding, RbacError> {
        let api = self.bindings(namespace);
        let params = PatchParams {
            field_manager: Some(names::OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        self.write(RbacOperation::Patch, api.patch(names::NAMESPACE_ROLE_BINDING, &params, &patch))
            .await
    }

    /// Deletes exactly this version of this binding; a conflict if there is another.
    pub(crate) async fn delete(
        &self,
        namespace: &str,
        uid: &str,
        version: &str,
    ) -> Result<(), RbacError> {
        let exactly =
            Preconditions { resource_version: Some(version.to_owned()), uid: Some(uid.to_owned()) };
        let params = DeleteParams::default().preconditions(exactly);
        let api = self.bindings(namespace);
        self.write(RbacOperation::Delete, api.delete(names::NAMESPACE_ROLE_BINDING, &params))
            .await
            .map(drop)
    }

    /// An object as it is; nothing, if there is none.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, RbacError> {
        read(RbacOperation::Read, self.objects(kind, namespace).get_opt(name)).await
    }

    /// Applies to an object's status what this wing has to say in it.
    pub(crate) async fn apply_status(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<DynamicObject, RbacError> {
        let api = self.objects(kind, namespace);
        let params = PatchParams::apply(names::NAMESPACE_ACCESS_FIELD_MANAGER).force();
        let status = Patch::Apply(status);
        self.write(RbacOperation::ApplyStatus, api.patch_status(name, &params, &status)).await
    }

    fn bindings(&self, namespace: &str) -> Api<RoleBinding> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn objects(&self, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(kind))
    }

    async fn write<T>(
        &self,
        operation: RbacOperation,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RbacError> {
        match self.leader_guard.run(REQUEST_TIMEOUT, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(RbacError::Call { operation, source: Box::new(source) }),
            Err(source) => Err(RbacError::NotLeading { operation, source }),
        }
    }
}

async fn read<T>(
    operation: RbacOperation,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, RbacError> {
    match time::timeout(REQUEST_TIMEOUT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(RbacError::Call { operation, source: Box::new(source) }),
        // The timer has nothing to tell but that it rang.
        Err(time::error::Elapsed { .. }) => Err(RbacError::TimedOut { operation }),
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

    fn refused(code: u16, cause: &str) -> RbacErrorClass {
        let status = serde_json::json!({
            "status": "Failure", "code": code, "details": { "causes": [{ "reason": cause }] },
        });
        let status = serde_json::from_value(status).unwrap();
        let source = Box::new(kube::Error::Api(Box::new(status)));
        RbacError::Call { operation: RbacOperation::Create, source }.class()
    }

    #[test]
    fn a_namespace_that_is_going_is_told_from_a_right_that_is_missing() {
        assert_eq!(refused(403, "NamespaceTerminating"), RbacErrorClass::Terminating);
        assert_eq!(refused(403, ""), RbacErrorClass::Forbidden);
        assert_eq!(refused(401, ""), RbacErrorClass::Forbidden);
        assert_eq!(refused(404, ""), RbacErrorClass::NotFound);
        assert_eq!(refused(409, ""), RbacErrorClass::Conflict);
        assert_eq!(refused(422, ""), RbacErrorClass::Rejected);
        assert_eq!(refused(429, ""), RbacErrorClass::ServerError);
        assert_eq!(refused(500, ""), RbacErrorClass::ServerError);
    }

    #[test]
    fn every_kind_is_asked_for_where_its_definition_says() {
        for kind in kinds::ALL {
            let plural = kind.hub().crd().spec.names.plural;
            assert_eq!(resource(kind).plural, plural);
        }
    }
}
