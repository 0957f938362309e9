//! What the leader remembers of one CRD between reconciliations: backoff, concurrency, and objects
//! known to be current. It is lost with the leadership term; it saves time and requests, and
//! correctness does not depend on it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::time::Duration;

use super::state::ObjectKey;
use crate::api::crd::stored::StoredCrd;
use crate::api::monotonic::MonotonicTime;

const INITIAL_CONCURRENCY: usize = 4;
const MAX_CONCURRENCY: usize = 16;
/// The backoff after a failed step; it doubles with each failure.
const MIN_BACKOFF_DELAY: Duration = Duration::from_secs(1);
const MAX_BACKOFF_DELAY: Duration = Duration::from_secs(30);
/// After so many attempts at a page, objects with an unknown outcome count as failed.
const MAX_PAGE_ATTEMPTS: u32 = 5;
/// How many objects are remembered as current. More are written again.
const MAX_CURRENT: usize = 100_000;

/// The cache of one CRD.
#[derive(Clone, Debug)]
pub(crate) struct ProgressCache {
    /// Identifies the CRD and its spec, and when it was first observed.
    crd: Option<(String, MonotonicTime)>,
    next_retry: Option<MonotonicTime>,
    /// Failed steps since the last successful one.
    failures: u32,
    /// Attempts at the current page.
    page_attempts: u32,
    /// Writes of the current page in earlier attempts.
    pub(super) written_earlier: u64,
    concurrency: usize,
    blocked_since: Option<MonotonicTime>,
    /// The last retry request that was handled.
    handled_retry: Option<String>,
    /// Uid and resource version of objects that are stored in the storage version.
    current: BTreeSet<(String, String)>,
}

impl Default for ProgressCache {
    fn default() -> Self {
        Self {
            crd: None,
            next_retry: None,
            failures: 0,
            page_attempts: 0,
            written_earlier: 0,
            concurrency: INITIAL_CONCURRENCY,
            blocked_since: None,
            handled_retry: None,
            current: BTreeSet::new(),
        }
    }
}

impl ProgressCache {
    /// Records the observed CRD. If its spec was written, everything else is forgotten.
    pub(crate) fn observe(&mut self, crd: &StoredCrd, now: MonotonicTime) {
        let observed = format!("{} {} {}", crd.uid, crd.storage, crd.spec_fingerprint);
        if self.crd.as_ref().is_none_or(|(known, _)| *known != observed) {
            *self = Self {
                crd: Some((observed, now)),
                handled_retry: self.handled_retry.take(),
                ..Self::default()
            };
        }
    }

    /// When the current spec of the CRD was first observed.
    pub(crate) fn crd_since(&self) -> Option<MonotonicTime> {
        self.crd.as_ref().map(|(_, since)| *since)
    }

    /// The next retry, while backing off.
    pub(crate) fn next_retry(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.next_retry.filter(|retry| *retry > now)
    }

    /// A step failed: back off, with half the concurrency.
    pub(crate) fn record_failure(&mut self, now: MonotonicTime) {
        let doubled = MIN_BACKOFF_DELAY.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.next_retry = Some(now.plus(doubled.min(MAX_BACKOFF_DELAY)));
        self.concurrency = (self.concurrency / 2).max(1);
    }

    /// A step succeeded.
    pub(crate) fn record_success(&mut self) {
        self.failures = 0;
        self.next_retry = None;
        self.concurrency = self.concurrency.saturating_add(1).min(MAX_CONCURRENCY);
    }

    /// How many objects may be written concurrently.
    pub(crate) const fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// A page was not completed, after so many writes; returns whether it may be retried.
    pub(crate) const fn record_page_failure(&mut self, written: u64) -> bool {
        self.page_attempts = self.page_attempts.saturating_add(1);
        self.written_earlier = self.written_earlier.saturating_add(written);
        self.page_attempts < MAX_PAGE_ATTEMPTS
    }

    /// Whether this is the last attempt at the current page.
    pub(crate) const fn is_last_attempt(&self) -> bool {
        self.page_attempts.saturating_add(1) >= MAX_PAGE_ATTEMPTS
    }

    /// The page was completed.
    pub(crate) const fn record_page_done(&mut self) {
        self.page_attempts = 0;
        self.written_earlier = 0;
    }

    /// The migration is blocked, since now if that was not known.
    pub(crate) fn record_blocked(&mut self, now: MonotonicTime) {
        self.blocked_since.get_or_insert(now);
    }

    /// Since when the migration is blocked.
    pub(crate) const fn blocked_since(&self) -> Option<MonotonicTime> {
        self.blocked_since
    }

    /// The migration continues.
    pub(crate) const fn clear_blocked(&mut self) {
        self.blocked_since = None;
    }

    /// Whether a retry request was not handled yet.
    pub(crate) fn is_new_retry(&self, request: Option<&String>) -> bool {
        request.is_some() && request != self.handled_retry.as_ref()
    }

    /// A retry request was handled.
    pub(crate) fn record_retry(&mut self, request: Option<String>) {
        if request.is_some() {
            self.handled_retry = request;
        }
    }

    /// This version of the object is stored in the storage version: the API server accepted an
    /// empty patch and did not write.
    pub(crate) fn record_current(&mut self, object: &ObjectKey) {
        if self.current.len() < MAX_CURRENT {
            self.current.insert((object.uid.clone(), object.resource_version.clone()));
        }
    }

    /// Whether the object is known to be current.
    pub(crate) fn is_current(&self, object: &ObjectKey) -> bool {
        self.current.contains(&(object.uid.clone(), object.resource_version.clone()))
    }
}
