//! The simulated API server of the model: objects, bindings, and a log of their changes, from which
//! the watches are fed.

use std::collections::BTreeMap;

use crate::api::kinds;
use crate::api::names;
use crate::namespace_access::conditions::{AccessCondition, ConditionUpdate};
use crate::namespace_access::decide::Target;
use crate::namespace_access::state::{BindingState, KindRef, ObjectInfo, WatchEvent};
use crate::namespace_access::store::{Entry, StoreEvent};

pub(in crate::namespace_access) const NAMESPACES: [&str; 4] = ["a", "b", "c", "quorate-system"];

/// The creator of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Operator,
    /// Unmanaged, and grants the role.
    Administrator,
    /// Unmanaged, with the same name, and does not grant the role.
    Unrelated,
}

struct Object {
    uid: String,
    version: u64,
    created_at: u64,
    condition: AccessCondition,
    has_condition: bool,
}

struct Binding {
    uid: String,
    version: u64,
    owner: Owner,
    /// Whether its subjects are unchanged.
    intact: bool,
}

/// The response to a write.
pub(super) enum Response {
    Done(Option<WatchEvent>),
    /// The binding exists already, was deleted, or has another version.
    Conflict,
}

#[derive(Default)]
pub(super) struct Cluster {
    pub(super) now: u64,
    versions: u64,
    objects: BTreeMap<(usize, &'static str), Object>,
    bindings: BTreeMap<&'static str, Binding>,
    /// Each change, with the index of its watch: five kinds, then the bindings.
    pub(super) log: Vec<(usize, WatchEvent)>,
    /// Writes by leaders.
    pub(super) writes: u64,
}

pub(super) const BINDINGS: usize = 5;

impl Cluster {
    fn version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    pub(super) fn create_object(&mut self, kind: usize, namespace: &'static str) {
        if self.objects.contains_key(&(kind, namespace)) {
            return;
        }
        let version = self.version();
        let (uid, created_at) = (format!("o{version}"), self.now);
        let object = Object {
            uid,
            version,
            created_at,
            condition: AccessCondition::Absent,
            has_condition: false,
        };
        self.objects.insert((kind, namespace), object);
        self.log_object(kind, namespace);
    }

    /// Another client writes to an object.
    pub(super) fn change_object(&mut self, kind: usize, namespace: &'static str) {
        let version = self.version();
        if let Some(object) = self.objects.get_mut(&(kind, namespace)) {
            object.version = version;
            self.log_object(kind, namespace);
        }
    }

    pub(super) fn delete_object(&mut self, kind: usize, namespace: &'static str) {
        if let Some(object) = self.objects.remove(&(kind, namespace)) {
            let deleted = StoreEvent::Deleted(object_entry(namespace, &object));
            self.log.push((kind, WatchEvent::Object(KindRef(kinds::ALL[kind]), deleted)));
        }
    }

    pub(super) fn create_binding(&mut self, namespace: &'static str, owner: Owner) {
        if self.bindings.contains_key(namespace) {
            return;
        }
        let version = self.version();
        let binding = Binding { uid: format!("b{version}"), version, owner, intact: true };
        self.bindings.insert(namespace, binding);
        self.log_binding(namespace);
    }

    /// Another client changes the subjects of a managed binding.
    pub(super) fn change_subjects(&mut self, namespace: &'static str) {
        let version = self.version();
        if let Some(binding) = self.bindings.get_mut(namespace)
            && binding.owner == Owner::Operator
        {
            (binding.intact, binding.version) = (false, version);
            self.log_binding(namespace);
        }
    }

    pub(super) fn delete_binding(&mut self, namespace: &'static str) {
        if let Some(binding) = self.bindings.remove(namespace) {
            let deleted = StoreEvent::Deleted(binding_entry(namespace, &binding));
            self.log.push((BINDINGS, WatchEvent::Binding(deleted)));
        }
    }

    fn log_object(&mut self, kind: usize, namespace: &'static str) {
        let entry = object_entry(namespace, &self.objects[&(kind, namespace)]);
        self.log.push((
            kind,
            WatchEvent::Object(KindRef(kinds::ALL[kind]), StoreEvent::Applied(entry)),
        ));
    }

    fn log_binding(&mut self, namespace: &'static str) {
        let event = WatchEvent::Binding(StoreEvent::Applied(binding_entry(
            namespace,
            &self.bindings[namespace],
        )));
        self.log.push((BINDINGS, event));
    }

