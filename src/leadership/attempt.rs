//! From a plan to the one write that carries it out, and from a standing to the last write.
//! Comes in: `Seen`, a step, the Lease as it was read. Goes out: what to send, and what must be
//! known when the answer comes. May touch: k8s-openapi types. Pure: the real corridor and the
//! model world make their writes here, so that the model proves what is run.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::decide::{Acquired, Step};
use super::render::{self, Holder, Place};
use super::seen::{Memory, Record, Seen};
use super::standing::{Begin, Standing};
use crate::api::moment::Moment;

/// A step, as it was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// What was decided.
    pub(crate) step: Step,
    /// The Lease that it is about; none, if there is none.
    pub(crate) uid: Option<String>,
    /// The time written into the Lease as the time of taking it.
    pub(crate) acquired: Timestamp,
    /// The moment just before the write was sent.
    pub(crate) sent: Moment,
}

/// What to send to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    /// Make this Lease.
    Create(Box<Lease>),
    /// Put this in the place of the Lease that was read.
    Replace(Box<Lease>),
}

/// The step as it begins at `sent`, and its write, if it has one.
pub(crate) fn prepare(
    seen: &Seen<'_>,
    step: Step,
    lease: Option<&Lease>,
    place: Place<'_>,
    (sent, wall): (Moment, Timestamp),
) -> (Attempt, Option<Write>) {
    let acquired = acquired(&seen.memory.standing, step).unwrap_or(wall);
    let attempt =
        Attempt { step, uid: lease.and_then(|lease| lease.metadata.uid.clone()), acquired, sent };
    let holder = Holder { identity: seen.identity, acquired, duration: seen.timing.lease_duration };
    let write = match (step, lease) {
        (Step::Create { .. }, _) => {
            Some(Write::Create(Box::new(render::created(place, &holder, wall))))
        }
        (Step::Take { .. } | Step::Renew, Some(lease)) => {
            Some(Write::Replace(Box::new(render::held(lease, &holder, wall))))
        }
        (Step::Take { .. } | Step::Renew, None) | (Step::Wait | Step::StepDown { .. }, _) => None,
    };
    (attempt, write)
}

/// The time that already stands in the Lease as ours, if the step goes on with it.
fn acquired(standing: &Standing, step: Step) -> Option<Timestamp> {
    let keep = match step {
        Step::Create { acquired } | Step::Take { acquired, .. } => acquired == Acquired::Keep,
        Step::Renew => true,
        Step::Wait | Step::StepDown { .. } => false,
    };
    match standing {
        Standing::Unsure(claim) if keep => Some(claim.acquired),
        Standing::Holding(term) if keep => Some(term.acquired),
        Standing::Unsure(_) | Standing::Holding(_) | Standing::Candidate => None,
    }
}

/// Whether there may be something to let go of at all.
pub(crate) fn may_hold(memory: &Memory) -> bool {
    match memory.standing {
        Standing::Candidate => false,
        Standing::Unsure(_) | Standing::Holding(_) => true,
    }
}

/// The Lease as a replica leaves it that stops, if it is its own to leave. Its precondition is
/// that nothing acts as a leader in this process any more.
pub(crate) fn farewell(
    memory: &Memory,
    identity: &str,
    lease: Option<&Lease>,
    (now, wall): (Moment, Timestamp),
) -> Option<Lease> {
    let lease = lease?;
    let record = Record::of(lease);
    let (ours, on_probation) = match &memory.standing {
        Standing::Candidate => (false, false),
        Standing::Unsure(claim) => {
            let on_probation = claim.begin == Begin::OnProbation;
            (claim.made(identity, &record), on_probation)
        }
        Standing::Holding(term) => (term.holds(identity, &record), now < term.leads_from),
    };
    ours.then(|| render::released(lease, on_probation, wall))
}

#[cfg(test)]
mod tests;
