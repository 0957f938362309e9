//! What a replica knows after it acted.
//! Comes in: the step, when it was begun, and how the write ended. Goes out: the new memory.
//! May touch: nothing; pure. Only a write that is known to have landed, on the Lease that it was
//! meant for, makes or prolongs a term.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::attempt::Attempt;
use super::decide::Step;
use super::seen::{Memory, Timing};
use super::standing::{Begin, Claim, Standing, Term};
use crate::api::moment::Moment;

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The step writes nothing.
    NothingToWrite,
    /// The API server wrote it, into the Lease with this uid.
    Written {
        /// The uid of the Lease.
        uid: String,
    },
    /// The API server did not write it: the Lease had changed or is gone, or exists already.
    Conflict,
    /// The API server did not write it, and would not if it were asked again: we lack the right,
    /// or it takes the write for invalid.
    Refused,
    /// The API server did not write it: there is no such Lease.
    Gone,
    /// Nobody told us whether it was written.
    Unknown,
}

/// What is known at `now`, after the attempt ended with `outcome`.
pub(crate) fn settle(
    memory: Memory,
    attempt: &Attempt,
    outcome: &Outcome,
    timing: &Timing,
    now: Moment,
) -> Memory {
    // Counted from before the write was sent: the others count from after they saw it.
    let until = attempt.sent.plus(timing.renew_deadline);
    let Memory { sighting, longest, standing } = memory;
    let served = now.plus(timing.lease_duration.max(longest));
    let taken = |begin, leads_from| Taking { begin, leads_from, until };
    let standing = match attempt.step {
        Step::Wait => standing,
        Step::StepDown { may_resume } => stepped_down(standing, may_resume, now),
        Step::Create { .. } => taken(Begin::OnProbation, served).end(standing, attempt, outcome),
        Step::Take { begin, .. } => {
            let leads_from = match begin {
                Begin::AtOnce => now,
                Begin::OnProbation => served,
            };
            taken(begin, leads_from).end(standing, attempt, outcome)
        }
        Step::Renew => renewed(standing, outcome, until),
    };
    Memory { sighting, longest, standing }
}

fn stepped_down(standing: Standing, may_resume: bool, now: Moment) -> Standing {
    match standing {
        // A probation that was not served begins anew.
        Standing::Holding(term) if may_resume => Standing::Unsure(Claim {
            begin: if term.leads_from <= now { Begin::AtOnce } else { Begin::OnProbation },
            uid: Some(term.uid),
            acquired: term.acquired,
        }),
        Standing::Holding(_) | Standing::Unsure(_) | Standing::Candidate => Standing::Candidate,
    }
}

/// What a taking makes if it succeeds.
struct Taking {
    begin: Begin,
    leads_from: Moment,
    until: Moment,
}

impl Taking {
    fn end(self, standing: Standing, attempt: &Attempt, outcome: &Outcome) -> Standing {
        match outcome {
            Outcome::Written { uid } => match &attempt.uid {
                Some(meant) if meant != uid => Standing::Candidate,
                Some(_) | None => Standing::Holding(Term {
                    uid: uid.clone(),
                    acquired: attempt.acquired,
                    leads_from: self.leads_from,
                    until: self.until,
                }),
            },
            Outcome::Unknown => Standing::Unsure(Claim {
                uid: attempt.uid.clone(),
                acquired: attempt.acquired,
                begin: self.begin,
            }),
            // This write did not land, but one before it may have: that it did may be the very
            // reason why this one was refused. An older claim stands until a look ends it.
            Outcome::Conflict | Outcome::Refused | Outcome::Gone | Outcome::NothingToWrite => {
                standing
            }
        }
    }
}

fn renewed(standing: Standing, outcome: &Outcome, until: Moment) -> Standing {
    let Standing::Holding(term) = standing else {
        return standing;
    };
    match outcome {
        Outcome::Written { uid } if *uid == term.uid => Standing::Holding(Term { until, ..term }),
        // The Lease is gone, or what was written is another of its name.
        Outcome::Written { .. } | Outcome::Gone => Standing::Candidate,
        // Someone wrote to the Lease, or nobody answered. The next look says more; until then the
        // old deadline stands.
        Outcome::Conflict | Outcome::Refused | Outcome::Unknown | Outcome::NothingToWrite => {
            Standing::Holding(term)
        }
    }
}

#[cfg(test)]
mod tests;
