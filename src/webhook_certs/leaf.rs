//! Decides what a replica does about its own serving certificate. Pure.
//!
//! A replica issues its leaf from the current CA, and only if a recent read confirms that CA:
//! without a connection to the API server it keeps the leaf it has. So there is a bound after which
//! no leaf of a previous CA is in use; see `Lifetimes::max_leaf_lifetime`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::ca_set::CaSet;
use super::lifetimes::{Lifetimes, later, since, two_thirds};
use super::state::{SecretState, TargetState};
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::{Certificate, CertificateAuthority, bundle_contains};

/// The time on both clocks. The monotonic clock stops while a machine is suspended, and the wall
/// clock jumps; so the longer of the two spans counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The monotonic clock.
    pub(crate) now: MonotonicTime,
    /// The wall clock.
    pub(crate) wall: Timestamp,
}

impl Times {
    /// An upper bound of the time since `earlier`.
    fn since(self, earlier: Self) -> Duration {
        let walls = since(earlier.wall, self.wall).max(since(self.wall, earlier.wall));
        self.now.since(earlier.now).max(walls)
    }
}

/// The serving certificate of this replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The CA that signed it.
    pub(crate) ca: Certificate,
    /// When it was issued, by the wall clock.
    pub(crate) issued: Timestamp,
    /// `notBefore`.
    pub(crate) from: Timestamp,
    /// `notAfter`.
    pub(crate) until: Timestamp,
}

/// What a replica keeps from one reconciliation to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaState {
    /// Its serving certificate.
    pub(crate) leaf: Option<Leaf>,
    /// The CA set as last read, and the time before that read was sent.
    pub(crate) ca_set: Option<(CaSet, Times)>,
}

/// The next step and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafPlan {
    /// The step.
    pub(crate) step: LeafStep,
    /// The rule that chose it.
    pub(crate) reason: LeafReason,
}

/// One step of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafStep {
    /// Keep the current leaf.
    Wait,
    /// Create the Secret. If another replica is faster, the create conflicts.
    CreateSecret,
    /// Issue a leaf and serve it from now on.
    Issue,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafReason {
    /// The Secret does not exist.
    SecretMissing,
    /// The last successful read of the Secret is too old to know the current CA.
    CaUnconfirmed,
    /// There is no valid current CA. The leader creates one.
    NoCa,
    /// This replica has no leaf yet.
    FirstIssue,
    /// The leaf is signed by a previous CA.
    CaChanged,
    /// The leaf is outside its validity period.
    LeafInvalid,
    /// The leaf has used two thirds of its lifetime.
    RenewalDue,
    /// The leaf is up to date.
    UpToDate,
}

impl LeafReason {
    /// The reason's name in logs.
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
    /// The replica state after a read that was sent at `sent`.
    pub(crate) fn observe(self, secret_state: &SecretState, sent: Times) -> Self {
        match secret_state {
            SecretState::Found { ca_set, invalid: _ } => {
                Self { ca_set: Some(((**ca_set).clone(), sent)), ..self }
            }
            SecretState::NotFound | SecretState::Unknown(_) => self,
        }
    }

    /// The certificates of the CA set as last read: leaves that they signed may be in use.
    pub(crate) fn known_certificates(&self) -> Vec<Certificate> {
        let ca_set = self.ca_set.as_ref().map(|(ca_set, _)| ca_set);
        ca_set.map_or_else(Vec::new, |ca_set| ca_set.certificates().into_iter().cloned().collect())
    }

    /// The CA to issue from, if a recent read confirms it as current.
    pub(crate) fn signing_ca(
        &self,
        lifetimes: &Lifetimes,
        times: Times,
    ) -> Result<&CertificateAuthority, LeafReason> {
        let (ca_set, sent) = self.ca_set.as_ref().ok_or(LeafReason::CaUnconfirmed)?;
        if times.since(*sent) > lifetimes.max_staleness() {
            return Err(LeafReason::CaUnconfirmed);
        }
        let current = ca_set.current.as_ref().filter(|ca| ca.certificate.valid_at(times.wall));
        current.ok_or(LeafReason::NoCa)
    }
}

