//! When the authorities of a cluster change their places, and what that waits for.
//! Comes in: the ring, who runs with which trust, the time, and what members have shown. Goes out: the next turn, or why
//! not yet. May touch: `pki`; pure. etcd reads whom it trusts only when it starts, so nobody signs whom a member that
//! runs may not have heard of, nobody is dropped whose signature a member may still show, and whoever was dropped is
//! remembered until every member has shown that it asks for others.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::ca_pair::CaPair;
use super::ca_set::{CaSet, RotationPhase};
use super::lifetimes::{Lifetimes, after, due};
use super::readiness::{MemberReadiness, ProbeResults, Readiness, WaitingFor};
use crate::pki::ca::Certificate;

/// All that the next turn depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RotationContext<'a> {
    pub(crate) ring: &'a CaSet,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) now: Timestamp,
    /// What the user asks for.
    pub(crate) asked: Option<&'a str>,
    /// Whether the authorities may change now: the cluster was formed, uses them, and is not to be left alone.
    pub(crate) may_turn: bool,
    /// Whether others may come: nothing else changes whom members trust. Who has come goes on, whatever is asked for since.
    pub(crate) may_begin: bool,
    pub(crate) company: MemberReadiness<'a>,
}

/// What is to be done about the authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RotationDecision {
    /// Nothing.
    Idle,
    /// Others come.
    Start,
    /// Everybody can read now whom to trust and what was signed: the time for that begins.
    StartOverlap,
    /// These sign.
    SwitchIssuer(Box<CaPair>),
    /// Those before are not to be trusted any more.
    RemoveOldCa,
    /// Nobody trusts them any more.
    Finish,
    /// Members must be called to see what they take and show.
    NeedsProbe,
    /// Not yet.
    Wait(WaitingFor),
}

/// `CaPair` that are on their way, and what they wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RotationStatus {
    pub(crate) stage: RotationPhase,
    pub(crate) waits: WaitingFor,
}

/// Decides. Without a proof it is asked for when it is needed.
pub(crate) fn next(facts: &RotationContext<'_>, proof: Option<&ProbeResults>) -> RotationDecision {
    let stage = &facts.ring.stage;
    match (stage, facts.may_turn) {
        (RotationPhase::Idle, true) if facts.may_begin && facts.must_begin() => {
            return RotationDecision::Start;
        }
        (RotationPhase::Idle, _) => return RotationDecision::Idle,
        (
            RotationPhase::Distributing(_)
            | RotationPhase::Retiring(_)
            | RotationPhase::Verifying(_),
            false,
        ) => {
            return RotationDecision::Wait(WaitingFor::Unpause);
        }
        (
            RotationPhase::Distributing(_)
            | RotationPhase::Retiring(_)
            | RotationPhase::Verifying(_),
            true,
        ) => {}
    }
    // Every Secret is as it should be, or nobody would have asked: from now on it can be read.
    let Some(since) = facts.ring.since else { return RotationDecision::StartOverlap };
    let ripe = match stage {
        RotationPhase::Distributing(_) => facts.signs_at(since),
        RotationPhase::Retiring(old) => facts.ends_at(since, old),
        // Applications have nothing to do with it any more.
        RotationPhase::Idle | RotationPhase::Verifying(_) => since,
    };
    match facts.company.ready(ripe, facts.now, proof) {
        Readiness::Ready => {}
        Readiness::NeedsProbe => return RotationDecision::NeedsProbe,
        Readiness::Wait(waits) => return RotationDecision::Wait(waits),
    }
    match stage {
        RotationPhase::Idle => RotationDecision::Idle,
        RotationPhase::Distributing(next) => RotationDecision::SwitchIssuer(next.clone()),
        RotationPhase::Retiring(_) => RotationDecision::RemoveOldCa,
        RotationPhase::Verifying(_) => RotationDecision::Finish,
    }
}

impl RotationContext<'_> {
    fn must_begin(&self) -> bool {
        let is_asked = self.asked.is_some() && self.asked != self.ring.asked.as_deref();
        let longer = self.lifetimes.of_authority(self.now).until;
        let is_old = |it: &&Certificate| due(it, self.now) && longer > it.until;
        is_asked || self.ring.now.certificates().iter().any(is_old)
    }

    /// When applications have had their time to hear of the others; but what is about must not end before that.
    fn signs_at(&self, since: Timestamp) -> Timestamp {
        let [client, peer] = self.ring.now.certificates();
        let end = client.until.min(peer.until);
        let left = Duration::try_from(end.duration_since(since)).unwrap_or_default();
        after(since, self.lifetimes.overlap.min(left.checked_div(2).unwrap_or_default()))
    }

    /// When applications have had their time to take up what the new ones signed. Nobody takes what has ended.
    fn ends_at(&self, since: Timestamp, [client, peer]: &[Certificate; 2]) -> Timestamp {
        after(since, self.lifetimes.overlap).min(client.until.max(peer.until))
    }
}
