//! From a plan to the ring that it makes, and to what is remembered of it.
//! Comes in: `Seen`, a plan, how its write ended. Goes out: the ring to write, and the next `Memory`.
//! May touch: nothing; pure. The real corridor and the model world make their rings here, so that the
//! model proves what is run.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::decide::{Because, Plan, Step};
use super::ring::Ring;
use super::seen::{Memory, Seen};
use crate::api::moment::Moment;
use crate::pki::authority::Authority;

/// The ring after a step, if the step changes it. `fresh` makes an authority, and is asked only if
/// one is needed.
pub(crate) fn carry_out<E>(
    seen: &Seen<'_>,
    ring: &Ring,
    plan: Plan,
    fresh: impl FnOnce() -> Result<Authority, E>,
) -> Result<Option<Ring>, E> {
    let ring = ring.clone();
    Ok(Some(match plan.step {
        Step::Wait | Step::Inject(_) => return Ok(None),
        Step::MakeCurrent => Ring::new(fresh()?, &[]),
        // What was whole when we last looked may be in use, whatever the Secret says now.
        Step::AddNext if plan.because == Because::CurrentLost => {
            ring.with_remembered(&seen.memory.known).with_next(fresh()?)
        }
        Step::AddNext => ring.with_next(fresh()?),
        Step::Mend => ring.with_remembered(&[]),
        Step::Promote => ring.promote(seen.wall),
        Step::Stamp => ring.stamp(seen.wall),
        Step::DropPrevious => ring.without_previous(),
    }))
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done.
    Written,
    /// What it was about has changed: nothing was done.
    Late,
    /// It may have been done.
    Unknown,
    /// It was refused.
    Refused,
}

/// What is remembered after a step. A write that may have landed counts as one that has. A target
/// that was refused to us must not keep the others waiting, so it counts, too.
pub(crate) fn settle(
    memory: Memory,
    plan: Plan,
    outcome: Outcome,
    bundle: Vec<u8>,
    now: Moment,
) -> Memory {
    match (plan.step, outcome) {
        (Step::Wait, _) | (_, Outcome::Late) => memory,
        (Step::Inject(place), _) => memory.injected(place, bundle, now),
        (_, Outcome::Refused) => memory,
        (_, Outcome::Written | Outcome::Unknown) => {
            Memory { written: Some((plan.because.name(), now)), ..memory }
        }
    }
}
