//! What the leader does about the ring of authorities, in one pass.
//!
//! A new authority is first trusted and only then used: it is added as `next`, put into every
//! target, left there until every API server has learned of it, and promoted. What signed before is
//! trusted until the last certificate that it signed has ended. An authority that can no longer sign
//! is followed in the same way, because certificates which it signed may still be good for others.
//!
//! Clocks jump. What is expired by our clock may be in use by others, so expiry alone never drops a
//! certificate: it harms nobody in a bundle, and goes when its time is over.
//! Comes in: `Seen`. Goes out: a `Plan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::lifetimes::{since, two_thirds};
use super::ring::{Damage, Ring};
use super::seen::{Injected, Reading, Seen, Sight, Unread};
use crate::pki::authority::Authority;

/// The least time between two writes of the same bundle into the same target. If someone else writes
/// there, too, it must not become a race: each write closes all watches of a kind.
const REPAIR_PAUSE: Duration = Duration::from_secs(10);

/// The rest when someone else is about to do something.
const SOON: Duration = Duration::from_secs(1);

/// What to do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What to do.
    pub(crate) step: Step,
    /// Which rule spoke.
    pub(crate) because: Because,
}

/// One move, with one write at most. Each write to the Secret carries the uid and the version that
/// were read, so that it lands on exactly the ring that the decision was made about, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write nothing and look again.
    Wait,
    /// Make a new authority that signs at once. Only if nothing is trusted that could be lost.
    MakeCurrent,
    /// Make a new authority that is trusted first.
    AddNext,
    /// Write the ring as it was understood, without what is broken.
    Mend,
    /// Put the bundle into the target at this place.
    Inject(usize),
    /// Let `next` sign from now on.
    Promote,
    /// Count the time of what signed before from now on.
    Stamp,
    /// Forget what signed before.
    DropPrevious,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Because {
    /// The API server did not say how the Secret stands.
    Unreadable,
    /// The API server refuses to show us the Secret.
    ReadRefused,
    /// There is no Secret yet. Every replica makes one if there is none.
    Absent,
    /// Nothing signs, and nothing was ever trusted.
    Empty,
    /// The authority that signs is lost or broken.
    CurrentLost,
    /// The authority that signs is not valid at this time, by our clock.
    CurrentInvalid,
    /// The authority to come is not valid at this time, by our clock.
    NextInvalid,
    /// The authority that signs has spent two thirds of its life.
    CurrentOld,
    /// Something in the Secret is broken that is not in use.
    Damaged,
    /// A target does not hold the bundle.
    Untrusted,
    /// What was written just now is not there, or was refused.
    Undone,
    /// The API server did not say how a target stands.
    TargetUnknown,
    /// Every target holds the bundle, but not for long enough.
    Settling,
    /// What signed before may still be in use.
    PreviousInUse,
    /// Everybody trusts the authority to come.
    Settled,
    /// Nobody knows when the authority that signs was promoted.
    Unstamped,
    /// Nothing is in use any more that was signed by what signed before.
    PreviousUnused,
    /// There is nothing to do.
    Well,
}

impl Because {
    /// The rule's name in logs and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::ReadRefused => "ReadRefused",
            Self::Absent => "Absent",
            Self::Empty => "Empty",
            Self::CurrentLost => "CurrentLost",
            Self::CurrentInvalid => "CurrentInvalid",
            Self::NextInvalid => "NextInvalid",
            Self::CurrentOld => "CurrentOld",
            Self::Damaged => "Damaged",
            Self::Untrusted => "Untrusted",
            Self::Undone => "Undone",
            Self::TargetUnknown => "TargetUnknown",
            Self::Settling => "Settling",
            Self::PreviousInUse => "PreviousInUse",
            Self::Settled => "Settled",
            Self::Unstamped => "Unstamped",
            Self::PreviousUnused => "PreviousUnused",
            Self::Well => "Well",
        }
    }
}

/// What to do now.
pub(crate) fn decide(seen: &Seen<'_>) -> Plan {
    let (ring, damage) = match seen.reading {
        Reading::Unknown(Unread::Refused) => return plan(Step::Wait, Because::ReadRefused),
        Reading::Unknown(Unread::Unanswered) => return plan(Step::Wait, Because::Unreadable),
        Reading::Absent => return plan(Step::Wait, Because::Absent),
        Reading::Found { ring, damage } => (ring, damage),
    };
    // New authorities first, then trust, then use.
    let plan = make(seen, ring, damage)
        .or_else(|| inject(seen, ring))
        .or_else(|| drop_previous(seen, ring))
        .or_else(|| promote(seen, ring))
        .unwrap_or_else(|| plan(Step::Wait, Because::Well));
    braked(seen, plan)
}

/// The same rule does not write twice in a short time, whatever makes it true again.
fn braked(seen: &Seen<'_>, planned: Plan) -> Plan {
    let again = seen.memory.written.is_some_and(|(rule, at)| {
        rule == planned.because.name() && seen.now.since(at) < REPAIR_PAUSE
    });
    match planned.step {
        Step::Wait | Step::Inject(_) => planned,
        Step::MakeCurrent
        | Step::AddNext
        | Step::Mend
        | Step::Promote
        | Step::Stamp
        | Step::DropPrevious => {
            if again {
                plan(Step::Wait, Because::Undone)
            } else {
                planned
            }
        }
    }
}

