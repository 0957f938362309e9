//! The API server of the model world: one Secret and a few targets, each with a version that every
//! write must name. It remembers for how long each target held which bundle, because a real API
//! server that lags behind still goes by an older one.
//! Comes in: writes. Goes out: how they ended, and views. May touch: nothing.

use std::collections::BTreeMap;

use super::LAG;
use crate::pki::ca::{Certificate, holds};
use crate::webhook_certs::apply::Outcome;
use crate::webhook_certs::ca_set::CaSet;
use crate::webhook_certs::state::{SecretState, TargetState};

/// A bundle in a target, and since when.
struct Entry {
    start: u64,
    bundle: Vec<u8>,
    /// Whether someone else than a leader put it there.
    foreign: bool,
    /// What was asked about it already: reading PEM in every step would take all the time.
    holds: BTreeMap<Vec<u8>, bool>,
}

impl Entry {
    fn new(start: u64, bundle: Vec<u8>, foreign: bool) -> Self {
        Self { start, bundle, foreign, holds: BTreeMap::new() }
    }

    fn holds(&mut self, der: &[u8]) -> bool {
        if let Some(known) = self.holds.get(der) {
            return *known;
        }
        let holds = holds(&self.bundle, der);
        self.holds.insert(der.to_vec(), holds);
        holds
    }
}

/// A target. It is absent if it holds nothing at all, which is not an empty bundle.
#[derive(Default)]
pub(super) struct Object {
    version: u64,
    present: bool,
    entries: Vec<Entry>,
    /// Writes of leaders, and of others.
    pub(super) injections: u64,
    pub(super) foreign: u64,
}

#[derive(Clone)]
pub(super) enum Write {
    Create(CaSet),
    /// `looked` is when the leader saw what it decided upon.
    Replace {
        version: u64,
        ca_set: CaSet,
        observed: u64,
    },
    InjectBundle {
        place: usize,
        version: u64,
        bundle: Vec<u8>,
    },
}

/// Everything at one moment.
#[derive(Clone)]
pub(super) struct View {
    pub(super) secret_state: SecretState,
    pub(super) version: u64,
    pub(super) targets_state: Vec<TargetState>,
    pub(super) versions: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Server {
    pub(super) ca_set: Option<CaSet>,
    version: u64,
    pub(super) objects: Vec<Object>,
    /// What became `current`, and when the leader had looked that decided it.
    promoted: BTreeMap<Vec<u8>, u64>,
    pub(super) promotions: u64,
    /// Authorities to come that ended before they could be promoted.
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
        for place in 0..targets {
            server.meddle(place, Vec::new(), 0);
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
                mark: object.version.to_string(),
                bundles: vec![entry.bundle.clone()],
            },
            Some(_) | None => TargetState::NotFound,
        };
        View {
            secret_state,
            version: self.version,
            targets_state: self.objects.iter().map(state).collect(),
            versions: self.objects.iter().map(|object| object.version).collect(),
        }
    }

    pub(super) fn write(&mut self, write: Write, now: u64) -> Outcome {
        match write {
            Write::Create(ca_set) if self.ca_set.is_none() => self.put(ca_set, now),
            Write::Replace { version, ca_set, observed }
                if self.ca_set.is_some() && version == self.version =>
            {
                self.put(ca_set, observed)
            }
            Write::InjectBundle { place, version, bundle }
                if self.objects[place].present && version == self.objects[place].version =>
            {
                self.writes += 1;
                let object = &mut self.objects[place];
                object.injections += 1;
                object.version += 1;
                object.entries.push(Entry::new(now, bundle, false));
                Outcome::Written
            }
            Write::Create(_) | Write::Replace { .. } | Write::InjectBundle { .. } => Outcome::Late,
        }
    }

    /// Whether a write lets another authority sign.
    pub(super) fn promotes(&self, write: &Write) -> bool {
        let before = self.ca_set.as_ref().and_then(|ca_set| ca_set.current.as_ref());
        match write {
            Write::Replace { ca_set, .. } => ca_set.current.as_ref() != before,
            Write::Create(_) | Write::InjectBundle { .. } => false,
        }
    }

    fn put(&mut self, ca_set: CaSet, observed: u64) -> Outcome {
        self.writes += 1;
        self.version += 1;
        let before = self.ca_set.replace(ca_set);
        let current = |ca_set: &CaSet| ca_set.current.as_ref().map(|it| it.certificate.der.clone());
        let after = self.ca_set.as_ref().and_then(current);
        if let (Some(before), Some(after)) = (before.as_ref().and_then(current), after)
            && before != after
        {
            self.promoted.insert(after, observed);
            self.promotions += 1;
        }
        let next = |ca_set: &CaSet| ca_set.next.as_ref().map(|it| it.certificate.der.clone());
        let [old, new] = [&before, &self.ca_set].map(|ca_set| ca_set.as_ref().and_then(next));
        self.replaced += u64::from(old.is_some() && new.is_some() && old != new);
        if before.map(|ca_set| ca_set.bundle()) != self.ca_set.as_ref().map(CaSet::bundle) {
            self.bundles += 1;
        }
        Outcome::Written
    }

    /// Someone else writes a bundle, or makes the target anew.
    pub(super) fn meddle(&mut self, place: usize, bundle: Vec<u8>, now: u64) {
        let object = &mut self.objects[place];
        object.present = true;
        object.version += 1;
        object.foreign += 1;
        object.entries.push(Entry::new(now, bundle, true));
    }

    /// Someone puts back what the target held before.
    pub(super) fn put_back(&mut self, place: usize, now: u64) {
        let entries = &self.objects[place].entries;
        let before = entries.iter().rev().nth(1).map(|entry| entry.bundle.clone());
        self.meddle(place, before.unwrap_or_default(), now);
    }

    pub(super) fn delete(&mut self, place: usize) {
        self.objects[place].present = false;
        self.objects[place].entries.clear();
    }

    /// Whether an API server that lags behind might not trust what this authority signed. What
    /// someone else has put there is not our fault, unless the authority was promoted in spite of it.
    pub(super) fn distrust(&mut self, authority: &Certificate, now: u64) -> Option<String> {
        let promoted = self.promoted.get(&authority.der).copied();
        for (place, object) in self.objects.iter_mut().enumerate() {
            // An entry counts until its successor is older than the lag.
            while object.entries.get(1).is_some_and(|next| next.start + LAG <= now) {
                object.entries.remove(0);
            }
            for entry in &mut object.entries {
                let counts = !entry.foreign || promoted.is_some_and(|time| time > entry.start);
                if counts && !entry.holds(&authority.der) {
                    let foreign = entry.foreign;
                    return Some(format!(
                        "target {place}, bundle since {}, foreign {foreign}, promoted {promoted:?}",
                        entry.start
                    ));
                }
            }
        }
        None
    }
}
