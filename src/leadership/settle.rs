//! What a replica knows after it acted.
//! Comes in: the step, when it was begun, and how the write ended. Goes out: the new memory.
//! May touch: nothing; pure. Only a write that is known to have landed makes or prolongs a term.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::decide::{Because, Plan, Step};
use super::seen::{Begin, Claim, Memory, Term, Timing};
use crate::api::moment::Moment;

/// A step, as it was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What was decided.
    pub plan: Plan,
    /// The time written into the Lease as the time of taking it.
    pub acquired: Timestamp,
    /// The moment just before the write was sent.
    pub sent: Moment,
}

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The step writes nothing.
    NothingToWrite,
    /// The API server wrote it, into the Lease with this uid.
    Written {
        /// The uid of the Lease.
        uid: String,
    },
    /// The API server did not write it: the Lease had changed, or exists already.
    Refused,
    /// The API server did not write it: there is no such Lease.
    Gone,
    /// Nobody told us whether it was written.
    Unknown,
}

/// The time to write as the time of taking the Lease: the one we wrote before, if this is the
/// same taking, else the present.
#[must_use]
pub fn acquired(memory: &Memory, plan: &Plan, wall: Timestamp) -> Timestamp {
    let before = match plan.because {
        Because::OwnWriteLanded => memory.claim.map(|claim| claim.acquired),
        Because::Held => memory.term.as_ref().map(|term| term.acquired),
        Because::Unreadable
        | Because::HeldByAnother
        | Because::HolderSilent
        | Because::Vacant
        | Because::Absent
        | Because::DeadlinePassed
        | Because::LeaseGone
        | Because::LeaseReplaced => None,
    };
    before.unwrap_or(wall)
}

/// What is known at `now`, after the attempt ended with `outcome`.
#[must_use]
pub fn settle(
    memory: Memory,
    attempt: &Attempt,
    outcome: &Outcome,
    timing: &Timing,
    now: Moment,
) -> Memory {
    // Counted from before the write was sent: the others count from after they saw it.
    let until = attempt.sent.plus(timing.renew_deadline);
    let claim = |begin| Claim {
        acquired: attempt.acquired,
        begin,
    };
    match attempt.plan.step {
        Step::Wait => memory,
        Step::StepDown => stepped_down(memory, attempt.plan.because, now),
        Step::Create | Step::Take(Begin::OnProbation) => {
            let leads_from = now.plus(timing.lease_duration);
            taken(
                memory,
                claim(Begin::OnProbation),
                outcome,
                leads_from,
                until,
            )
        }
        Step::Take(Begin::AtOnce) => taken(memory, claim(Begin::AtOnce), outcome, now, until),
        Step::Renew => renewed(memory, outcome, until),
    }
}

fn stepped_down(memory: Memory, because: Because, now: Moment) -> Memory {
    let Memory {
        sighting,
        claim: _,
        term,
    } = memory;
    // After a mere silence of the API server the Lease may still be ours, and then we may go on
    // at once; a probation that was not served begins anew.
    let claim = term
        .filter(|_| because == Because::DeadlinePassed)
        .map(|term| Claim {
            acquired: term.acquired,
            begin: if term.leads_from <= now {
                Begin::AtOnce
            } else {
                Begin::OnProbation
            },
        });
    Memory {
        sighting,
        claim,
        term: None,
    }
}

fn taken(
    memory: Memory,
    claim: Claim,
    outcome: &Outcome,
    leads_from: Moment,
    until: Moment,
) -> Memory {
    match outcome {
        Outcome::Written { uid } => {
            let term = Term {
                uid: uid.clone(),
                acquired: claim.acquired,
                leads_from,
                until,
            };
            Memory {
                claim: None,
                term: Some(term),
                ..memory
            }
        }
        Outcome::Unknown => Memory {
            claim: Some(claim),
            ..memory
        },
        Outcome::Refused | Outcome::Gone | Outcome::NothingToWrite => Memory {
            claim: None,
            ..memory
        },
    }
}

fn renewed(memory: Memory, outcome: &Outcome, until: Moment) -> Memory {
    let Memory {
        sighting,
        claim,
        term,
    } = memory;
    let term = match outcome {
        Outcome::Written { .. } => term.map(|term| Term { until, ..term }),
        Outcome::Gone => None,
        // Refused: someone wrote to the Lease. The next look says who; until then the old
        // deadline stands.
        Outcome::Refused | Outcome::Unknown | Outcome::NothingToWrite => term,
    };
    Memory {
        sighting,
        claim,
        term,
    }
}

#[cfg(test)]
mod tests;
