//! The Lease as it should be written.
//! Comes in: the Lease that was read, and who writes. Goes out: the Lease to send, with the uid
//! and the version that were read still in it, so that the API server refuses it if it is not the
//! newest. Without the uid a write to a deleted Lease would make a new one.
//! May touch: `api::names` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use crate::api::names;

/// How a released Lease asks to be left alone: hardly at all. Zero is not allowed.
const RELEASED_SECONDS: i32 = 1;

/// Where a Lease lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Its namespace.
    pub(crate) namespace: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
}

/// Who holds the Lease, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    /// This replica's name.
    pub(crate) identity: &'a str,
    /// When it took the Lease.
    pub(crate) acquired: Timestamp,
    /// How long it asks to be left alone.
    pub(crate) duration: Duration,
}

/// A Lease that does not exist yet.
pub(crate) fn created(place: Place<'_>, holder: &Holder<'_>, wall: Timestamp) -> Lease {
    let metadata = ObjectMeta {
        name: Some(place.name.to_owned()),
        namespace: Some(place.namespace.to_owned()),
        ..ObjectMeta::default()
    };
    let spec = None;
    held(&Lease { metadata, spec }, holder, wall)
}

/// The Lease, held by us and renewed now. What others wrote into it stays; the mark of a release
/// goes, because from now on an empty holder is the work of a stranger.
pub(crate) fn held(read: &Lease, holder: &Holder<'_>, wall: Timestamp) -> Lease {
    let before = read.spec.clone().unwrap_or_default();
    let changes_hands = before.holder_identity.as_deref() != Some(holder.identity);
    let transitions = match before.lease_transitions {
        None => 0,
        Some(count) => count.saturating_add(i32::from(changes_hands)),
    };
    let mut metadata = read.metadata.clone();
    if let Some(notes) = &mut metadata.annotations {
        notes.remove(names::RELEASED_ANNOTATION);
    }
    Lease {
        metadata,
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.identity.to_owned()),
            acquire_time: Some(MicroTime(holder.acquired)),
            renew_time: Some(MicroTime(wall)),
            lease_duration_seconds: i32::try_from(holder.duration.as_secs()).ok(),
            lease_transitions: Some(transitions),
            ..before
        }),
    }
}

/// The Lease, free for whoever comes next. A holder that is still on probation leaves no mark of
/// a release, so that the probation passes on to the next.
pub(crate) fn released(read: &Lease, on_probation: bool, wall: Timestamp) -> Lease {
    let mut metadata = read.metadata.clone();
    if !on_probation && let Some(uid) = &read.metadata.uid {
        let mark = (names::RELEASED_ANNOTATION.to_owned(), uid.clone());
        metadata.annotations.get_or_insert_default().extend([mark]);
    }
    Lease {
        metadata,
        spec: Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(RELEASED_SECONDS),
            renew_time: Some(MicroTime(wall)),
            ..read.spec.clone().unwrap_or_default()
        }),
    }
}

#[cfg(test)]
mod tests;
