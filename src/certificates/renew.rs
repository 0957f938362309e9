//! What a replica does about its own certificate, in one pass.
//!
//! It signs with the authority that signs now, and only if it knows for sure that this one still
//! does: a replica that is cut off from the API server keeps the certificate it has. So there is a
//! time after which nothing of an older authority is in use; see `Lifetimes::in_use`.
//! Comes in: `Held` and what was read. Goes out: a `Renewal`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::lifetimes::{Lifetimes, later, since, two_thirds};
use super::ring::Ring;
use super::seen::{Reading, Sight};
use crate::api::moment::Moment;
use crate::pki::authority::{Authority, Certificate, holds};

/// A time on both clocks. The monotonic one stands still while a machine sleeps, and the other one
/// jumps; so a span is as long as the longer of the two says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// On the monotonic clock.
    pub(crate) now: Moment,
    /// On the wall clock.
    pub(crate) wall: Timestamp,
}

impl Times {
    /// How long after `earlier` this is, at least as long as it really was.
    fn since(self, earlier: Self) -> Duration {
        let walls = since(earlier.wall, self.wall).max(since(self.wall, earlier.wall));
        self.now.since(earlier.now).max(walls)
    }
}

/// The certificate that this replica shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// What signed it.
    pub(crate) authority: Certificate,
    /// When it was signed, by the wall clock.
    pub(crate) signed: Timestamp,
    /// When it is first valid.
    pub(crate) from: Timestamp,
    /// When it is valid no more.
    pub(crate) until: Timestamp,
}

/// What a replica carries from pass to pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its certificate.
    pub(crate) leaf: Option<Leaf>,
    /// The ring as it was last read, and the time before it was asked for.
    pub(crate) ring: Option<(Ring, Times)>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// What to do.
    pub(crate) step: Step,
    /// Which rule spoke.
    pub(crate) because: Because,
}

/// One move of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Leave everything as it is.
    Rest,
    /// Make the Secret. If another replica is faster, the API server refuses.
    Create,
    /// Sign a certificate and show it from now on.
    Sign,
}

/// Why a replica does what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Because {
    /// The API server says that there is no Secret.
    Absent,
    /// The Secret was not read for so long that nobody knows what it says now.
    Stale,
    /// There is no authority that could sign now. The leader will make one.
    NothingSigns,
    /// There is no certificate yet.
    First,
    /// Another authority signs now.
    Promoted,
    /// The certificate is not valid at this time.
    Invalid,
    /// The certificate has spent two thirds of its life.
    Old,
    /// The certificate is good.
    Well,
}

impl Because {
    /// The rule's name in logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Absent => "Absent",
            Self::Stale => "Stale",
            Self::NothingSigns => "NothingSigns",
            Self::First => "First",
            Self::Promoted => "Promoted",
            Self::Invalid => "Invalid",
            Self::Old => "Old",
            Self::Well => "Well",
        }
    }
}

impl Held {
    /// What is held after a reading that was asked for at `asked`.
    pub(crate) fn look(self, reading: &Reading, asked: Times) -> Self {
        match reading {
            Reading::Found { ring, damage: _ } => {
                Self { ring: Some(((**ring).clone(), asked)), ..self }
            }
            Reading::Absent | Reading::Unknown(_) => self,
        }
    }

    /// The certificates of the ring that was last read: something that they signed may be in use.
    pub(crate) fn remembered(&self) -> Vec<Certificate> {
        let ring = self.ring.as_ref().map(|(ring, _)| ring);
        ring.map_or_else(Vec::new, |ring| ring.certificates().into_iter().cloned().collect())
    }

    /// The authority to sign with, if there is one that certainly signs now.
    pub(crate) fn signer(
        &self,
        lifetimes: &Lifetimes,
        times: Times,
    ) -> Result<&Authority, Because> {
        let (ring, asked) = self.ring.as_ref().ok_or(Because::Stale)?;
        if times.since(*asked) > lifetimes.freshness() {
            return Err(Because::Stale);
        }
        let current = ring.current.as_ref().filter(|it| it.certificate.valid_at(times.wall));
        current.ok_or(Because::NothingSigns)
    }
}

