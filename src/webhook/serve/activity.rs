//! What a connection is doing, and for how long it may.
//! Comes in: the bounds. Goes out: the patience with each activity, and what its end is called.
//! May touch: nothing. Pure. An activity fits into one word together with its beginning, so that a
//! connection can note it without a lock.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::limits::Limits;
use crate::telemetry::Refused;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Its handshake is not over.
    Arriving,
    /// Its first request has not begun.
    Silent,
    /// Its next request has not begun.
    Idle,
    /// A request's header comes in.
    Header,
    /// A request's body comes in.
    Body,
    /// We make the answer.
    Judging,
    /// The answer goes out.
    Answering,
    /// We have said the last word.
    Closing,
    /// It has to end now, and cannot begin anything any more.
    Cut,
}

/// Whom a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// Its peer has nothing to say.
    Idly,
    /// Its peer is in the middle of something.
    ForPeer,
    /// It waits for us.
    ForUs,
}

/// An activity takes so many bits of a word; the rest is its beginning, in milliseconds.
const BITS: u32 = 4;

impl Activity {
    const ALL: [Self; 9] = [
        Self::Arriving,
        Self::Silent,
        Self::Idle,
        Self::Header,
        Self::Body,
        Self::Judging,
        Self::Answering,
        Self::Closing,
        Self::Cut,
    ];

    const fn code(self) -> u64 {
        match self {
            Self::Arriving => 0,
            Self::Silent => 1,
            Self::Idle => 2,
            Self::Header => 3,
            Self::Body => 4,
            Self::Judging => 5,
            Self::Answering => 6,
            Self::Closing => 7,
            Self::Cut => 8,
        }
    }

    /// This activity, begun `since`, as one word.
    pub(super) const fn packed(self, since: u64) -> u64 {
        (since << BITS) | self.code()
    }

    /// What such a word says.
    pub(super) fn unpacked(word: u64) -> (Self, u64) {
        let code = word & ((1 << BITS) - 1);
        let activity = Self::ALL.into_iter().find(|activity| activity.code() == code);
        (activity.unwrap_or(Self::Cut), word >> BITS)
    }

    /// How long it may take. What has no answer here has its own clock: a handshake, and the desk.
    pub(super) const fn patience(self, limits: &Limits) -> Option<Duration> {
        match self {
            Self::Silent => Some(limits.first_request),
            Self::Idle => Some(limits.idle),
            Self::Header => Some(limits.header),
            // The reader of bodies has a clock of its own, and words to go with it.
            Self::Body => Some(limits.body.saturating_add(limits.body)),
            Self::Answering => Some(limits.answer),
            Self::Closing => Some(limits.goodbye),
            Self::Arriving | Self::Judging | Self::Cut => None,
        }
    }

    /// What it is called when patience ends. To be idle for long is no offence.
    pub(super) const fn offence(self) -> Option<Refused> {
        match self {
            Self::Silent => Some(Refused::Silent),
            Self::Header => Some(Refused::SlowHeader),
            Self::Body => Some(Refused::SlowBody),
            Self::Answering => Some(Refused::SlowReader),
            Self::Arriving | Self::Idle | Self::Judging | Self::Closing | Self::Cut => None,
        }
    }

    /// Whom it waits for.
    pub(super) const fn waits(self) -> Waits {
        match self {
            Self::Arriving | Self::Silent | Self::Idle | Self::Closing => Waits::Idly,
            Self::Header | Self::Body | Self::Answering => Waits::ForPeer,
            Self::Judging | Self::Cut => Waits::ForUs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_tells_what_was_packed_into_it() {
        for activity in Activity::ALL {
            for since in [0, 1, 150_000, 1 << 50] {
                assert_eq!(Activity::unpacked(activity.packed(since)), (activity, since));
            }
        }
    }

    #[test]
    fn a_connection_that_waits_for_us_is_never_blamed() {
        for activity in Activity::ALL.into_iter().filter(|it| it.waits() == Waits::ForUs) {
            assert_eq!(activity.patience(&Limits::STANDARD), None, "{activity:?}");
            assert_eq!(activity.offence(), None, "{activity:?}");
        }
    }
}
