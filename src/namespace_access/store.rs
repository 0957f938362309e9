//! The objects that a watch has delivered, and whether its list is complete. Pure.
//!
//! An incomplete list must never be taken for an empty one: access would be removed from namespaces
//! that have objects.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

/// One object, reduced to the data that decisions need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<T> {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) data: T,
}

/// A change of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreEvent<T> {
    /// A list starts. Earlier entries are uncertain until it is complete.
    ListStarted,
    /// An object of that list.
    Listed(Entry<T>),
    /// The list is complete: entries that are not in it were deleted.
    ListComplete,
    /// An object was created or changed.
    Applied(Entry<T>),
    /// An object was deleted.
    Deleted(Entry<T>),
    /// The watch failed. It starts again with a list.
    WatchFailed,
}

type ByName<T> = BTreeMap<String, Entry<T>>;
type ByNamespace<T> = BTreeMap<String, ByName<T>>;

/// The objects of one watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchStore<T> {
    entries: ByNamespace<T>,
    /// The objects of the list in progress.
    listing: ByNamespace<T>,
    synced: bool,
}

impl<T> Default for WatchStore<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), listing: BTreeMap::new(), synced: false }
    }
}

impl<T> WatchStore<T> {
    /// Applies one event.
    pub(crate) fn apply(&mut self, event: StoreEvent<T>) {
        match event {
            StoreEvent::ListStarted | StoreEvent::WatchFailed => {
                self.listing.clear();
                self.synced = false;
            }
            StoreEvent::Listed(entry) => insert(&mut self.listing, entry),
            StoreEvent::ListComplete => {
                self.entries = std::mem::take(&mut self.listing);
                self.synced = true;
            }
            StoreEvent::Applied(entry) => insert(&mut self.entries, entry),
            StoreEvent::Deleted(entry) => self.remove(&entry.namespace, &entry.name, &entry.uid),
        }
    }

    /// Inserts the response to a write of ours, ahead of the watch.
    pub(crate) fn insert(&mut self, entry: Entry<T>) {
        insert(&mut self.entries, entry);
    }

    /// Removes an object. A successor with the same name and another UID stays.
    pub(crate) fn remove(&mut self, namespace: &str, name: &str, uid: &str) {
        let Some(names) = self.entries.get_mut(namespace) else { return };
        if names.get(name).is_some_and(|entry| entry.uid == uid) {
            names.remove(name);
        }
        if names.is_empty() {
            self.entries.remove(namespace);
        }
    }

    /// The entries, if the list is complete.
    pub(crate) fn synced(&self) -> Option<Synced<'_, T>> {
        self.synced.then_some(Synced(&self.entries))
    }

    /// The UIDs of all entries, also while the list is incomplete.
    pub(crate) fn uids(&self) -> impl Iterator<Item = &str> {
        self.entries.values().flat_map(BTreeMap::values).map(|entry| entry.uid.as_str())
    }
}

fn insert<T>(entries: &mut ByNamespace<T>, entry: Entry<T>) {
    entries.entry(entry.namespace.clone()).or_default().insert(entry.name.clone(), entry);
}

/// The entries of a complete list.
#[derive(Debug)]
pub(crate) struct Synced<'a, T>(&'a ByNamespace<T>);

impl<'a, T> Synced<'a, T> {
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

    /// All entries, ordered by namespace and name.
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
            name: "object".to_owned(),
            uid: uid.to_owned(),
            resource_version: "1".to_owned(),
            data: (),
        }
    }

    fn listed(namespaces: &[&str]) -> WatchStore<()> {
        let mut store = WatchStore::default();
        store.apply(StoreEvent::ListStarted);
        for namespace in namespaces {
            store.apply(StoreEvent::Listed(entry(namespace, "u1")));
        }
        store.apply(StoreEvent::ListComplete);
        store
    }

    #[test]
    fn store_is_not_synced_before_the_first_list_is_complete() {
        let mut store = WatchStore::default();
        assert!(store.synced().is_none());
        store.apply(StoreEvent::ListStarted);
        store.apply(StoreEvent::Listed(entry("a", "u1")));
        assert!(store.synced().is_none());
        store.apply(StoreEvent::ListComplete);
        assert!(store.synced().unwrap().has("a"));
    }

    #[test]
    fn store_is_not_synced_while_a_watch_has_failed_or_lists_again() {
        let mut store = listed(&["a", "b"]);
        store.apply(StoreEvent::WatchFailed);
        assert!(store.synced().is_none());
        store.apply(StoreEvent::ListStarted);
        store.apply(StoreEvent::Listed(entry("b", "u1")));
        assert!(store.synced().is_none());
        store.apply(StoreEvent::ListComplete);
        let synced = store.synced().unwrap();
        assert!(synced.has("b") && !synced.has("a"));
    }

    #[test]
    fn failed_list_leaves_no_entries_in_the_next_one() {
        let mut store = WatchStore::default();
        store.apply(StoreEvent::ListStarted);
        store.apply(StoreEvent::Listed(entry("a", "u1")));
        store.apply(StoreEvent::WatchFailed);
        store.apply(StoreEvent::ListStarted);
        store.apply(StoreEvent::ListComplete);
        assert!(!store.synced().unwrap().has("a"));
    }

    #[test]
    fn deletion_of_an_object_does_not_delete_its_successor() {
        let mut store = listed(&["a"]);
        store.apply(StoreEvent::Applied(entry("a", "u2")));
        store.apply(StoreEvent::Deleted(entry("a", "u1")));
        assert!(store.synced().unwrap().has("a"));
        store.apply(StoreEvent::Deleted(entry("a", "u2")));
        assert!(!store.synced().unwrap().has("a"));
    }
}
