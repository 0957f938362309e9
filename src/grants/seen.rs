//! What one pass over the namespaces knows. Data and questions only.
//! Comes in: metadata of our objects and the bindings, as the API server tells them. Goes out:
//! `Seen`. May touch: `api` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::memory::Memory;
use super::shelf::{Change, Entry, Known, Shelf};
use crate::api::kinds::{self, Kind};
use crate::api::monotonic::MonotonicTime;
use crate::api::names;
use crate::api::namespace_access::NamespaceAccess;

/// A kind of ours, known by its name.
#[derive(Clone, Copy)]
pub(crate) struct Which(pub(crate) &'static Kind);

/// One of our objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    /// Whether conditions of ours stand in its status.
    pub(crate) marked: bool,
}

/// A binding with the name of the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four facts, and each is so or is not")]
pub(crate) struct Bond {
    /// It was made by the operator, for its own role. Only such a one is ever written to.
    pub(crate) ours: bool,
    /// It binds the operator's account and nobody else.
    pub(crate) exact: bool,
    /// It gives the operator's account the right role, whoever made it.
    pub(crate) gives: bool,
    /// It is being deleted already.
    pub(crate) going: bool,
}

/// What the watches have told.
#[derive(Clone, Debug)]
pub(crate) struct World {
    objects: Vec<(Which, Shelf<Thing>)>,
    pub(crate) bindings: Shelf<Bond>,
}

/// One thing that a watch told.
#[derive(Clone, Debug)]
pub(crate) enum News {
    Object(Which, Change<Thing>),
    Binding(Change<Bond>),
}

/// What is known of a namespace's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lives {
    /// At least one is there. One that is being deleted is there until it is gone.
    Objects,
    /// None is there, of any kind.
    Nothing,
    /// None was told, but not every kind is known.
    Unsure,
}

/// Everything that a decision needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) way: NamespaceAccess,
    pub(crate) world: &'a World,
    pub(crate) memory: &'a Memory,
    pub(crate) now: MonotonicTime,
}

impl PartialEq for Which {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Which {}

impl PartialOrd for Which {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Which {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl fmt::Debug for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Default for World {
    fn default() -> Self {
        let objects = kinds::ALL.into_iter().map(|kind| (Which(kind), Shelf::default()));
        Self { objects: objects.collect(), bindings: Shelf::default() }
    }
}

impl World {
    /// Takes in what a watch told.
    pub(crate) fn take(&mut self, news: News) {
        match news {
            News::Binding(change) => self.bindings.take(change),
            News::Object(which, change) => {
                let mut shelves = self.objects.iter_mut();
                if let Some((_, shelf)) = shelves.find(|(kind, _)| *kind == which) {
                    shelf.take(change);
                }
            }
        }
    }

    /// The kinds of which every object is known.
    pub(crate) fn known(&self) -> impl Iterator<Item = (Which, Known<'_, Thing>)> {
        self.objects.iter().filter_map(|(kind, shelf)| Some((*kind, shelf.known()?)))
    }

    /// Every namespace in which an object or a binding is known to be.
    pub(crate) fn namespaces(&self) -> BTreeSet<&str> {
        let objects = self.known().flat_map(|(_, known)| known.namespaces());
        let bindings = self.bindings.known().into_iter().flat_map(|known| known.namespaces());
        objects.chain(bindings).collect()
    }

    /// What is known of the objects in a namespace.
    pub(crate) fn lives(&self, namespace: &str) -> Lives {
        if self.known().any(|(_, known)| known.has(namespace)) {
            Lives::Objects
        } else if self.objects.iter().all(|(_, shelf)| shelf.known().is_some()) {
            Lives::Nothing
        } else {
            Lives::Unsure
        }
    }

    /// In how many namespaces the operator has its rights, if that is known.
    pub(crate) fn granted(&self) -> Option<usize> {
        Some(self.bindings.known()?.entries().filter(|entry| entry.what.gives).count())
    }

    /// The uids of all objects that were told.
    pub(crate) fn uids(&self) -> BTreeSet<&str> {
        self.objects.iter().flat_map(|(_, shelf)| shelf.uids()).collect()
    }
}

/// An object of ours, from its metadata.
pub(crate) fn thing(metadata: &ObjectMeta) -> Entry<Thing> {
    entry(metadata, Thing { marked: is_marked(metadata) })
}

/// A binding, as it looks to an operator that runs in the namespace `operator`.
pub(crate) fn bond(binding: &RoleBinding, operator: &str) -> Entry<Bond> {
    let RoleBinding { metadata, role_ref, subjects } = binding;
    let subjects = subjects.as_deref().unwrap_or_default();
    let us = |subject: &Subject| is_us(subject, operator);
    let labels = metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(names::MANAGED_BY_LABEL));
    let role = is_our_role(role_ref);
    let bond = Bond {
        ours: role && label.is_some_and(|by| by == names::OPERATOR),
        exact: matches!(subjects, [subject] if us(subject)),
        gives: role && subjects.iter().any(us),
        going: metadata.deletion_timestamp.is_some(),
    };
    entry(metadata, bond)
}

/// An API server leaves out none of these. Should one be missing, no precondition holds.
fn entry<T>(metadata: &ObjectMeta, what: T) -> Entry<T> {
    let ObjectMeta { namespace, name, uid, resource_version, .. } = metadata;
    Entry {
        namespace: namespace.clone().unwrap_or_default(),
        name: name.clone().unwrap_or_default(),
        uid: uid.clone().unwrap_or_default(),
        version: resource_version.clone().unwrap_or_default(),
        what,
    }
}

/// Whether the status has fields that this wing applied: the API server keeps the books.
pub(crate) fn is_marked(metadata: &ObjectMeta) -> bool {
    let managers = metadata.managed_fields.as_deref().unwrap_or_default();
    managers.iter().any(|it| it.manager.as_deref() == Some(names::NAMESPACE_ACCESS_FIELD_MANAGER))
}

fn is_our_role(role: &RoleRef) -> bool {
    let RoleRef { api_group, kind, name } = role;
    api_group == super::render::RBAC_GROUP && kind == "ClusterRole" && name == names::NAMESPACE_ROLE
}

fn is_us(subject: &Subject, operator: &str) -> bool {
    let Subject { api_group, kind, name, namespace } = subject;
    api_group.as_deref().unwrap_or_default().is_empty()
        && kind == "ServiceAccount"
        && name == names::OPERATOR
        && namespace.as_deref() == Some(operator)
}

#[cfg(test)]
mod tests;
