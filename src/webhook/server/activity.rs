//! What a connection is doing, how long it may take, and which rejection a timeout counts as.
//!
//! An activity and its start time are packed into one 64-bit integer, so that a connection updates
//! them without a lock.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::limits::Limits;
use crate::telemetry::RejectReason;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// The TLS handshake is in progress.
    Handshaking,
    /// The handshake is complete; the first request has not started.
    AwaitingRequest,
    /// The next request has not started.
    Idle,
    /// The headers of a request are arriving.
    ReadingHeaders,
    /// The body of a request is arriving.
    ReadingBody,
    /// The server is handling the review.
    Handling,
    /// The response is being sent.
    Responding,
    /// The server has closed its side.
    Closing,
    /// The connection must end and cannot start anything.
    Aborted,
}

/// What a connection is blocked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockedOn {
    /// Nothing: no request is in progress.
    Nothing,
    /// The peer, in the middle of a request or response.
    Peer,
    /// The server.
    Server,
}

/// The bits of the activity; the remaining bits hold the start time in milliseconds.
const BITS: u32 = 4;

impl Activity {
    const ALL: [Self; 9] = [
        Self::Handshaking,
        Self::AwaitingRequest,
        Self::Idle,
        Self::ReadingHeaders,
        Self::ReadingBody,
        Self::Handling,
        Self::Responding,
        Self::Closing,
        Self::Aborted,
    ];

    const fn code(self) -> u64 {
        match self {
            Self::Handshaking => 0,
            Self::AwaitingRequest => 1,
            Self::Idle => 2,
            Self::ReadingHeaders => 3,
            Self::ReadingBody => 4,
            Self::Handling => 5,
            Self::Responding => 6,
            Self::Closing => 7,
            Self::Aborted => 8,
        }
    }

    /// Packs the activity and its start time.
    pub(super) const fn pack(self, since: u64) -> u64 {
        (since << BITS) | self.code()
    }

    /// Unpacks an activity and its start time.
    pub(super) fn unpack(packed: u64) -> (Self, u64) {
        let code = packed & ((1 << BITS) - 1);
        let activity = Self::ALL.into_iter().find(|activity| activity.code() == code);
        (activity.unwrap_or(Self::Aborted), packed >> BITS)
    }

    /// The timeout of the activity. Handshakes and the handler have their own timers.
    pub(super) const fn timeout(self, limits: &Limits) -> Option<Duration> {
        match self {
            Self::AwaitingRequest => Some(limits.first_request_timeout),
            Self::Idle => Some(limits.idle_timeout),
            Self::ReadingHeaders => Some(limits.header_timeout),
            // Reading a body has its own timer, which also sends a response; this one is only a
            // backstop.
            Self::ReadingBody => Some(limits.body_timeout.saturating_add(limits.body_timeout)),
            Self::Responding => Some(limits.response_timeout),
            Self::Closing => Some(limits.drain_timeout),
            Self::Handshaking | Self::Handling | Self::Aborted => None,
        }
    }

    /// The rejection that a timeout counts as. A long idle time is not a rejection.
    pub(super) const fn rejection(self) -> Option<RejectReason> {
        match self {
            Self::AwaitingRequest => Some(RejectReason::NoRequest),
            Self::ReadingHeaders => Some(RejectReason::SlowHeader),
            Self::ReadingBody => Some(RejectReason::SlowBody),
            Self::Responding => Some(RejectReason::SlowReader),
            Self::Handshaking | Self::Idle | Self::Handling | Self::Closing | Self::Aborted => None,
        }
    }

    /// What the connection is blocked on.
    pub(super) const fn blocked_on(self) -> BlockedOn {
        match self {
            Self::Handshaking | Self::AwaitingRequest | Self::Idle | Self::Closing => {
                BlockedOn::Nothing
            }
            Self::ReadingHeaders | Self::ReadingBody | Self::Responding => BlockedOn::Peer,
            Self::Handling | Self::Aborted => BlockedOn::Server,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_an_activity_round_trips() {
        for activity in Activity::ALL {
            for since in [0, 1, 150_000, 1 << 50] {
                assert_eq!(Activity::unpack(activity.pack(since)), (activity, since));
            }
        }
    }

    #[test]
    fn connection_blocked_on_the_server_never_times_out() {
        for activity in
            Activity::ALL.into_iter().filter(|activity| activity.blocked_on() == BlockedOn::Server)
        {
            assert_eq!(activity.timeout(&Limits::DEFAULT), None, "{activity:?}");
            assert_eq!(activity.rejection(), None, "{activity:?}");
        }
    }
}