/// Decides the next step.
pub(crate) fn plan_leaf(
    lifetimes: &Lifetimes,
    replica: &ReplicaState,
    secret_state: &SecretState,
    times: Times,
) -> LeafPlan {
    let (step, reason) = match secret_state {
        SecretState::NotFound => (LeafStep::CreateSecret, LeafReason::SecretMissing),
        SecretState::Found { .. } | SecretState::Unknown(_) => {
            match replica.signing_ca(lifetimes, times) {
                Err(reason) => (LeafStep::Wait, reason),
                Ok(ca) => match issue_reason(lifetimes, replica.leaf.as_ref(), ca, times.wall) {
                    Some(reason) => (LeafStep::Issue, reason),
                    None => (LeafStep::Wait, LeafReason::UpToDate),
                },
            }
        }
    };
    LeafPlan { step, reason }
}

/// Why a new leaf is due, if it is.
fn issue_reason(
    lifetimes: &Lifetimes,
    leaf: Option<&Leaf>,
    ca: &CertificateAuthority,
    wall: Timestamp,
) -> Option<LeafReason> {
    let Some(leaf) = leaf else {
        return Some(LeafReason::FirstIssue);
    };
    if leaf.ca.der != ca.certificate.der {
        return Some(LeafReason::CaChanged);
    }
    if wall < leaf.from || leaf.until <= wall {
        return Some(LeafReason::LeafInvalid);
    }
    // A leaf that expires with its CA would expire no later if it were issued again.
    let (_, until) = leaf_validity(lifetimes, &ca.certificate, wall);
    let is_due = wall >= renewal_time(leaf) && until > leaf.until;
    is_due.then_some(LeafReason::RenewalDue)
}

fn renewal_time(leaf: &Leaf) -> Timestamp {
    later(leaf.issued, two_thirds(since(leaf.issued, leaf.until)))
}

/// `notBefore` and `notAfter` of a leaf issued at `wall`: within the validity of its CA.
pub(crate) fn leaf_validity(
    lifetimes: &Lifetimes,
    ca: &Certificate,
    wall: Timestamp,
) -> (Timestamp, Timestamp) {
    let from = lifetimes.not_before(wall).max(ca.from);
    (from, later(wall, lifetimes.leaf).min(ca.until))
}

/// The requeue delay: until the leaf is due, but short enough to notice a clock jump within a
/// minute.
pub(crate) fn requeue_delay(
    lifetimes: &Lifetimes,
    replica: &ReplicaState,
    plan: LeafPlan,
    wall: Timestamp,
) -> Duration {
    let leaf = replica.leaf.as_ref();
    let due = match plan.reason {
        LeafReason::SecretMissing | LeafReason::NoCa => Some(Duration::from_secs(1)),
        LeafReason::CaUnconfirmed => Some(Duration::from_secs(2)),
        LeafReason::FirstIssue
        | LeafReason::CaChanged
        | LeafReason::LeafInvalid
        | LeafReason::RenewalDue => None,
        // A leaf that is due and up to date waits for a new CA, which the leader creates: no hurry.
        LeafReason::UpToDate => {
            leaf.map(|leaf| since(wall, renewal_time(leaf))).filter(|delay| !delay.is_zero())
        }
    };
    lifetimes.requeue_delay(due)
}

/// Whether the API server trusts this replica: its leaf is valid, and every target that uses the
/// operator's Service has its CA in the bundle. None if unknown.
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
        TargetState::Managed { generation: _, bundles } => {
            Some(bundles.iter().all(|bundle| bundle_contains(bundle, &leaf.ca.der)))
        }
        // Such a target sends no requests to the operator's Service.
        TargetState::NotOurs | TargetState::NotFound => Some(true),
        TargetState::Unknown(_) => None,
    };
    targets.iter().map(trusts).try_fold(true, |all, trusts| Some(all && trusts?))
}

#[cfg(test)]
mod tests;
