//! What a replica does about its own certificate, in one pass.
//!
//! It signs with the authority that signs now, and only if it knows for sure that this one still
//! does: a replica that is cut off from the API server keeps the certificate it has. So there is a
//! time after which nothing of an older authority is in use; see `Lifetimes::max_leaf_lifetime`.
//! Comes in: `ReplicaState` and what was read. Goes out: a `LeafPlan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::ca_set::CaSet;
use super::lifetimes::{Lifetimes, later, since, two_thirds};
use super::state::{SecretState, TargetState};
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::{Certificate, CertificateAuthority, holds};

/// A time on both clocks. The monotonic one stands still while a machine sleeps, and the other one
/// jumps; so a span is as long as the longer of the two says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// On the monotonic clock.
    pub(crate) now: MonotonicTime,
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
pub(crate) struct ReplicaState {
    /// Its certificate.
    pub(crate) leaf: Option<Leaf>,
    /// The ring as it was last read, and the time before it was asked for.
    pub(crate) ca_set: Option<(CaSet, Times)>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafPlan {
    /// What to do.
    pub(crate) step: Step,
    /// Which rule spoke.
    pub(crate) reason: Reason,
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
pub(crate) enum Reason {
    /// The API server says that there is no Secret.
    SecretMissing,
    /// The Secret was not read for so long that nobody knows what it says now.
    CaUnconfirmed,
    /// There is no authority that could sign now. The leader will make one.
    NoCa,
    /// There is no certificate yet.
    FirstIssue,
    /// Another authority signs now.
    CaChanged,
    /// The certificate is not valid at this time.
    LeafInvalid,
    /// The certificate has spent two thirds of its life.
    RenewalDue,
    /// The certificate is good.
    UpToDate,
}

impl Reason {
    /// The rule's name in logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SecretMissing => "SecretMissing",
            Self::CaUnconfirmed => "CaUnconfirmed",
            Self::NoCa => "NoCa",
            Self::FirstIssue => "FirstIssue",
            Self::CaChanged => "CaChanged",
            Self::LeafInvalid => "LeafInvalid",
            Self::RenewalDue => "RenewalDue",
            Self::UpToDate => "UpToDate",
        }
    }
}

impl ReplicaState {
    /// What is held after a reading that was asked for at `asked`.
    pub(crate) fn look(self, secret_state: &SecretState, asked: Times) -> Self {
        match secret_state {
            SecretState::Found { ca_set, invalid: _ } => {
                Self { ca_set: Some(((**ca_set).clone(), asked)), ..self }
            }
            SecretState::NotFound | SecretState::Unknown(_) => self,
        }
    }

    /// The certificates of the ring that was last read: something that they signed may be in use.
    pub(crate) fn remembered(&self) -> Vec<Certificate> {
        let ca_set = self.ca_set.as_ref().map(|(ca_set, _)| ca_set);
        ca_set.map_or_else(Vec::new, |ca_set| ca_set.certificates().into_iter().cloned().collect())
    }

    /// The authority to sign with, if there is one that certainly signs now.
    pub(crate) fn signer(
        &self,
        lifetimes: &Lifetimes,
        times: Times,
    ) -> Result<&CertificateAuthority, Reason> {
        let (ca_set, asked) = self.ca_set.as_ref().ok_or(Reason::CaUnconfirmed)?;
        if times.since(*asked) > lifetimes.max_staleness() {
            return Err(Reason::CaUnconfirmed);
        }
        let current = ca_set.current.as_ref().filter(|it| it.certificate.valid_at(times.wall));
        current.ok_or(Reason::NoCa)
    }
}

/// What to do now.
pub(crate) fn renew(
    lifetimes: &Lifetimes,
    replica: &ReplicaState,
    secret_state: &SecretState,
    times: Times,
) -> LeafPlan {
    let (step, reason) = match secret_state {
        SecretState::NotFound => (Step::Create, Reason::SecretMissing),
        SecretState::Found { .. } | SecretState::Unknown(_) => match replica
            .signer(lifetimes, times)
        {
            Err(reason) => (Step::Rest, reason),
            Ok(authority) => match fault(lifetimes, replica.leaf.as_ref(), authority, times.wall) {
                Some(reason) => (Step::Sign, reason),
                None => (Step::Rest, Reason::UpToDate),
            },
        },
    };
    LeafPlan { step, reason }
}

/// What is wrong with the certificate, if another would be better.
fn fault(
    lifetimes: &Lifetimes,
    leaf: Option<&Leaf>,
    authority: &CertificateAuthority,
    wall: Timestamp,
) -> Option<Reason> {
    let Some(leaf) = leaf else {
        return Some(Reason::FirstIssue);
    };
    if leaf.authority.der != authority.certificate.der {
        return Some(Reason::CaChanged);
    }
    if wall < leaf.from || leaf.until <= wall {
        return Some(Reason::LeafInvalid);
    }
    // One that ends with its authority would end no later if it were signed again.
    let (_, until) = span(lifetimes, &authority.certificate, wall);
    let is_old = wall >= due(leaf) && until > leaf.until;
    is_old.then_some(Reason::RenewalDue)
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
pub(crate) fn rest(
    lifetimes: &Lifetimes,
    replica: &ReplicaState,
    plan: LeafPlan,
    wall: Timestamp,
) -> Duration {
    let leaf = replica.leaf.as_ref();
    let due = match plan.reason {
        Reason::SecretMissing | Reason::NoCa => Some(Duration::from_secs(1)),
        Reason::CaUnconfirmed => Some(Duration::from_secs(2)),
        Reason::FirstIssue | Reason::CaChanged | Reason::LeafInvalid | Reason::RenewalDue => None,
        // Once it is due and cannot be had, there is no hurry: the leader must act first.
        Reason::UpToDate => leaf.map(|leaf| since(wall, due(leaf))).filter(|rest| !rest.is_zero()),
    };
    lifetimes.rest(due)
}

/// Whether this replica can be called: its certificate is valid, and every target that asks our
/// Service trusts what signed it. None, if that is not known.
pub(crate) fn is_trusted_by_targets(
    replica: &ReplicaState,
    targets: &[TargetState],
    wall: Timestamp,
) -> Option<bool> {
    let Some(leaf) = replica.leaf.as_ref().filter(|leaf| leaf.from <= wall && wall < leaf.until)
    else {
        return Some(false);
    };
    let trusts = |target: &TargetState| match target {
        TargetState::Managed { mark: _, bundles } => {
            Some(bundles.iter().all(|bundle| holds(bundle, &leaf.authority.der)))
        }
        // Nobody will call us on its behalf.
        TargetState::NotOurs | TargetState::NotFound => Some(true),
        TargetState::Unknown(_) => None,
    };
    targets.iter().map(trusts).try_fold(true, |all, trusts| Some(all && trusts?))
}

#[cfg(test)]
mod tests;
