//! What the wing says in the log: each thing once, until something else is true.
//! Comes in: steps, failures, broken watches, bindings in the way. Goes out: log lines.
//! May touch: `telemetry`, the log. A pass that changes nothing says nothing.

use std::collections::BTreeMap;

use crate::api::names;
use crate::clients::rbac::{RbacError, RbacErrorClass, RbacOperation};
use crate::clients::watch::{self, WatchError};
use crate::grants::complain::{Says, Word};
use crate::grants::decide::{Act, Step};
use crate::grants::seen::News;
use crate::grants::shelf::Change;
use crate::telemetry::error_chain;

/// What was said last.
#[derive(Default)]
pub(super) struct Said {
    /// Watches that are broken, and how.
    broken: BTreeMap<&'static str, watch::WatchErrorClass>,
    /// What is refused, and how.
    refused: BTreeMap<RbacOperation, RbacErrorClass>,
    /// Bindings in the way, by namespace.
    blocked: BTreeMap<String, String>,
}

impl Said {
    /// Tells that a watch broke or is whole again.
    pub(super) fn watch(&mut self, from: &'static str, news: &News, error: Option<&WatchError>) {
        let complete = match news {
            News::Object(_, change) => matches!(change, Change::Complete),
            News::Binding(change) => matches!(change, Change::Complete),
        };
        if complete && self.broken.remove(from).is_some() {
            tracing::info!(kind = from, "objects are watched again");
        }
        let Some(error) = error else { return };
        let (class, error) = (error.class(), error_chain(error));
        if class == watch::WatchErrorClass::Expired
            || self.broken.insert(from, class) == Some(class)
        {
            tracing::debug!(kind = from, error, "the watch begins anew");
            return;
        }
        match class {
            watch::WatchErrorClass::NotFound => tracing::warn!(
                kind = from,
                error,
                "the kind is not served; are the custom resource definitions installed? no rights \
                 are taken back meanwhile"
            ),
            watch::WatchErrorClass::Rejected => tracing::warn!(
                kind = from,
                error,
                "the Kubernetes API refuses to list and watch; does the ClusterRole with its \
                 ClusterRoleBinding stand? no rights are taken back meanwhile"
            ),
            watch::WatchErrorClass::Expired => {}
            watch::WatchErrorClass::ServerError => {
                tracing::warn!(kind = from, error, "objects cannot be watched; will try again");
            }
        }
    }

    /// Tells of a binding that keeps the operator's own from being made.
    pub(super) fn blocked(&mut self, blocked: &BTreeMap<String, String>) {
        for (namespace, uid) in blocked {
            if self.blocked.get(namespace) != Some(uid) {
                tracing::warn!(
                    namespace,
                    rolebinding = names::NAMESPACE_ROLE_BINDING,
                    "someone else's rolebinding has the name of the operator's, and does not grant \
                     its rights; it is left alone, and objects here wait until it is deleted"
                );
            }
        }
        if self.blocked != *blocked {
            self.blocked.clone_from(blocked);
        }
    }

    /// Tells of a step that was made.
    pub(super) fn done(&mut self, step: &Step) {
        let Step { namespace, act, because } = step;
        let because = because.name();
        match act {
            Act::Grant => {
                tracing::info!(namespace, because, "namespace granted");
                self.refused.remove(&RbacOperation::Create);
            }
            Act::Repair(_) => {
                tracing::warn!(namespace, because, "the namespace's grant was repaired");
                self.refused.remove(&RbacOperation::Patch);
            }
            Act::Withdraw(_) => {
                tracing::info!(namespace, because, "the namespace's grant was taken back");
                self.refused.remove(&RbacOperation::List);
                self.refused.remove(&RbacOperation::Delete);
            }
        }
    }

    /// Tells that an object was made to say something.
    pub(super) fn spoken(&mut self, word: &Word) {
        let Word { which, namespace, name, uid: _, version: _, says } = word;
        let kind = which.0.name;
        self.refused.remove(&RbacOperation::Read);
        self.refused.remove(&RbacOperation::ApplyStatus);
        match says {
            Says::NotGranted(_) => {
                tracing::info!(kind, namespace, name, "waits for its namespace to be granted");
            }
            Says::Nothing => tracing::info!(kind, namespace, name, "its namespace is granted"),
        }
    }

    /// Tells of a call that failed, if it is news.
    pub(super) fn failed(&mut self, namespace: &str, error: &RbacError) {
        let (doing, class, error) = (error.operation(), error.class(), error_chain(error));
        match class {
            // The namespace goes, or somebody was faster: both pass by themselves.
            RbacErrorClass::NotFound | RbacErrorClass::Conflict | RbacErrorClass::Terminating => {
                tracing::debug!(namespace, error, "not now");
            }
            RbacErrorClass::NotLeading => {
                tracing::debug!(namespace, error, "this replica does not lead");
            }
            RbacErrorClass::Forbidden | RbacErrorClass::Rejected | RbacErrorClass::ServerError
                if self.refused.insert(doing, class) == Some(class) =>
            {
                tracing::debug!(namespace, error, "still not done");
            }
            RbacErrorClass::Forbidden => tracing::warn!(
                namespace,
                right = %doing,
                error,
                "the operator's account lacks a right; does the ClusterRole with its \
                 ClusterRoleBinding stand? will try again"
            ),
            RbacErrorClass::Rejected => {
                tracing::warn!(namespace, error, "the Kubernetes API refuses; will try again");
            }
            RbacErrorClass::ServerError => tracing::warn!(
                namespace,
                error,
                "the Kubernetes API does not answer well; will look again"
            ),
        }
    }
}
