//! The API server of the model world: one Secret and a few targets, each with a version that every
//! write must name. It remembers for how long each target held which bundle, because a real API
//! server that lags behind still goes by an older one.
//! Comes in: writes. Goes out: how they ended, and views. May touch: nothing.

use std::collections::BTreeMap;

use super::LAG;
use crate::certificates::carry_out::Outcome;
use crate::certificates::ring::Ring;
use crate::certificates::seen::{Reading, Sight};
use crate::pki::authority::{Certificate, holds};

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
    Create(Ring),
    /// `looked` is when the leader saw what it decided upon.
    Replace {
        version: u64,
        ring: Ring,
        looked: u64,
    },
    Inject {
        place: usize,
        version: u64,
        bundle: Vec<u8>,
    },
}

/// Everything at one moment.
#[derive(Clone)]
pub(super) struct View {
    pub(super) reading: Reading,
    pub(super) version: u64,
    pub(super) sights: Vec<Sight>,
    pub(super) versions: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Server {
    pub(super) ring: Option<Ring>,
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
        let reading = match &self.ring {
            None => Reading::Absent,
            Some(ring) => Reading::Found { ring: Box::new(ring.clone()), damage: Vec::new() },
        };
        let sight = |object: &Object| match object.entries.last() {
            Some(entry) if object.present => Sight::Found {
                mark: object.version.to_string(),
                bundles: vec![entry.bundle.clone()],
            },
            Some(_) | None => Sight::Absent,
        };
        View {
            reading,
            version: self.version,
            sights: self.objects.iter().map(sight).collect(),
            versions: self.objects.iter().map(|object| object.version).collect(),
        }
    }

    pub(super) fn write(&mut self, write: Write, now: u64) -> Outcome {
        match write {
            Write::Create(ring) if self.ring.is_none() => self.put(ring, now),
            Write::Replace { version, ring, looked }
                if self.ring.is_some() && version == self.version =>
            {
                self.put(ring, looked)
            }
            Write::Inject { place, version, bundle }
                if self.objects[place].present && version == self.objects[place].version =>
            {
                self.writes += 1;
                let object = &mut self.objects[place];
                object.injections += 1;
                object.version += 1;
                object.entries.push(Entry::new(now, bundle, false));
                Outcome::Written
            }
            Write::Create(_) | Write::Replace { .. } | Write::Inject { .. } => Outcome::Late,
        }
    }

    /// Whether a write lets another authority sign.
    pub(super) fn promotes(&self, write: &Write) -> bool {
        let before = self.ring.as_ref().and_then(|ring| ring.current.as_ref());
        match write {
            Write::Replace { ring, .. } => ring.current.as_ref() != before,
            Write::Create(_) | Write::Inject { .. } => false,
        }
    }

    fn put(&mut self, ring: Ring, looked: u64) -> Outcome {
        self.writes += 1;
        self.version += 1;
        let before = self.ring.replace(ring);
        let current = |ring: &Ring| ring.current.as_ref().map(|it| it.certificate.der.clone());
        let after = self.ring.as_ref().and_then(current);
        if let (Some(before), Some(after)) = (before.as_ref().and_then(current), after)
            && before != after
        {
            self.promoted.insert(after, looked);
            self.promotions += 1;
        }
        let next = |ring: &Ring| ring.next.as_ref().map(|it| it.certificate.der.clone());
        let [old, new] = [&before, &self.ring].map(|ring| ring.as_ref().and_then(next));
        self.replaced += u64::from(old.is_some() && new.is_some() && old != new);
        if before.map(|ring| ring.bundle()) != self.ring.as_ref().map(Ring::bundle) {
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
