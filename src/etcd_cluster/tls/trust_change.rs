//! When one side of a cluster comes to rest on other authorities, and what that waits for.
//!
//! ```text
//!             Introduce              Establish                 Drop               Forget
//!   told:     old ----> old and new ----------> old and new -------> new ----------> new
//!   proven:   old       old                     old and new          new             new
//!   shown:    old       old                     new                  new             new
//!   may be trusted by somebody who has not been started since:       old
//! ```
//!
//! Comes in: the footing, what is offered, who runs with which trust, the time, and what members have shown. Goes out: the next
//! move, or why not yet. May touch: `pki`; pure. It is the same for another source, another `ca.crt`, and the way back.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::lifetimes::after;
use super::readiness::{MemberReadiness, ProbeResults, Readiness, WaitingFor};
use super::source::DesiredTrust;
use super::trust_bundle::{MAX_EXTERNAL_CAS, Side};
use super::trust_state::{TrustState, TrustStep};
use crate::pki::ca::Certificate;

/// All that the next move of one side depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustChangeContext<'a> {
    pub(crate) footing: &'a TrustState,
    /// Nothing if everything shall stay as it is.
    pub(crate) wish: Option<&'a DesiredTrust>,
    /// Whether anybody may be showing or taking certificates on this side.
    pub(crate) is_used: bool,
    /// Whether members may be changed: the cluster was formed, is not to be left alone, and our own authorities stand still.
    pub(crate) may_move: bool,
    /// How long applications have to follow.
    pub(crate) overlap: Duration,
    pub(crate) now: Timestamp,
    /// Whom all are known to trust, one by one.
    pub(crate) proven: &'a [Certificate],
    /// Whom all shall trust in the end, one by one.
    pub(crate) wished: &'a [Certificate],
    pub(crate) company: MemberReadiness<'a>,
}

/// What is to be done about one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustDecision {
    /// Nothing.
    Idle,
    /// This.
    Apply(TrustStep),
    /// Members must be called to see what they take and show.
    NeedsProbe,
    /// Not yet.
    Wait(WaitingFor),
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustPhase {
    /// Nobody was told of the new ones yet.
    Requested,
    /// The new ones are trusted beside the old ones.
    Distributing,
    /// The new ones sign what is shown.
    Retiring,
    /// Members may still trust the old ones, and should not.
    Verifying,
}

/// A side that is on its way, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustChangeStatus {
    pub(crate) side: Side,
    pub(crate) stage: TrustPhase,
    pub(crate) waits: WaitingFor,
}

impl TrustState {
    /// How far this has come on its way to what is wished.
    pub(crate) fn stage(&self, wish: &DesiredTrust) -> TrustPhase {
        if self.stands_on(wish) {
            TrustPhase::Verifying
        } else if self.told != self.proven.and(&wish.roots) {
            TrustPhase::Requested
        } else if self.told == self.proven {
            TrustPhase::Retiring
        } else {
            TrustPhase::Distributing
        }
    }

    /// Whether everybody is told to trust who is wished, and nobody else.
    fn stands_on(&self, wish: &DesiredTrust) -> bool {
        self.told == wish.roots && self.proven == wish.roots
    }

    /// Whether nothing is on its way, whatever is wished.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_one = !self.told.ours || self.told.others.is_empty();
        is_one && self.told == self.proven && self.dropped.is_empty()
    }

    /// Whether it rests on what is wished, and no member is known to trust anybody else.
    pub(crate) fn rests_on(&self, wish: &DesiredTrust) -> bool {
        self.stands_on(wish) && self.dropped.is_empty()
    }
}

/// Decides. Without a proof it is asked for when it is needed.
pub(crate) fn next(facts: &TrustChangeContext<'_>, proof: Option<&ProbeResults>) -> TrustDecision {
    let TrustChangeContext { footing, wish, is_used, may_move, .. } = *facts;
    let Some(wish) = wish else { return TrustDecision::Idle };
    if !is_used {
        let rests = footing.rests_on(wish) && footing.pair == wish.pair;
        let settle = || TrustStep::Initialize(wish.roots.clone(), wish.pair.clone().map(Box::new));
        return if rests { TrustDecision::Idle } else { TrustDecision::Apply(settle()) };
    }
    // What those signed whom everybody trusts may be shown at once.
    if let Some(pair) = &wish.pair
        && footing.pair.as_ref() != Some(pair)
        && pair.verify_as_client(facts.proven, facts.now).is_ok()
    {
        return TrustDecision::Apply(TrustStep::UseCertificate(Box::new(pair.clone())));
    }
    if footing.rests_on(wish) {
        return TrustDecision::Idle;
    }
    if !may_move {
        return TrustDecision::Wait(WaitingFor::Unpause);
    }
    if footing.stands_on(wish) {
        return facts.shows(TrustStep::Finish, facts.now, proof);
    }
    let both = footing.proven.and(&wish.roots);
    if footing.told != both {
        // Members read only so many. Whoever asks for still others on the way must let this change come to its end first.
        let fit = both.others.len() <= MAX_EXTERNAL_CAS.saturating_mul(2);
        return if fit {
            TrustDecision::Apply(TrustStep::AddRoots(both))
        } else {
            TrustDecision::Wait(WaitingFor::BundleSpace)
        };
    }
    facts.ripens(wish, proof)
}

impl TrustChangeContext<'_> {
    fn ripens(&self, wish: &DesiredTrust, proof: Option<&ProbeResults>) -> TrustDecision {
        // Every Secret is as it should be, or nobody would have asked: from now on it can be read.
        let since = self.footing.since.as_ref().filter(|(_, toward)| *toward == wish.roots);
        let Some((since, _)) = since.cloned() else {
            return TrustDecision::Apply(TrustStep::StartOverlap(wish.roots.clone()));
        };
        if self.footing.stage(wish) == TrustPhase::Distributing {
            return self.shows(TrustStep::SwitchLeaves, self.shown_at(since), proof);
        }
        let gone = self.gone().cloned().collect();
        self.shows(TrustStep::RemoveRoots(wish.roots.clone(), gone), self.ends_at(since), proof)
    }

    /// Lets it happen at that time, when every member has been started since and has shown that it is ready for it.
    fn shows(
        &self,
        then: TrustStep,
        ripe: Timestamp,
        proof: Option<&ProbeResults>,
    ) -> TrustDecision {
        match self.company.ready(ripe, self.now, proof) {
            Readiness::Ready => TrustDecision::Apply(then),
            Readiness::NeedsProbe => TrustDecision::NeedsProbe,
            Readiness::Wait(waits) => TrustDecision::Wait(waits),
        }
    }

    /// Whom all trust now, and shall not in the end.
    fn gone(&self) -> impl Iterator<Item = &Certificate> {
        self.proven.iter().filter(|it| !self.wished.contains(it))
    }

    /// When applications have had their time to hear of the others; but what is about must not end before that.
    fn shown_at(&self, since: Timestamp) -> Timestamp {
        let end = self.proven.iter().map(|it| it.until).min().unwrap_or(Timestamp::MAX);
        let left = Duration::try_from(end.duration_since(since)).unwrap_or_default();
        after(since, self.overlap.min(left.checked_div(2).unwrap_or_default()))
    }

    /// When applications have had their time to take up what the new ones signed. Nobody takes what has ended.
    fn ends_at(&self, since: Timestamp) -> Timestamp {
        let end = self.gone().map(|it| it.until).max().unwrap_or(Timestamp::MAX);
        after(since, self.overlap).min(end)
    }
}
