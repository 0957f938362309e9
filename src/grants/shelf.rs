//! What a watch has told so far, and whether that is all there is.
//! Comes in: changes, in the order of the API server. Goes out: entries by namespace, or nothing
//! while a list is not complete. May touch: std. Pure. A half-told list must never be taken for an
//! empty one: rights would be taken away where objects are.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

/// One object, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<T> {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Its `resourceVersion`.
    pub(crate) version: String,
    pub(crate) what: T,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change<T> {
    /// A list begins. What was known before is in doubt until it is complete.
    Begun,
    /// An object of that list.
    Listed(Entry<T>),
    /// The list is complete: what was not in it is gone.
    Complete,
    /// An object was made or changed.
    Put(Entry<T>),
    /// An object is gone.
    Gone(Entry<T>),
    /// The watch is broken. It will begin anew.
    Lost,
}

type ByName<T> = BTreeMap<String, Entry<T>>;
type ByNamespace<T> = BTreeMap<String, ByName<T>>;

/// What one watch has told.
#[derive(Clone, Debug)]
pub(crate) struct Shelf<T> {
    entries: ByNamespace<T>,
    /// What the list that is under way has brought.
    coming: ByNamespace<T>,
    complete: bool,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), coming: BTreeMap::new(), complete: false }
    }
}

impl<T> Shelf<T> {
    /// Takes one change in.
    pub(crate) fn take(&mut self, change: Change<T>) {
        match change {
            Change::Begun | Change::Lost => {
                self.coming.clear();
                self.complete = false;
            }
            Change::Listed(entry) => put(&mut self.coming, entry),
            Change::Complete => {
                self.entries = std::mem::take(&mut self.coming);
                self.complete = true;
            }
            Change::Put(entry) => put(&mut self.entries, entry),
            Change::Gone(entry) => self.remove(&entry.namespace, &entry.name, &entry.uid),
        }
    }

    /// Puts down what a write of ours was answered with, ahead of the watch.
    pub(crate) fn put(&mut self, entry: Entry<T>) {
        put(&mut self.entries, entry);
    }

    /// Removes an object. One that has its name and another uid is its successor, and stays.
    pub(crate) fn remove(&mut self, namespace: &str, name: &str, uid: &str) {
        let Some(names) = self.entries.get_mut(namespace) else { return };
        if names.get(name).is_some_and(|entry| entry.uid == uid) {
            names.remove(name);
        }
        if names.is_empty() {
            self.entries.remove(namespace);
        }
    }

    /// The entries, if they are all there are.
    pub(crate) fn known(&self) -> Option<Known<'_, T>> {
        self.complete.then_some(Known(&self.entries))
    }

    /// The uids of everything that was told and not yet told gone, also while that is in doubt.
    pub(crate) fn uids(&self) -> impl Iterator<Item = &str> {
        self.entries.values().flat_map(BTreeMap::values).map(|entry| entry.uid.as_str())
    }
}

fn put<T>(entries: &mut ByNamespace<T>, entry: Entry<T>) {
    entries.entry(entry.namespace.clone()).or_default().insert(entry.name.clone(), entry);
}

/// Entries that are all there are.
#[derive(Debug)]
pub(crate) struct Known<'a, T>(&'a ByNamespace<T>);

impl<'a, T> Known<'a, T> {
    /// The namespaces that have an entry.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &'a str> + use<'a, T> {
        self.0.keys().map(String::as_str)
    }

    /// Whether a namespace has an entry.
    pub(crate) fn has(&self, namespace: &str) -> bool {
        self.0.contains_key(namespace)
    }

    /// The entry with this name.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&'a Entry<T>> {
        self.0.get(namespace)?.get(name)
    }

    /// Every entry, ordered by namespace and name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'a Entry<T>> + use<'a, T> {
        self.0.values().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(namespace: &str, uid: &str) -> Entry<()> {
        Entry {
            namespace: namespace.to_owned(),
            name: "it".to_owned(),
            uid: uid.to_owned(),
            version: "1".to_owned(),
            what: (),
        }
    }

    fn listed(namespaces: &[&str]) -> Shelf<()> {
        let mut shelf = Shelf::default();
        shelf.take(Change::Begun);
        for namespace in namespaces {
            shelf.take(Change::Listed(entry(namespace, "u1")));
        }
        shelf.take(Change::Complete);
        shelf
    }

    #[test]
    fn nothing_is_known_before_the_first_list_is_complete() {
        let mut shelf = Shelf::default();
        assert!(shelf.known().is_none());
        shelf.take(Change::Begun);
        shelf.take(Change::Listed(entry("a", "u1")));
        assert!(shelf.known().is_none());
        shelf.take(Change::Complete);
        assert!(shelf.known().unwrap().has("a"));
    }

    #[test]
    fn nothing_is_known_while_a_watch_is_rebuilt_or_broken() {
        let mut shelf = listed(&["a", "b"]);
        shelf.take(Change::Lost);
        assert!(shelf.known().is_none());
        shelf.take(Change::Begun);
        shelf.take(Change::Listed(entry("b", "u1")));
        assert!(shelf.known().is_none());
        shelf.take(Change::Complete);
        let known = shelf.known().unwrap();
        assert!(known.has("b") && !known.has("a"));
    }

    #[test]
    fn a_list_that_broke_leaves_nothing_in_the_next_one() {
        let mut shelf = Shelf::default();
        shelf.take(Change::Begun);
        shelf.take(Change::Listed(entry("a", "u1")));
        shelf.take(Change::Lost);
        shelf.take(Change::Begun);
        shelf.take(Change::Complete);
        assert!(!shelf.known().unwrap().has("a"));
    }

    #[test]
    fn the_end_of_one_object_does_not_end_its_successor() {
        let mut shelf = listed(&["a"]);
        shelf.take(Change::Put(entry("a", "u2")));
        shelf.take(Change::Gone(entry("a", "u1")));
        assert!(shelf.known().unwrap().has("a"));
        shelf.take(Change::Gone(entry("a", "u2")));
        assert!(!shelf.known().unwrap().has("a"));
    }
}
