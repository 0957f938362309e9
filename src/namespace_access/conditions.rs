//! Which objects need the condition that the operator has no access to their namespace, and which
//! no longer do. Pure.
//!
//! An object is visited when it or the binding of its namespace has changed since its last update.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::backoff::BackoffKey;
use super::state::{BindingState, KindRef, ObjectInfo, ObservedState};
use super::store::{Entry, Synced};
use crate::api::names;
use crate::api::namespace_access::NamespaceAccess;

/// Condition updates of one reconciliation; the next one continues.
pub(crate) const MAX_CONDITION_UPDATES: usize = 50;

/// The condition that an object should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessCondition {
    /// The operator has no access to the namespace.
    NotGranted(MissingAccess),
    /// No condition: the operator has access.
    Absent,
}

/// Why access is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingAccess {
    /// There is no binding.
    NoBinding,
    /// A binding with the expected name does not grant the role.
    BindingMismatch,
}

/// An object and the condition it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionUpdate {
    pub(crate) kind: KindRef,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) condition: AccessCondition,
}

/// The updates of this reconciliation, and whether more are pending.
pub(crate) fn pending_updates(observed: &ObservedState<'_>) -> (Vec<ConditionUpdate>, bool) {
    let mut updates = Vec::new();
    let Some(bindings) = observed.watches.bindings.synced() else { return (updates, false) };
    if observed.backoff.is_backing_off(&BackoffKey::All, observed.now) {
        return (updates, false);
    }
    for (kind, objects) in observed.watches.synced_objects() {
        for entry in objects.entries() {
            let Some(condition) = required_condition(observed.mode, &bindings, entry) else {
                continue;
            };
            if is_applied(observed, entry, condition) || is_backing_off(observed, &entry.uid) {
                continue;
            }
            if updates.len() >= MAX_CONDITION_UPDATES {
                return (updates, true);
            }
            updates.push(update(kind, entry, condition));
        }
    }
    (updates, false)
}

/// The condition that an object should have; `None` if its status needs no update.
fn required_condition(
    mode: NamespaceAccess,
    bindings: &Synced<'_, BindingState>,
    entry: &Entry<ObjectInfo>,
) -> Option<AccessCondition> {
    let missing = match bindings.get(&entry.namespace, names::NAMESPACE_ROLE_BINDING) {
        Some(binding) if binding.data.grants_role => {
            // A condition from the other mode or from another leader is removed, too.
            return entry.data.has_condition.then_some(AccessCondition::Absent);
        }
        Some(_) => MissingAccess::BindingMismatch,
        None => MissingAccess::NoBinding,
    };
    match mode {
        NamespaceAccess::Manual => Some(AccessCondition::NotGranted(missing)),
        // The binding is about to be created; without it the object cannot be written.
        NamespaceAccess::Auto => None,
    }
}

/// Whether the object has the condition already. The watch delivers the `resourceVersion` of our
/// own write with a delay, so the version before the write counts, too.
fn is_applied(
    observed: &ObservedState<'_>,
    entry: &Entry<ObjectInfo>,
    condition: AccessCondition,
) -> bool {
    observed.backoff.last_applied(&entry.uid).is_some_and(|applied| {
        applied.condition == condition
            && [&applied.before, &applied.after].contains(&&entry.resource_version)
    })
}

fn is_backing_off(observed: &ObservedState<'_>, uid: &str) -> bool {
    observed.backoff.is_backing_off(&BackoffKey::Object(uid.to_owned()), observed.now)
}

fn update(kind: KindRef, entry: &Entry<ObjectInfo>, condition: AccessCondition) -> ConditionUpdate {
    let Entry { namespace, name, uid, resource_version, data: _ } = entry.clone();
    ConditionUpdate { kind, namespace, name, uid, resource_version, condition }
}

#[cfg(test)]
mod tests;
