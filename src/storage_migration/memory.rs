//! What a leader remembers of one definition from pass to pass, and loses with its term.
//! Comes in: how passes ended. Goes out: when to try again, how many writes at a time, what need not be asked twice.
//! May touch: nothing. Pure. Nothing here is needed to be right: it spares time and calls.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::time::Duration;

use super::seen::Listed;
use crate::api::crd::stored::StoredCrd;
use crate::api::monotonic::MonotonicTime;

/// So many writes are under way at a time at first, and at most.
const FIRST_WIDTH: usize = 4;
const MOST_WIDTH: usize = 16;
/// The pauses after failures: each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(30);
/// A page of which some objects cannot be asked about is given up after so many tries: they are failures then.
const MOST_TRIES: u32 = 5;
/// Objects that are known to be stored as they should be. More are asked about again.
const MOST_PROVEN: usize = 100_000;

/// What is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The definition as it was first seen, and when.
    known: Option<(String, MonotonicTime)>,
    /// Nothing is tried before.
    again: Option<MonotonicTime>,
    /// Failures since something went well.
    failures: u32,
    /// Tries of the page at hand.
    tries: u32,
    /// Writes of the page at hand, in earlier tries.
    pub(super) carried: u64,
    width: usize,
    /// Since when a pass with failures is over.
    held: Option<MonotonicTime>,
    /// The last wish to try again that was heard.
    answered: Option<String>,
    proven: BTreeSet<(String, String)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            known: None,
            again: None,
            failures: 0,
            tries: 0,
            carried: 0,
            width: FIRST_WIDTH,
            held: None,
            answered: None,
            proven: BTreeSet::new(),
        }
    }
}

impl Memory {
    /// Takes in a definition. One that was written anew is a new one.
    pub(crate) fn see(&mut self, definition: &StoredCrd, now: MonotonicTime) {
        let mark =
            format!("{} {} {}", definition.uid, definition.storage, definition.spec_fingerprint);
        if self.known.as_ref().is_none_or(|(known, _)| *known != mark) {
            *self = Self {
                known: Some((mark, now)),
                answered: self.answered.take(),
                ..Self::default()
            };
        }
    }

    /// Since when the definition is as it is.
    pub(crate) fn known_since(&self) -> Option<MonotonicTime> {
        self.known.as_ref().map(|(_, since)| *since)
    }

    /// When something may be tried again.
    pub(crate) fn again(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.again.filter(|again| *again > now)
    }

    /// Something did not go well.
    pub(crate) fn unwell(&mut self, now: MonotonicTime) {
        let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.again = Some(now.plus(doubled.min(MOST_PAUSE)));
        self.width = (self.width / 2).max(1);
    }

    /// Something went well.
    pub(crate) fn well(&mut self) {
        self.failures = 0;
        self.again = None;
        self.width = self.width.saturating_add(1).min(MOST_WIDTH);
    }

    /// How many writes may be under way at a time.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// A page was tried and did not come to its end, after so many writes; answers whether it may be tried again.
    pub(crate) const fn tried(&mut self, written: u64) -> bool {
        self.tries = self.tries.saturating_add(1);
        self.carried = self.carried.saturating_add(written);
        self.tries < MOST_TRIES
    }

    /// Whether the page at hand is given up after this try.
    pub(crate) const fn is_last_try(&self) -> bool {
        self.tries.saturating_add(1) >= MOST_TRIES
    }

    /// The page is over.
    pub(crate) const fn turn(&mut self) {
        self.tries = 0;
        self.carried = 0;
    }

    /// Since when a pass with failures is over; from now on, if it was not known.
    pub(crate) fn held(&mut self, now: MonotonicTime) {
        self.held.get_or_insert(now);
    }

    /// The same, as it is remembered.
    pub(crate) const fn held_since(&self) -> Option<MonotonicTime> {
        self.held
    }

    /// A new pass begins.
    pub(crate) const fn resume(&mut self) {
        self.held = None;
    }

    /// Whether a wish to try again was not heard yet.
    pub(crate) fn is_news(&self, asked: Option<&String>) -> bool {
        asked.is_some() && asked != self.answered.as_ref()
    }

    /// It was heard.
    pub(crate) fn answer(&mut self, asked: Option<String>) {
        if asked.is_some() {
            self.answered = asked;
        }
    }

    /// This version of this object is stored as it should be: the API server took a write that changes nothing, and
    /// changed nothing.
    pub(crate) fn prove(&mut self, listed: &Listed) {
        if self.proven.len() < MOST_PROVEN {
            self.proven.insert((listed.uid.clone(), listed.version.clone()));
        }
    }

    /// Whether that is known.
    pub(crate) fn is_proven(&self, listed: &Listed) -> bool {
        self.proven.contains(&(listed.uid.clone(), listed.version.clone()))
    }
}
