//! What is true in the model world: objects, bindings, and the order in which they changed.
//! Comes in: what users, administrators and the leader do. Goes out: answers, and a log of changes
//! that watches are fed from.
//! May touch: the types of the wing.

use std::collections::BTreeMap;

use crate::api::kinds;
use crate::api::names;
use crate::grants::complain::{Says, Word};
use crate::grants::decide::Target;
use crate::grants::seen::{Bond, News, Thing, Which};
use crate::grants::shelf::{Change, Entry};

pub(in crate::grants) const NAMESPACES: [&str; 4] = ["a", "b", "c", "quorate-system"];

/// Who made a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Operator,
    /// It grants, and is not the operator's.
    Administrator,
    /// It has the name, and grants nothing.
    Stranger,
}

struct Object {
    uid: String,
    version: u64,
    made: u64,
    says: Says,
    marked: bool,
}

struct Binding {
    uid: String,
    version: u64,
    owner: Owner,
    /// Nobody has changed its subjects.
    intact: bool,
}

/// How the API server answers a write.
pub(super) enum Answer {
    Done(Option<News>),
    /// Exists already, is gone, or is another version.
    Conflict,
}

#[derive(Default)]
pub(super) struct Cluster {
    pub(super) now: u64,
    versions: u64,
    objects: BTreeMap<(usize, &'static str), Object>,
    bindings: BTreeMap<&'static str, Binding>,
    /// Each change, with the place of the watch that tells it: five kinds, then the bindings.
    pub(super) log: Vec<(usize, News)>,
    /// Writes by leaders.
    pub(super) writes: u64,
}

pub(super) const BINDINGS: usize = 5;

impl Cluster {
    fn version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    pub(super) fn make(&mut self, kind: usize, namespace: &'static str) {
        if self.objects.contains_key(&(kind, namespace)) {
            return;
        }
        let version = self.version();
        let (uid, made) = (format!("o{version}"), self.now);
        let object = Object { uid, version, made, says: Says::Nothing, marked: false };
        self.objects.insert((kind, namespace), object);
        self.tell_object(kind, namespace);
    }

    /// Someone writes to an object.
    pub(super) fn change(&mut self, kind: usize, namespace: &'static str) {
        let version = self.version();
        if let Some(object) = self.objects.get_mut(&(kind, namespace)) {
            object.version = version;
            self.tell_object(kind, namespace);
        }
    }

    pub(super) fn end(&mut self, kind: usize, namespace: &'static str) {
        if let Some(object) = self.objects.remove(&(kind, namespace)) {
            let gone = Change::Gone(object_entry(namespace, &object));
            self.log.push((kind, News::Object(Which(kinds::ALL[kind]), gone)));
        }
    }

    pub(super) fn bind(&mut self, namespace: &'static str, owner: Owner) {
        if self.bindings.contains_key(namespace) {
            return;
        }
        let version = self.version();
        let binding = Binding { uid: format!("b{version}"), version, owner, intact: true };
        self.bindings.insert(namespace, binding);
        self.tell_binding(namespace);
    }

    /// Someone changes whom a binding binds.
    pub(super) fn meddle(&mut self, namespace: &'static str) {
        let version = self.version();
        if let Some(binding) = self.bindings.get_mut(namespace)
            && binding.owner == Owner::Operator
        {
            (binding.intact, binding.version) = (false, version);
            self.tell_binding(namespace);
        }
    }

    /// Someone deletes a binding.
    pub(super) fn unbind(&mut self, namespace: &'static str) {
        if let Some(binding) = self.bindings.remove(namespace) {
            let gone = Change::Gone(binding_entry(namespace, &binding));
            self.log.push((BINDINGS, News::Binding(gone)));
        }
    }

    fn tell_object(&mut self, kind: usize, namespace: &'static str) {
        let entry = object_entry(namespace, &self.objects[&(kind, namespace)]);
        self.log.push((kind, News::Object(Which(kinds::ALL[kind]), Change::Put(entry))));
    }

    fn tell_binding(&mut self, namespace: &'static str) {
        let news = News::Binding(Change::Put(binding_entry(namespace, &self.bindings[namespace])));
        self.log.push((BINDINGS, news));
    }

