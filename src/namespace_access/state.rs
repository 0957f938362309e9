//! The observed state of one reconciliation: our objects and the bindings, by namespace. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::backoff::Backoff;
use super::store::{Entry, StoreEvent, Synced, WatchStore};
use crate::api::kinds::{self, Kind};
use crate::api::monotonic::MonotonicTime;
use crate::api::names;
use crate::api::namespace_access::NamespaceAccess;

/// A kind of ours, compared by name.
#[derive(Clone, Copy)]
pub(crate) struct KindRef(pub(crate) &'static Kind);

/// One of our objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectInfo {
    /// Whether its status has conditions of this controller.
    pub(crate) has_condition: bool,
}

/// A binding with the name of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent properties of a binding")]
pub(crate) struct BindingState {
    /// It has the operator's label and role. Only such a binding is ever written.
    pub(crate) managed: bool,
    /// The operator's service account is its only subject.
    pub(crate) subjects_match: bool,
    /// It grants the role to the operator's service account, whether managed or not.
    pub(crate) grants_role: bool,
    /// It is being deleted.
    pub(crate) terminating: bool,
}

/// The stores of all watches.
#[derive(Clone, Debug)]
pub(crate) struct WatchState {
    objects: Vec<(KindRef, WatchStore<ObjectInfo>)>,
    pub(crate) bindings: WatchStore<BindingState>,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) enum WatchEvent {
    Object(KindRef, StoreEvent<ObjectInfo>),
    Binding(StoreEvent<BindingState>),
}

/// Whether a namespace has objects of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceUse {
    /// At least one exists. A terminating object counts until it is deleted.
    InUse,
    /// None exists, of any kind.
    Empty,
    /// None was delivered, but not all lists are complete.
    Unknown,
}

/// Everything that a decision needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedState<'a> {
    pub(crate) mode: NamespaceAccess,
    pub(crate) watches: &'a WatchState,
    pub(crate) backoff: &'a Backoff,
    pub(crate) now: MonotonicTime,
}

impl PartialEq for KindRef {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KindRef {}

impl PartialOrd for KindRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KindRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl fmt::Debug for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Default for WatchState {
    fn default() -> Self {
        let objects = kinds::ALL.into_iter().map(|kind| (KindRef(kind), WatchStore::default()));
        Self { objects: objects.collect(), bindings: WatchStore::default() }
    }
}

impl WatchState {
    /// Applies one event.
    pub(crate) fn apply(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Binding(event) => self.bindings.apply(event),
            WatchEvent::Object(kind, event) => {
                let mut stores = self.objects.iter_mut();
                if let Some((_, store)) = stores.find(|(stored, _)| *stored == kind) {
                    store.apply(event);
                }
            }
        }
    }

    /// The kinds with a complete list, and their objects.
    pub(crate) fn synced_objects(&self) -> impl Iterator<Item = (KindRef, Synced<'_, ObjectInfo>)> {
        self.objects.iter().filter_map(|(kind, store)| Some((*kind, store.synced()?)))
    }

    /// Every namespace that is known to have an object or a binding.
    pub(crate) fn namespaces(&self) -> BTreeSet<&str> {
        let objects = self.synced_objects().flat_map(|(_, synced)| synced.namespaces());
        let bindings = self.bindings.synced().into_iter().flat_map(|synced| synced.namespaces());
        objects.chain(bindings).collect()
    }

    /// Whether a namespace has objects.
    pub(crate) fn namespace_use(&self, namespace: &str) -> NamespaceUse {
        if self.synced_objects().any(|(_, synced)| synced.has(namespace)) {
            NamespaceUse::InUse
        } else if self.objects.iter().all(|(_, store)| store.synced().is_some()) {
            NamespaceUse::Empty
        } else {
            NamespaceUse::Unknown
        }
    }

    /// The number of namespaces that the operator has access to, if the list is complete.
    pub(crate) fn granted_namespaces(&self) -> Option<usize> {
        Some(self.bindings.synced()?.entries().filter(|entry| entry.data.grants_role).count())
    }

    /// The UIDs of all objects that were delivered.
    pub(crate) fn uids(&self) -> BTreeSet<&str> {
        self.objects.iter().flat_map(|(_, store)| store.uids()).collect()
    }
}

/// The entry of one of our objects, from its metadata.
pub(crate) fn object_entry(metadata: &ObjectMeta) -> Entry<ObjectInfo> {
    entry(metadata, ObjectInfo { has_condition: has_condition(metadata) })
}

/// The entry of a binding, for an operator that runs in the namespace `operator`.
pub(crate) fn binding_entry(binding: &RoleBinding, operator: &str) -> Entry<BindingState> {
    let RoleBinding { metadata, role_ref, subjects } = binding;
    let subjects = subjects.as_deref().unwrap_or_default();
    let is_operator = |subject: &Subject| is_operator(subject, operator);
    let labels = metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(names::MANAGED_BY_LABEL));
    let role = is_namespace_role(role_ref);
    let state = BindingState {
        managed: role && label.is_some_and(|manager| manager == names::OPERATOR),
        subjects_match: matches!(subjects, [subject] if is_operator(subject)),
        grants_role: role && subjects.iter().any(is_operator),
        terminating: metadata.deletion_timestamp.is_some(),
    };
    entry(metadata, state)
}

/// The API server always sets these fields. If one is missing, every precondition on it fails.
fn entry<T>(metadata: &ObjectMeta, data: T) -> Entry<T> {
    let ObjectMeta { namespace, name, uid, resource_version, .. } = metadata;
    Entry {
        namespace: namespace.clone().unwrap_or_default(),
        name: name.clone().unwrap_or_default(),
        uid: uid.clone().unwrap_or_default(),
        resource_version: resource_version.clone().unwrap_or_default(),
        data,
    }
}

/// Whether the managed fields contain fields that this controller applied.
pub(crate) fn has_condition(metadata: &ObjectMeta) -> bool {
    let fields = metadata.managed_fields.as_deref().unwrap_or_default();
    fields
        .iter()
        .any(|entry| entry.manager.as_deref() == Some(names::NAMESPACE_ACCESS_FIELD_MANAGER))
}

fn is_namespace_role(role: &RoleRef) -> bool {
    let RoleRef { api_group, kind, name } = role;
    api_group == super::render::RBAC_GROUP && kind == "ClusterRole" && name == names::NAMESPACE_ROLE
}

fn is_operator(subject: &Subject, operator: &str) -> bool {
    let Subject { api_group, kind, name, namespace } = subject;
    api_group.as_deref().unwrap_or_default().is_empty()
        && kind == "ServiceAccount"
        && name == names::OPERATOR
        && namespace.as_deref() == Some(operator)
}

#[cfg(test)]
mod tests;