const fn plan(step: Step, because: Because) -> Plan {
    Plan { step, because }
}

/// An authority that is missing, or a Secret that must be mended.
fn make(seen: &Seen<'_>, ring: &Ring, damage: &[Damage]) -> Option<Plan> {
    let valid = |it: &Authority| it.certificate.valid_at(seen.wall);
    if ring.next.as_ref().is_some_and(|next| !valid(next)) {
        // It has signed nothing yet, so another may take its place.
        return Some(plan(Step::AddNext, Because::NextInvalid));
    }
    let reason = match &ring.current {
        None if ring.certificates().is_empty() && seen.memory.known.is_empty() => {
            return Some(plan(Step::MakeCurrent, Because::Empty));
        }
        None => Some(Because::CurrentLost),
        Some(current) if !valid(current) => Some(Because::CurrentInvalid),
        Some(current) if is_old(seen, current) => Some(Because::CurrentOld),
        Some(_) => None,
    };
    match (reason, &ring.next) {
        (Some(because), None) => Some(plan(Step::AddNext, because)),
        (Some(_) | None, _) if !damage.is_empty() => Some(plan(Step::Mend, Because::Damaged)),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

/// By its own life, and not by the one that is set today: a changed setting must not rotate at once.
fn is_old(seen: &Seen<'_>, current: &Authority) -> bool {
    let life = since(current.certificate.from, current.certificate.until);
    since(current.certificate.from, seen.wall) >= two_thirds(life)
}

/// Targets that do not hold the bundle. One that is unknown does not keep the others waiting.
fn inject(seen: &Seen<'_>, ring: &Ring) -> Option<Plan> {
    let bundle = ring.bundle();
    let lacks = |target: &Sight| target.has(&bundle) == Some(false);
    let mut lacking = (0..).zip(seen.targets).filter(|(_, target)| lacks(target)).peekable();
    lacking.peek()?;
    let just_done = |place: usize| {
        let same = |it: &&Injected| it.target == place && it.bundle == bundle;
        let before = seen.memory.injected.iter().find(same);
        before.is_some_and(|it| seen.now.since(it.at) < REPAIR_PAUSE)
    };
    match lacking.find(|(place, _)| !just_done(*place)) {
        Some((place, _)) => Some(plan(Step::Inject(place), Because::Untrusted)),
        None => Some(plan(Step::Wait, Because::Undone)),
    }
}

/// What signed before, when its time is over. The wall clock says so, and it may have jumped: so only
/// while what signs now is valid by the same clock, and only when every replica that can reach the
/// API server must have changed over by the clock that does not jump.
fn drop_previous(seen: &Seen<'_>, ring: &Ring) -> Option<Plan> {
    if ring.previous.is_empty() || !signs(seen, ring) {
        return None;
    }
    let in_use = seen.lifetimes.in_use();
    match ring.promoted {
        // Far in the future: it was written by a clock that was wrong.
        Some(time) if since(seen.wall, time) > in_use => {
            Some(plan(Step::Stamp, Because::Unstamped))
        }
        Some(time) if since(time, seen.wall) >= in_use => {
            let heard = seen.memory.signed_for(seen.now) >= seen.lifetimes.heard();
            let drop = plan(Step::DropPrevious, Because::PreviousUnused);
            Some(if heard { drop } else { plan(Step::Wait, Because::PreviousInUse) })
        }
        None => Some(plan(Step::Stamp, Because::Unstamped)),
        Some(_) => None,
    }
}

/// The authority to come, when everybody trusts it.
fn promote(seen: &Seen<'_>, ring: &Ring) -> Option<Plan> {
    ring.next.as_ref()?;
    let bundle = ring.bundle();
    let wait = |because| Some(plan(Step::Wait, because));
    if seen.targets.iter().any(|target| target.has(&bundle).is_none()) {
        return wait(Because::TargetUnknown);
    }
    match seen.memory.settled(&bundle, seen.now) {
        Some(time) if time >= seen.lifetimes.settle => {}
        Some(_) | None => return wait(Because::Settling),
    }
    // Only a ring that is well can afford to wait.
    if signs(seen, ring) && !ring.previous.is_empty() {
        return wait(Because::PreviousInUse);
    }
    Some(plan(Step::Promote, Because::Settled))
}

fn signs(seen: &Seen<'_>, ring: &Ring) -> bool {
    ring.current.as_ref().is_some_and(|current| current.certificate.valid_at(seen.wall))
}

/// How long to rest after a pass that wrote nothing.
pub(crate) fn rest(seen: &Seen<'_>, plan: Plan) -> Duration {
    let quarter = seen.lifetimes.settle.checked_div(4).unwrap_or_default();
    let soon = match plan.because {
        Because::Settling | Because::TargetUnknown => Some(quarter),
        Because::Undone | Because::Absent => Some(SOON),
        Because::Unreadable
        | Because::ReadRefused
        | Because::Empty
        | Because::CurrentLost
        | Because::CurrentInvalid
        | Because::NextInvalid
        | Because::CurrentOld
        | Because::Damaged
        | Because::Untrusted
        | Because::PreviousInUse
        | Because::Settled
        | Because::Unstamped
        | Because::PreviousUnused
        | Because::Well => None,
    };
    seen.lifetimes.rest(soon)
}

#[cfg(test)]
mod tests;