    /// What a list says now.
    pub(super) fn list(&self, watch: usize) -> Vec<News> {
        if watch == BINDINGS {
            let entry = |(namespace, binding): (&&'static str, &Binding)| {
                News::Binding(Change::Listed(binding_entry(namespace, binding)))
            };
            return self.bindings.iter().map(entry).collect();
        }
        let of = self.objects.iter().filter(|((kind, _), _)| *kind == watch);
        let entry = |((kind, namespace), object): (&(usize, &'static str), &Object)| {
            let listed = Change::Listed(object_entry(namespace, object));
            News::Object(Which(kinds::ALL[*kind]), listed)
        };
        of.map(entry).collect()
    }

    pub(super) fn has(&self, kind: usize, namespace: &str) -> bool {
        self.objects.keys().any(|(of, here)| *of == kind && *here == namespace)
    }

    pub(super) fn is_used(&self, namespace: &str) -> bool {
        self.objects.keys().any(|(_, here)| *here == namespace)
    }

    pub(super) fn owner(&self, namespace: &str) -> Option<Owner> {
        self.bindings.get(namespace).map(|binding| binding.owner)
    }

    pub(super) fn is_intact(&self, namespace: &str) -> bool {
        self.bindings.get(namespace).is_none_or(|binding| binding.intact)
    }

    pub(super) fn grants(&self, namespace: &str) -> bool {
        self.bindings.get(namespace).is_some_and(gives)
    }

    /// What each object says, and whether it is marked.
    pub(super) fn words(&self) -> Vec<(&'static str, Says, bool)> {
        let objects = self.objects.iter();
        objects.map(|((_, namespace), it)| (*namespace, it.says, it.marked)).collect()
    }

    /// The leader creates a binding.
    pub(super) fn create(&mut self, namespace: &str) -> Answer {
        let namespace = known(namespace);
        self.writes += 1;
        if self.bindings.contains_key(namespace) {
            return Answer::Conflict;
        }
        self.bind(namespace, Owner::Operator);
        self.answer_binding(namespace)
    }

    /// The leader repairs a binding.
    pub(super) fn repair(&mut self, namespace: &str, target: &Target) -> Answer {
        let namespace = known(namespace);
        self.writes += 1;
        if !self.is(namespace, target) {
            return Answer::Conflict;
        }
        let version = self.version();
        let binding = self.bindings.get_mut(namespace).unwrap();
        assert_eq!(binding.owner, Owner::Operator, "somebody else's binding was written to");
        (binding.intact, binding.version) = (true, version);
        self.tell_binding(namespace);
        self.answer_binding(namespace)
    }

    /// The leader deletes a binding, after it looked at the namespace at `looked` for the first time.
    pub(super) fn delete(&mut self, namespace: &str, target: &Target, looked: u64) -> Answer {
        let namespace = known(namespace);
        self.writes += 1;
        if !self.is(namespace, target) {
            return Answer::Conflict;
        }
        assert_eq!(self.owner(namespace), Some(Owner::Operator), "somebody else's binding ended");
        let mut here = self.objects.iter().filter(|((_, it), _)| *it == namespace);
        let there = here.find(|(_, object)| object.made < looked);
        assert!(there.is_none(), "rights were taken where an object was");
        self.unbind(namespace);
        Answer::Done(None)
    }

    /// The leader makes an object say something; answers the version it has then.
    pub(super) fn speak(&mut self, word: &Word) -> Option<u64> {
        let kind = kinds::ALL.iter().position(|kind| Which(kind) == word.which).unwrap();
        let namespace = known(&word.namespace);
        let version = self.versions + 1;
        let object = self.objects.get_mut(&(kind, namespace)).filter(|it| it.uid == word.uid)?;
        let wanted = word.says != Says::Nothing;
        if object.says == word.says && object.marked == wanted {
            return Some(object.version);
        }
        (object.says, object.marked, object.version) = (word.says, wanted, version);
        self.versions = version;
        self.writes += 1;
        self.tell_object(kind, namespace);
        Some(version)
    }

    fn is(&self, namespace: &str, target: &Target) -> bool {
        self.bindings
            .get(namespace)
            .is_some_and(|it| it.uid == target.uid && it.version.to_string() == target.version)
    }

    fn answer_binding(&self, namespace: &'static str) -> Answer {
        let entry = binding_entry(namespace, &self.bindings[namespace]);
        Answer::Done(Some(News::Binding(Change::Put(entry))))
    }
}

fn gives(binding: &Binding) -> bool {
    match binding.owner {
        Owner::Operator => binding.intact,
        Owner::Administrator => true,
        Owner::Stranger => false,
    }
}

fn known(namespace: &str) -> &'static str {
    NAMESPACES.into_iter().find(|it| *it == namespace).unwrap()
}

fn object_entry(namespace: &str, object: &Object) -> Entry<Thing> {
    let what = Thing { marked: object.marked };
    entry(namespace, "it", (&object.uid, object.version), what)
}

fn binding_entry(namespace: &str, binding: &Binding) -> Entry<Bond> {
    let ours = binding.owner == Owner::Operator;
    let what = Bond { ours, exact: binding.intact, gives: gives(binding), going: false };
    entry(namespace, names::NAMESPACE_ROLE_BINDING, (&binding.uid, binding.version), what)
}

pub(in crate::grants) fn entry<T>(
    namespace: &str,
    name: &str,
    (uid, version): (&str, u64),
    what: T,
) -> Entry<T> {
    Entry {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        version: version.to_string(),
        what,
    }
}
