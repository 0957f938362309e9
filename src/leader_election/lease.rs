//! Renders the Lease to write. Pure.
//! Guarantees: uid and resourceVersion of the Lease that was read stay in it, so that a write based
//! on an old version conflicts. Without the uid, a write to a deleted Lease would create a new one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use crate::api::names;

/// The lease duration of a released Lease: the minimum of the API.
const RELEASED_SECONDS: i32 = 1;

/// Namespace and name of a Lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseRef<'a> {
    /// Its namespace.
    pub(crate) namespace: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
}

/// The holder of the Lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseHolder<'a> {
    /// The replica's identity.
    pub(crate) identity: &'a str,
    /// Its `acquireTime`.
    pub(crate) acquired: Timestamp,
    /// Its lease duration.
    pub(crate) duration: Duration,
}

/// A Lease that does not exist yet.
pub(crate) fn created(lease_ref: LeaseRef<'_>, holder: &LeaseHolder<'_>, wall: Timestamp) -> Lease {
    let metadata = ObjectMeta {
        name: Some(lease_ref.name.to_owned()),
        namespace: Some(lease_ref.namespace.to_owned()),
        ..ObjectMeta::default()
    };
    let spec = None;
    held(&Lease { metadata, spec }, holder, wall)
}

/// The Lease, held by this replica and renewed now. Fields of other writers stay; the release mark
/// goes, because from now on an empty holder means that it was cleared by hand.
pub(crate) fn held(read: &Lease, holder: &LeaseHolder<'_>, wall: Timestamp) -> Lease {
    let before = read.spec.clone().unwrap_or_default();
    let holder_changes = before.holder_identity.as_deref() != Some(holder.identity);
    let transitions = match before.lease_transitions {
        None => 0,
        Some(count) => count.saturating_add(i32::from(holder_changes)),
    };
    let mut metadata = read.metadata.clone();
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(names::RELEASED_ANNOTATION);
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

/// The Lease, released. A holder that is still on probation leaves no release mark, so that the
/// next holder is on probation too.
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