/// What to do now.
pub(crate) fn renew(
    lifetimes: &Lifetimes,
    held: &Held,
    reading: &Reading,
    times: Times,
) -> Renewal {
    let (step, because) = match reading {
        Reading::Absent => (Step::Create, Because::Absent),
        Reading::Found { .. } | Reading::Unknown(_) => match held.signer(lifetimes, times) {
            Err(because) => (Step::Rest, because),
            Ok(authority) => match fault(lifetimes, held.leaf.as_ref(), authority, times.wall) {
                Some(because) => (Step::Sign, because),
                None => (Step::Rest, Because::Well),
            },
        },
    };
    Renewal { step, because }
}

/// What is wrong with the certificate, if another would be better.
fn fault(
    lifetimes: &Lifetimes,
    leaf: Option<&Leaf>,
    authority: &Authority,
    wall: Timestamp,
) -> Option<Because> {
    let Some(leaf) = leaf else {
        return Some(Because::First);
    };
    if leaf.authority.der != authority.certificate.der {
        return Some(Because::Promoted);
    }
    if wall < leaf.from || leaf.until <= wall {
        return Some(Because::Invalid);
    }
    // One that ends with its authority would end no later if it were signed again.
    let (_, until) = span(lifetimes, &authority.certificate, wall);
    let is_old = wall >= due(leaf) && until > leaf.until;
    is_old.then_some(Because::Old)
}

fn due(leaf: &Leaf) -> Timestamp {
    later(leaf.signed, two_thirds(since(leaf.signed, leaf.until)))
}

/// From when until when a certificate is valid that is signed at `wall`: within the life of what
/// signs it.
pub(crate) fn span(
    lifetimes: &Lifetimes,
    authority: &Certificate,
    wall: Timestamp,
) -> (Timestamp, Timestamp) {
    let from = lifetimes.from(wall).max(authority.from);
    (from, later(wall, lifetimes.leaf).min(authority.until))
}

/// How long to rest: until the certificate is due, and never so long that a jump of the clock goes
/// unnoticed for more than a minute.
pub(crate) fn rest(lifetimes: &Lifetimes, held: &Held, plan: Renewal, wall: Timestamp) -> Duration {
    let leaf = held.leaf.as_ref();
    let due = match plan.because {
        Because::Absent | Because::NothingSigns => Some(Duration::from_secs(1)),
        Because::Stale => Some(Duration::from_secs(2)),
        Because::First | Because::Promoted | Because::Invalid | Because::Old => None,
        // Once it is due and cannot be had, there is no hurry: the leader must act first.
        Because::Well => leaf.map(|leaf| since(wall, due(leaf))).filter(|rest| !rest.is_zero()),
    };
    lifetimes.rest(due)
}

/// Whether this replica can be called: its certificate is valid, and every target that asks our
/// Service trusts what signed it. None, if that is not known.
pub(crate) fn can_be_called(held: &Held, targets: &[Sight], wall: Timestamp) -> Option<bool> {
    let Some(leaf) = held.leaf.as_ref().filter(|leaf| leaf.from <= wall && wall < leaf.until)
    else {
        return Some(false);
    };
    let trusts = |target: &Sight| match target {
        Sight::Found { mark: _, bundles } => {
            Some(bundles.iter().all(|bundle| holds(bundle, &leaf.authority.der)))
        }
        // Nobody will call us on its behalf.
        Sight::Elsewhere | Sight::Absent => Some(true),
        Sight::Unknown(_) => None,
    };
    targets.iter().map(trusts).try_fold(true, |all, trusts| Some(all && trusts?))
}

#[cfg(test)]
mod tests;
