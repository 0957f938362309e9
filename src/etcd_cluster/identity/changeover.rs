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

use super::company::{Company, Proof, Ready, Waits};
use super::footing::{Footing, Move};
use super::lifetimes::after;
use super::offer::Wish;
use super::roots::{MOST_GIVEN, Side};
use crate::pki::authority::Certificate;

/// All that the next move of one side depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) footing: &'a Footing,
    /// Nothing if everything shall stay as it is.
    pub(crate) wish: Option<&'a Wish>,
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
    pub(crate) company: Company<'a>,
}

/// What is to be done about one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Rest,
    /// This.
    Move(Move),
    /// Members must be called to see what they take and show.
    Prove,
    /// Not yet.
    Wait(Waits),
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nobody was told of the new ones yet.
    Asked,
    /// The new ones are trusted beside the old ones.
    Introduced,
    /// The new ones sign what is shown.
    Retiring,
    /// Members may still trust the old ones, and should not.
    Dropped,
}

/// A side that is on its way, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changing {
    pub(crate) side: Side,
    pub(crate) stage: Stage,
    pub(crate) waits: Waits,
}

impl Footing {
    /// How far this has come on its way to what is wished.
    pub(crate) fn stage(&self, wish: &Wish) -> Stage {
        if self.stands_on(wish) {
            Stage::Dropped
        } else if self.told != self.proven.and(&wish.roots) {
            Stage::Asked
        } else if self.told == self.proven {
            Stage::Retiring
        } else {
            Stage::Introduced
        }
    }

    /// Whether everybody is told to trust who is wished, and nobody else.
    fn stands_on(&self, wish: &Wish) -> bool {
        self.told == wish.roots && self.proven == wish.roots
    }

    /// Whether nothing is on its way, whatever is wished.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_one = !self.told.ours || self.told.others.is_empty();
        is_one && self.told == self.proven && self.dropped.is_empty()
    }

    /// Whether it rests on what is wished, and no member is known to trust anybody else.
    pub(crate) fn rests_on(&self, wish: &Wish) -> bool {
        self.stands_on(wish) && self.dropped.is_empty()
    }
}

/// Decides. Without a proof it is asked for when it is needed.
pub(crate) fn next(facts: &Facts<'_>, proof: Option<&Proof>) -> Next {
    let Facts { footing, wish, is_used, may_move, .. } = *facts;
    let Some(wish) = wish else { return Next::Rest };
    if !is_used {
        let rests = footing.rests_on(wish) && footing.pair == wish.pair;
        let settle = || Move::Settle(wish.roots.clone(), wish.pair.clone().map(Box::new));
        return if rests { Next::Rest } else { Next::Move(settle()) };
    }
    // What those signed whom everybody trusts may be shown at once.
    if let Some(pair) = &wish.pair
        && footing.pair.as_ref() != Some(pair)
        && pair.calls(facts.proven, facts.now).is_ok()
    {
        return Next::Move(Move::Show(Box::new(pair.clone())));
    }
    if footing.rests_on(wish) {
        return Next::Rest;
    }
    if !may_move {
        return Next::Wait(Waits::Allowed);
    }
    if footing.stands_on(wish) {
        return facts.shows(Move::Forget, facts.now, proof);
    }
    let both = footing.proven.and(&wish.roots);
    if footing.told != both {
        // Members read only so many. Whoever asks for still others on the way must let this change come to its end first.
        let fit = both.others.len() <= MOST_GIVEN.saturating_mul(2);
        return if fit { Next::Move(Move::Introduce(both)) } else { Next::Wait(Waits::Room) };
    }
    facts.ripens(wish, proof)
}

impl Facts<'_> {
    fn ripens(&self, wish: &Wish, proof: Option<&Proof>) -> Next {
        // Every Secret is as it should be, or nobody would have asked: from now on it can be read.
        let since = self.footing.since.as_ref().filter(|(_, toward)| *toward == wish.roots);
        let Some((since, _)) = since.cloned() else {
            return Next::Move(Move::Publish(wish.roots.clone()));
        };
        if self.footing.stage(wish) == Stage::Introduced {
            return self.shows(Move::Establish, self.shown_at(since), proof);
        }
        let gone = self.gone().cloned().collect();
        self.shows(Move::Drop(wish.roots.clone(), gone), self.ends_at(since), proof)
    }

    /// Lets it happen at that time, when every member has been started since and has shown that it is ready for it.
    fn shows(&self, then: Move, ripe: Timestamp, proof: Option<&Proof>) -> Next {
        match self.company.ready(ripe, self.now, proof) {
            Ready::Yes => Next::Move(then),
            Ready::Prove => Next::Prove,
            Ready::Wait(waits) => Next::Wait(waits),
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
