//! Which bindings to create, repair or delete, each with its reason. Pure.
//!
//! Guarantees: a binding is created where an object is known to exist, and deleted only where the
//! lists of all kinds are complete and contain no object. Incomplete lists never delete anything.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use super::backoff::BackoffKey;
use super::state::{BindingState, NamespaceUse, ObservedState};
use super::store::Entry;
use crate::api::names;
use crate::api::namespace_access::NamespaceAccess;

/// Steps of one reconciliation; the next one continues.
pub(crate) const MAX_STEPS: usize = 20;

/// What to do about the bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// Namespaces with objects where an unmanaged binding has the name of ours and does not grant
    /// the role, each with the UID of that binding.
    pub(crate) blocked: BTreeMap<String, String>,
    /// Whether more steps are pending.
    pub(crate) more: bool,
}

/// One write in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) namespace: String,
    pub(crate) action: Action,
    pub(crate) reason: Reason,
}

/// The write. Preconditions make it apply to exactly the observed binding, or fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Create the binding. If one exists by now, the API server responds with a conflict.
    Create,
    /// Reset the subjects to the operator's service account. Idempotent.
    Repair(Target),
    /// Delete the binding, after a live list of the namespace. If an object is created right then,
    /// the next reconciliation creates the binding again.
    Delete(Target),
}

/// A binding as observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The namespace has an object and no binding.
    ObjectAppeared,
    /// The subjects of our binding were changed.
    SubjectsChanged,
    /// The namespace has no object any more.
    LastObjectDeleted,
}

impl Reason {
    /// The reason in logs and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ObjectAppeared => "ObjectAppeared",
            Self::SubjectsChanged => "SubjectsChanged",
            Self::LastObjectDeleted => "LastObjectDeleted",
        }
    }
}

/// The plan of this reconciliation; empty until the list of bindings is complete.
pub(crate) fn decide(observed: &ObservedState<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(bindings) = observed.watches.bindings.synced() else { return plan };
    let is_backing_off = |key| observed.backoff.is_backing_off(&key, observed.now);
    let all_back_off = is_backing_off(BackoffKey::All);
    for namespace in observed.watches.namespaces() {
        let namespace_use = observed.watches.namespace_use(namespace);
        let binding = bindings.get(namespace, names::NAMESPACE_ROLE_BINDING);
        if let Some(entry) = binding
            && is_blocking(namespace_use, entry.data)
        {
            plan.blocked.insert(namespace.to_owned(), entry.uid.clone());
        }
        let Some((action, reason)) = action_for(observed.mode, namespace_use, binding) else {
            continue;
        };
        if all_back_off || is_backing_off(BackoffKey::Namespace(namespace.to_owned())) {
            continue;
        }
        if plan.steps.len() >= MAX_STEPS {
            plan.more = true;
            continue;
        }
        plan.steps.push(Step { namespace: namespace.to_owned(), action, reason });
    }
    plan
}

/// What to do in one namespace.
fn action_for(
    mode: NamespaceAccess,
    namespace_use: NamespaceUse,
    binding: Option<&Entry<BindingState>>,
) -> Option<(Action, Reason)> {
    match mode {
        NamespaceAccess::Manual => return None,
        NamespaceAccess::Auto => {}
    }
    let Some(entry) = binding else {
        return match namespace_use {
            NamespaceUse::InUse => Some((Action::Create, Reason::ObjectAppeared)),
            NamespaceUse::Empty | NamespaceUse::Unknown => None,
        };
    };
    let BindingState { managed, subjects_match, grants_role: _, terminating } = entry.data;
    if !managed || terminating {
        return None;
    }
    let target =
        Target { uid: entry.uid.clone(), resource_version: entry.resource_version.clone() };
    match namespace_use {
        _ if !subjects_match => Some((Action::Repair(target), Reason::SubjectsChanged)),
        NamespaceUse::Empty => Some((Action::Delete(target), Reason::LastObjectDeleted)),
        NamespaceUse::InUse | NamespaceUse::Unknown => None,
    }
}

/// Whether an unmanaged binding prevents access that objects need.
fn is_blocking(namespace_use: NamespaceUse, binding: BindingState) -> bool {
    namespace_use == NamespaceUse::InUse && !binding.grants_role && !binding.managed
}

#[cfg(test)]
mod tests;
