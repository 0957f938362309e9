//! The Lease as it should be written.
//! Comes in: the Lease that was read, and who writes. Goes out: the Lease to send, with the
//! version that was read still in it, so that the API server refuses it if it is not the newest.
//! May touch: k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

/// How a released Lease asks to be left alone: hardly at all. Zero is not allowed.
const RELEASED_SECONDS: i32 = 1;

/// Who holds the Lease, and since when.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// This replica's name.
    pub identity: &'a str,
    /// When it took the Lease.
    pub acquired: Timestamp,
    /// How long it asks to be left alone.
    pub duration: Duration,
}

/// A Lease that does not exist yet.
#[must_use]
pub fn created(name: &str, namespace: &str, holder: &Holder<'_>, wall: Timestamp) -> Lease {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    held(
        &Lease {
            metadata,
            spec: None,
        },
        holder,
        wall,
    )
}

/// The Lease, held by us and renewed now. What others wrote into it stays.
#[must_use]
pub fn held(read: &Lease, holder: &Holder<'_>, wall: Timestamp) -> Lease {
    let before = read.spec.clone().unwrap_or_default();
    let changes_hands = before.holder_identity.as_deref() != Some(holder.identity);
    let transitions = match before.lease_transitions {
        None => 0,
        Some(count) => count.saturating_add(i32::from(changes_hands)),
    };
    Lease {
        metadata: read.metadata.clone(),
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

/// The Lease, free for whoever comes next. A holder that is still on probation leaves no time of
/// renewal, so that the probation passes on to the next.
#[must_use]
pub fn released(read: &Lease, on_probation: bool, wall: Timestamp) -> Lease {
    Lease {
        metadata: read.metadata.clone(),
        spec: Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(RELEASED_SECONDS),
            renew_time: (!on_probation).then_some(MicroTime(wall)),
            ..read.spec.clone().unwrap_or_default()
        }),
    }
}
