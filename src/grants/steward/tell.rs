//! What the wing says in the log: each thing once, until something else is true.
//! Comes in: steps, failures, broken watches, bindings in the way. Goes out: log lines.
//! May touch: `telemetry`, the log. A pass that changes nothing says nothing.

use std::collections::BTreeMap;

use crate::api::names;
use crate::grants::complain::{Says, Word};
use crate::grants::decide::{Act, Step};
use crate::grants::seen::News;
use crate::grants::shelf::Change;
use crate::ports::grants::{Class, Doing, GrantsError};
use crate::ports::watch::{self, WatchError};
use crate::telemetry::chain;

/// What was said last.
#[derive(Default)]
pub(super) struct Said {
    /// Watches that are broken, and how.
    broken: BTreeMap<&'static str, watch::Class>,
    /// What is refused, and how.
    refused: BTreeMap<Doing, Class>,
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
        let (class, error) = (error.class(), chain(error));
        if class == watch::Class::Expired || self.broken.insert(from, class) == Some(class) {
            tracing::debug!(kind = from, error, "the watch begins anew");
            return;
        }
        match class {
            watch::Class::NotFound => tracing::warn!(
                kind = from,
                error,
                "the kind is not served; are the custom resource definitions installed? no rights \
                 are taken back meanwhile"
            ),
            watch::Class::Refused => tracing::warn!(
                kind = from,
                error,
                "the Kubernetes API refuses to list and watch; does the ClusterRole with its \
                 ClusterRoleBinding stand? no rights are taken back meanwhile"
            ),
            watch::Class::Expired => {}
            watch::Class::Unwell => {
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
                    rolebinding = names::GRANT,
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
                self.refused.remove(&Doing::Create);
            }
            Act::Repair(_) => {
                tracing::warn!(namespace, because, "the namespace's grant was repaired");
                self.refused.remove(&Doing::Patch);
            }
            Act::Withdraw(_) => {
                tracing::info!(namespace, because, "the namespace's grant was taken back");
                self.refused.remove(&Doing::List);
                self.refused.remove(&Doing::Delete);
            }
        }
    }

    /// Tells that an object was made to say something.
    pub(super) fn spoken(&mut self, word: &Word) {
        let Word { which, namespace, name, uid: _, version: _, says } = word;
        let kind = which.0.name;
        self.refused.remove(&Doing::Read);
        self.refused.remove(&Doing::ApplyStatus);
        match says {
            Says::NotGranted(_) => {
                tracing::info!(kind, namespace, name, "waits for its namespace to be granted");
            }
            Says::Nothing => tracing::info!(kind, namespace, name, "its namespace is granted"),
        }
    }

    /// Tells of a call that failed, if it is news.
    pub(super) fn failed(&mut self, namespace: &str, error: &GrantsError) {
        let (doing, class, error) = (error.doing(), error.class(), chain(error));
        match class {
            // The namespace goes, or somebody was faster: both pass by themselves.
            Class::NotFound | Class::Conflict | Class::Terminating => {
                tracing::debug!(namespace, error, "not now");
            }
            Class::NotLeading => tracing::debug!(namespace, error, "this replica does not lead"),
            Class::Forbidden | Class::Refused | Class::Unwell
                if self.refused.insert(doing, class) == Some(class) =>
            {
                tracing::debug!(namespace, error, "still not done");
            }
            Class::Forbidden => tracing::warn!(
                namespace,
                right = %doing,
                error,
                "the operator's account lacks a right; does the ClusterRole with its \
                 ClusterRoleBinding stand? will try again"
            ),
            Class::Refused => {
                tracing::warn!(namespace, error, "the Kubernetes API refuses; will try again");
            }
            Class::Unwell => tracing::warn!(
                namespace,
                error,
                "the Kubernetes API does not answer well; will look again"
            ),
        }
    }
}
