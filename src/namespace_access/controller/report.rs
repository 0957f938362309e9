//! Logs steps, failures, failed watches and conflicting bindings, each once until it changes.
//!
//! A reconciliation without changes logs nothing.

use std::collections::BTreeMap;

use crate::api::names;
use crate::clients::rbac::{RbacError, RbacErrorClass, RbacOperation};
use crate::clients::watch::{WatchError, WatchErrorClass};
use crate::namespace_access::conditions::{AccessCondition, ConditionUpdate};
use crate::namespace_access::decide::{Action, Step};
use crate::namespace_access::state::WatchEvent;
use crate::namespace_access::store::StoreEvent;
use crate::telemetry::error_chain;

/// What was logged last.
#[derive(Default)]
pub(super) struct Reporter {
    /// Failed watches by kind.
    failed_watches: BTreeMap<&'static str, WatchErrorClass>,
    /// Failed operations.
    failed: BTreeMap<RbacOperation, RbacErrorClass>,
    /// Conflicting bindings by namespace.
    blocked: BTreeMap<String, String>,
}

impl Reporter {
    /// Logs that a watch failed or has recovered.
    pub(super) fn watch(
        &mut self,
        kind: &'static str,
        event: &WatchEvent,
        error: Option<&WatchError>,
    ) {
        let complete = match event {
            WatchEvent::Object(_, event) => matches!(event, StoreEvent::ListComplete),
            WatchEvent::Binding(event) => matches!(event, StoreEvent::ListComplete),
        };
        if complete && self.failed_watches.remove(kind).is_some() {
            tracing::info!(kind, "watch recovered");
        }
        let Some(error) = error else { return };
        let (class, error) = (error.class(), error_chain(error));
        if class == WatchErrorClass::Expired
            || self.failed_watches.insert(kind, class) == Some(class)
        {
            tracing::debug!(kind, error, "restarting the watch");
            return;
        }
        match class {
            WatchErrorClass::NotFound => tracing::warn!(
                kind,
                error,
                "kind is not served; check that the CRDs are installed; no RoleBinding is deleted \
                 meanwhile"
            ),
            WatchErrorClass::Rejected => tracing::warn!(
                kind,
                error,
                "list and watch are forbidden; check the operator's ClusterRole and \
                 ClusterRoleBinding; no RoleBinding is deleted meanwhile"
            ),
            WatchErrorClass::Expired => {}
            WatchErrorClass::ServerError => {
                tracing::warn!(kind, error, "watch failed; retrying");
            }
        }
    }

    /// Logs unmanaged bindings that have the name of the operator's binding.
    pub(super) fn blocked(&mut self, blocked: &BTreeMap<String, String>) {
        for (namespace, uid) in blocked {
            if self.blocked.get(namespace) != Some(uid) {
                tracing::warn!(
                    namespace,
                    rolebinding = names::NAMESPACE_ROLE_BINDING,
                    "an unmanaged RoleBinding with the operator's name does not grant the \
                     operator's ClusterRole; objects in this namespace are not reconciled until \
                     the RoleBinding is deleted"
                );
            }
        }
        if self.blocked != *blocked {
            self.blocked.clone_from(blocked);
        }
    }

    /// Logs a step that was executed.
    pub(super) fn done(&mut self, step: &Step) {
        let Step { namespace, action, reason } = step;
        let reason = reason.name();
        match action {
            Action::Create => {
                tracing::info!(namespace, reason, "RoleBinding created");
                self.failed.remove(&RbacOperation::Create);
            }
            Action::Repair(_) => {
                tracing::warn!(namespace, reason, "RoleBinding repaired");
                self.failed.remove(&RbacOperation::Patch);
            }
            Action::Delete(_) => {
                tracing::info!(namespace, reason, "RoleBinding deleted");
                self.failed.remove(&RbacOperation::List);
                self.failed.remove(&RbacOperation::Delete);
            }
        }
    }

    /// Logs a condition that was set or removed.
    pub(super) fn updated(&mut self, update: &ConditionUpdate) {
        let ConditionUpdate { kind, namespace, name, uid: _, resource_version: _, condition } =
            update;
        let kind = kind.0.name;
        self.failed.remove(&RbacOperation::Read);
        self.failed.remove(&RbacOperation::ApplyStatus);
        match condition {
            AccessCondition::NotGranted(_) => {
                tracing::info!(kind, namespace, name, "waiting for access to the namespace");
            }
            AccessCondition::Absent => {
                tracing::info!(kind, namespace, name, "access to the namespace is granted");
            }
        }
    }

    /// Logs a failed request, at debug level if its operation failed the same way before.
    pub(super) fn failed(&mut self, namespace: &str, error: &RbacError) {
        let (operation, class, error) = (error.operation(), error.class(), error_chain(error));
        match class {
            // The namespace is terminating, or another writer was faster: both resolve on retry.
            RbacErrorClass::NotFound | RbacErrorClass::Conflict | RbacErrorClass::Terminating => {
                tracing::debug!(namespace, error, "step postponed");
            }
            RbacErrorClass::NotLeading => {
                tracing::debug!(namespace, error, "this replica does not lead");
            }
            RbacErrorClass::Forbidden | RbacErrorClass::Rejected | RbacErrorClass::ServerError
                if self.failed.insert(operation, class) == Some(class) =>
            {
                tracing::debug!(namespace, error, "step still fails; retrying");
            }
            RbacErrorClass::Forbidden => tracing::warn!(
                namespace,
                permission = %operation,
                error,
                "the operator's service account lacks a permission; check its ClusterRole and \
                 ClusterRoleBinding; retrying"
            ),
            RbacErrorClass::Rejected => {
                tracing::warn!(namespace, error, "request rejected by the API server; retrying");
            }
            RbacErrorClass::ServerError => {
                tracing::warn!(namespace, error, "API server error; retrying");
            }
        }
    }
}
