//! Watches, reads and writes `RoleBindings` and the status of objects for namespace access.
//!
//! Each request has a timeout. Nothing is retried here; a write is sent only while this replica
//! leads.

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

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The cause in the response to a create request in a terminating namespace.
const TERMINATING: &str = "NamespaceTerminating";

type WatchStream<K> = BoxStream<'static, Result<Event<K>, WatchError>>;

/// Client for objects and bindings.
#[derive(Clone)]
pub(crate) struct RbacClient {
    client: Client,
    leader_guard: LeaderGuard,
}

/// An operation, named by the permission it needs.
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
            Self::Create => "create RoleBinding",
            Self::Patch => "patch RoleBinding",
            Self::Delete => "delete RoleBinding",
            Self::Read => "get object",
            Self::ApplyStatus => "patch object status",
        })
    }
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RbacError {
    /// The API server responded with an error, or was unreachable.
    #[error("failed to {operation}")]
    Call {
        operation: RbacOperation,
        #[source]
        source: Box<kube::Error>,
    },
    /// No response before the timeout.
    #[error("failed to {operation}: no answer within {}ms", REQUEST_TIMEOUT.as_millis())]
    TimedOut { operation: RbacOperation },
    /// The write was not sent or not awaited, because this replica no longer leads.
    #[error("failed to {operation}")]
    NotLeading {
        operation: RbacOperation,
        #[source]
        source: NotLeading,
    },
}

/// Classes of failed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RbacErrorClass {
    /// The object, kind or namespace does not exist.
    NotFound,
    /// The object has changed since it was read, or exists already.
    Conflict,
    /// The namespace is terminating.
    Terminating,
    /// The operator's service account lacks the permission.
    Forbidden,
    /// The API server rejected the request.
    Rejected,
    /// The API server failed or is unreachable. The outcome of the request is unknown.
    ServerError,
    /// This replica does not lead.
    NotLeading,
}

impl RbacError {
    /// The operation that failed.
    pub(crate) const fn operation(&self) -> RbacOperation {
        match self {
            Self::Call { operation, .. }
            | Self::TimedOut { operation }
            | Self::NotLeading { operation, .. } => *operation,
        }
    }

    /// The class of the error; the only place that knows status codes.
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

    /// Watches the metadata of all objects of a kind in all namespaces.
    pub(crate) fn watch(&self, kind: &Kind) -> WatchStream<PartialObjectMeta<DynamicObject>> {
        relisting_watch(Api::all_with(self.client.clone(), &resource(kind)), Config::default())
    }

    /// Watches the bindings with the name of the operator's binding. The permission is restricted
    /// to that name, so the field selector must have it.
    pub(crate) fn watch_bindings(&self) -> WatchStream<RoleBinding> {
        let named =
            Config::default().fields(&format!("metadata.name={}", names::NAMESPACE_ROLE_BINDING));
        relisting_watch(Api::all(self.client.clone()), named)
    }

    /// Whether a namespace has an object of this kind. Without a `resourceVersion` the API server
    /// reads from etcd rather than from its cache.
    pub(crate) async fn has_any(&self, kind: &Kind, namespace: &str) -> Result<bool, RbacError> {
        let client = self.client.clone();
        let objects = Api::<PartialObjectMeta>::namespaced_with(client, namespace, &resource(kind));
        let first = ListParams::default().limit(1);
        let list = read(RbacOperation::List, objects.list(&first)).await?;
        Ok(!list.items.is_empty())
    }

    /// Creates a binding; a conflict if it exists.
    pub(crate) async fn create(&self, binding: &RoleBinding) -> Result<RoleBinding, RbacError> {
        let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
        let api = self.bindings(namespace);
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        self.write(RbacOperation::Create, api.create(&params, binding)).await
    }

    /// Merges a patch into a binding; a conflict if the patch has another UID or version.
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

    /// Deletes the binding with this UID and version; a conflict if either differs.
    pub(crate) async fn delete(
        &self,
        namespace: &str,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), RbacError> {
        let preconditions = Preconditions {
            resource_version: Some(resource_version.to_owned()),
            uid: Some(uid.to_owned()),
        };
        let params = DeleteParams::default().preconditions(preconditions);
        let api = self.bindings(namespace);
        self.write(RbacOperation::Delete, api.delete(names::NAMESPACE_ROLE_BINDING, &params))
            .await
            .map(drop)
    }

    /// Reads an object; `None` if it does not exist.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, RbacError> {
        read(RbacOperation::Read, self.objects(kind, namespace).get_opt(name)).await
    }

    /// Applies the conditions of namespace access to the status of an object.
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
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RbacError> {
        match self.leader_guard.run(REQUEST_TIMEOUT, request).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) => Err(RbacError::Call { operation, source: Box::new(source) }),
            Err(source) => Err(RbacError::NotLeading { operation, source }),
        }
    }
}

async fn read<T>(
    operation: RbacOperation,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RbacError> {
    match time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(source)) => Err(RbacError::Call { operation, source: Box::new(source) }),
        Err(time::error::Elapsed { .. }) => Err(RbacError::TimedOut { operation }),
    }
}

/// The resource of a kind. kube derives the plural; a test compares it with our CRDs.
fn resource(kind: &Kind) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group, kind.hub().name, kind.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kinds;

    fn class(code: u16, cause: &str) -> RbacErrorClass {
        let status = serde_json::json!({
            "status": "Failure", "code": code, "details": { "causes": [{ "reason": cause }] },
        });
        let status = serde_json::from_value(status).unwrap();
        let source = Box::new(kube::Error::Api(Box::new(status)));
        RbacError::Call { operation: RbacOperation::Create, source }.class()
    }

    #[test]
    fn terminating_namespace_is_distinguished_from_a_missing_permission() {
        assert_eq!(class(403, "NamespaceTerminating"), RbacErrorClass::Terminating);
        assert_eq!(class(403, ""), RbacErrorClass::Forbidden);
        assert_eq!(class(401, ""), RbacErrorClass::Forbidden);
        assert_eq!(class(404, ""), RbacErrorClass::NotFound);
        assert_eq!(class(409, ""), RbacErrorClass::Conflict);
        assert_eq!(class(422, ""), RbacErrorClass::Rejected);
        assert_eq!(class(429, ""), RbacErrorClass::ServerError);
        assert_eq!(class(500, ""), RbacErrorClass::ServerError);
    }

    #[test]
    fn plural_of_every_kind_matches_its_crd() {
        for kind in kinds::ALL {
            let plural = kind.hub().crd().spec.names.plural;
            assert_eq!(resource(kind).plural, plural);
        }
    }
}