    /// The list of one watch.
    pub(super) fn list(&self, watch: usize) -> Vec<WatchEvent> {
        if watch == BINDINGS {
            let entry = |(namespace, binding): (&&'static str, &Binding)| {
                WatchEvent::Binding(StoreEvent::Listed(binding_entry(namespace, binding)))
            };
            return self.bindings.iter().map(entry).collect();
        }
        let objects = self.objects.iter().filter(|((kind, _), _)| *kind == watch);
        let entry = |((kind, namespace), object): (&(usize, &'static str), &Object)| {
            let listed = StoreEvent::Listed(object_entry(namespace, object));
            WatchEvent::Object(KindRef(kinds::ALL[*kind]), listed)
        };
        objects.map(entry).collect()
    }

    pub(super) fn has(&self, kind: usize, namespace: &str) -> bool {
        self.objects.keys().any(|(of, in_namespace)| *of == kind && *in_namespace == namespace)
    }

    pub(super) fn is_used(&self, namespace: &str) -> bool {
        self.objects.keys().any(|(_, in_namespace)| *in_namespace == namespace)
    }

    pub(super) fn owner(&self, namespace: &str) -> Option<Owner> {
        self.bindings.get(namespace).map(|binding| binding.owner)
    }

    pub(super) fn is_intact(&self, namespace: &str) -> bool {
        self.bindings.get(namespace).is_none_or(|binding| binding.intact)
    }

    pub(super) fn grants_role(&self, namespace: &str) -> bool {
        self.bindings.get(namespace).is_some_and(grants_role)
    }

    /// The condition of each object, and whether managed fields have it.
    pub(super) fn conditions(&self) -> Vec<(&'static str, AccessCondition, bool)> {
        let objects = self.objects.iter();
        objects
            .map(|((_, namespace), object)| (*namespace, object.condition, object.has_condition))
            .collect()
    }

    /// The leader creates a binding.
    pub(super) fn create(&mut self, namespace: &str) -> Response {
        let namespace = interned(namespace);
        self.writes += 1;
        if self.bindings.contains_key(namespace) {
            return Response::Conflict;
        }
        self.create_binding(namespace, Owner::Operator);
        self.binding_response(namespace)
    }

    /// The leader repairs a binding.
    pub(super) fn repair(&mut self, namespace: &str, target: &Target) -> Response {
        let namespace = interned(namespace);
        self.writes += 1;
        if !self.matches(namespace, target) {
            return Response::Conflict;
        }
        let version = self.version();
        let binding = self.bindings.get_mut(namespace).unwrap();
        assert_eq!(binding.owner, Owner::Operator, "an unmanaged binding was written");
        (binding.intact, binding.version) = (true, version);
        self.log_binding(namespace);
        self.binding_response(namespace)
    }

    /// The leader deletes a binding, after its first live list of the namespace at `listed_at`.
    pub(super) fn delete(&mut self, namespace: &str, target: &Target, listed_at: u64) -> Response {
        let namespace = interned(namespace);
        self.writes += 1;
        if !self.matches(namespace, target) {
            return Response::Conflict;
        }
        assert_eq!(
            self.owner(namespace),
            Some(Owner::Operator),
            "an unmanaged binding was deleted"
        );
        let mut objects = self.objects.iter().filter(|((_, of), _)| *of == namespace);
        let existing = objects.find(|(_, object)| object.created_at < listed_at);
        assert!(existing.is_none(), "a binding was deleted where an object existed");
        self.delete_binding(namespace);
        Response::Done(None)
    }

    /// The leader updates the condition of an object; returns its new version.
    pub(super) fn update_condition(&mut self, update: &ConditionUpdate) -> Option<u64> {
        let kind = kinds::ALL.iter().position(|kind| KindRef(kind) == update.kind).unwrap();
        let namespace = interned(&update.namespace);
        let version = self.versions + 1;
        let object =
            self.objects.get_mut(&(kind, namespace)).filter(|object| object.uid == update.uid)?;
        let set = update.condition != AccessCondition::Absent;
        if object.condition == update.condition && object.has_condition == set {
            return Some(object.version);
        }
        (object.condition, object.has_condition, object.version) = (update.condition, set, version);
        self.versions = version;
        self.writes += 1;
        self.log_object(kind, namespace);
        Some(version)
    }

    fn matches(&self, namespace: &str, target: &Target) -> bool {
        self.bindings.get(namespace).is_some_and(|binding| {
            binding.uid == target.uid && binding.version.to_string() == target.resource_version
        })
    }

    fn binding_response(&self, namespace: &'static str) -> Response {
        let entry = binding_entry(namespace, &self.bindings[namespace]);
        Response::Done(Some(WatchEvent::Binding(StoreEvent::Applied(entry))))
    }
}

fn grants_role(binding: &Binding) -> bool {
    match binding.owner {
        Owner::Operator => binding.intact,
        Owner::Administrator => true,
        Owner::Unrelated => false,
    }
}

fn interned(namespace: &str) -> &'static str {
    NAMESPACES.into_iter().find(|name| *name == namespace).unwrap()
}

fn object_entry(namespace: &str, object: &Object) -> Entry<ObjectInfo> {
    let data = ObjectInfo { has_condition: object.has_condition };
    entry(namespace, "object", (&object.uid, object.version), data)
}

fn binding_entry(namespace: &str, binding: &Binding) -> Entry<BindingState> {
    let managed = binding.owner == Owner::Operator;
    let data = BindingState {
        managed,
        subjects_match: binding.intact,
        grants_role: grants_role(binding),
        terminating: false,
    };
    entry(namespace, names::NAMESPACE_ROLE_BINDING, (&binding.uid, binding.version), data)
}

pub(in crate::namespace_access) fn entry<T>(
    namespace: &str,
    name: &str,
    (uid, version): (&str, u64),
    data: T,
) -> Entry<T> {
    Entry {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        resource_version: version.to_string(),
        data,
    }
}
