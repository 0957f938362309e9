//! The API server of the model test: one Secret and a few targets, each with a version that every
//! write must carry. The server keeps the history of each target's bundle, because a real API
//! server that lags behind verifies with an older one.

use std::collections::BTreeMap;

use super::LAG;
use crate::pki::ca::{Certificate, bundle_contains};
use crate::webhook_certs::apply::Outcome;
use crate::webhook_certs::ca_set::CaSet;
use crate::webhook_certs::state::{SecretState, TargetState};

/// A bundle of a target, and since when.
struct Entry {
    start: u64,
    bundle: Vec<u8>,
    /// Whether another writer than a leader wrote it.
    foreign: bool,
    /// Cached lookups: parsing PEM in every tick would be too slow.
    contains: BTreeMap<Vec<u8>, bool>,
}

impl Entry {
    fn new(start: u64, bundle: Vec<u8>, foreign: bool) -> Self {
        Self { start, bundle, foreign, contains: BTreeMap::new() }
    }

    fn contains(&mut self, der: &[u8]) -> bool {
        if let Some(cached) = self.contains.get(der) {
            return *cached;
        }
        let contains = bundle_contains(&self.bundle, der);
        self.contains.insert(der.to_vec(), contains);
        contains
    }
}

/// A target. A deleted target has no bundle at all, which differs from an empty bundle.
#[derive(Default)]
pub(super) struct Object {
    version: u64,
    present: bool,
    entries: Vec<Entry>,
    /// Writes of leaders, and of other writers.
    pub(super) injections: u64,
    pub(super) foreign_writes: u64,
}

#[derive(Clone)]
pub(super) enum Write {
    Create(CaSet),
    /// `observed` is when the leader read the state that it decided on.
    Replace {
        version: u64,
        ca_set: CaSet,
        observed: u64,
    },
    InjectBundle {
        target: usize,
        version: u64,
        bundle: Vec<u8>,
    },
}

/// The state of the server at one instant.
#[derive(Clone)]
pub(super) struct View {
    pub(super) secret_state: SecretState,
    pub(super) version: u64,
    pub(super) target_states: Vec<TargetState>,
    pub(super) versions: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Server {
    pub(super) ca_set: Option<CaSet>,
    version: u64,
    pub(super) objects: Vec<Object>,
    /// Each CA that became `current`, and when the leader read the state that it decided on.
    activated: BTreeMap<Vec<u8>, u64>,
    pub(super) rotations: u64,
    /// Next CAs that were replaced before their activation.
    pub(super) replaced: u64,
    pub(super) bundles: u64,
    pub(super) writes: u64,
}

impl Server {
    pub(super) fn new(targets: usize) -> Self {
        let mut server = Self::default();
        for _ in 0..targets {
            server.objects.push(Object::default());
        }
        for target in 0..targets {
            server.foreign_write(target, Vec::new(), 0);
        }
        server
    }

    pub(super) fn view(&self) -> View {
        let secret_state = match &self.ca_set {
            None => SecretState::NotFound,
            Some(ca_set) => {
                SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid: Vec::new() }
            }
        };
        let state = |object: &Object| match object.entries.last() {
            Some(entry) if object.present => TargetState::Managed {
                generation: object.version.to_string(),
                bundles: vec![entry.bundle.clone()],
            },
            Some(_) | None => TargetState::NotFound,
        };
        View {
            secret_state,
            version: self.version,
            target_states: self.objects.iter().map(state).collect(),
            versions: self.objects.iter().map(|object| object.version).collect(),
        }
    }

    pub(super) fn write(&mut self, write: Write, now: u64) -> Outcome {
        match write {
            Write::Create(ca_set) if self.ca_set.is_none() => self.store(ca_set, now),
            Write::Replace { version, ca_set, observed }
                if self.ca_set.is_some() && version == self.version =>
            {
                self.store(ca_set, observed)
            }
            Write::InjectBundle { target, version, bundle }
                if self.objects[target].present && version == self.objects[target].version =>
            {
                self.writes += 1;
                let object = &mut self.objects[target];
                object.injections += 1;
                object.version += 1;
                object.entries.push(Entry::new(now, bundle, false));
                Outcome::Written
            }
            Write::Create(_) | Write::Replace { .. } | Write::InjectBundle { .. } => {
                Outcome::Conflict
            }
        }
    }

    /// Whether a write changes the current CA.
    pub(super) fn activates(&self, write: &Write) -> bool {
        let before = self.ca_set.as_ref().and_then(|ca_set| ca_set.current.as_ref());
        match write {
            Write::Replace { ca_set, .. } => ca_set.current.as_ref() != before,
            Write::Create(_) | Write::InjectBundle { .. } => false,
        }
    }

    fn store(&mut self, ca_set: CaSet, observed: u64) -> Outcome {
        self.writes += 1;
        self.version += 1;
        let before = self.ca_set.replace(ca_set);
        let current = |ca_set: &CaSet| ca_set.current.as_ref().map(|ca| ca.certificate.der.clone());
        let after = self.ca_set.as_ref().and_then(current);
        if let (Some(before), Some(after)) = (before.as_ref().and_then(current), after)
            && before != after
        {
            self.activated.insert(after, observed);
            self.rotations += 1;
        }
        let next = |ca_set: &CaSet| ca_set.next.as_ref().map(|ca| ca.certificate.der.clone());
        let [old, new] = [&before, &self.ca_set].map(|ca_set| ca_set.as_ref().and_then(next));
        self.replaced += u64::from(old.is_some() && new.is_some() && old != new);
        if before.map(|ca_set| ca_set.bundle()) != self.ca_set.as_ref().map(CaSet::bundle) {
            self.bundles += 1;
        }
        Outcome::Written
    }

    /// Another writer changes the bundle, or recreates the target.
    pub(super) fn foreign_write(&mut self, target: usize, bundle: Vec<u8>, now: u64) {
        let object = &mut self.objects[target];
        object.present = true;
        object.version += 1;
        object.foreign_writes += 1;
        object.entries.push(Entry::new(now, bundle, true));
    }

    /// Another writer restores the previous bundle of the target.
    pub(super) fn revert(&mut self, target: usize, now: u64) {
        let entries = &self.objects[target].entries;
        let before = entries.iter().rev().nth(1).map(|entry| entry.bundle.clone());
        self.foreign_write(target, before.unwrap_or_default(), now);
    }

    pub(super) fn delete(&mut self, target: usize) {
        self.objects[target].present = false;
        self.objects[target].entries.clear();
    }

    /// Why an API server that lags behind might reject a leaf of this CA. A bundle of another
    /// writer counts only if the CA was activated in spite of it.
    pub(super) fn rejects(&mut self, ca: &Certificate, now: u64) -> Option<String> {
        let activated = self.activated.get(&ca.der).copied();
        for (target, object) in self.objects.iter_mut().enumerate() {
            // An entry counts until its successor is older than the propagation lag.
            while object.entries.get(1).is_some_and(|next| next.start + LAG <= now) {
                object.entries.remove(0);
            }
            for entry in &mut object.entries {
                let counts = !entry.foreign || activated.is_some_and(|time| time > entry.start);
                if counts && !entry.contains(&ca.der) {
                    let (since, foreign) = (entry.start, entry.foreign);
                    return Some(format!(
                        "target {target} since {since}, foreign {foreign}, activated {activated:?}"
                    ));
                }
            }
        }
        None
    }
}
