//! The pulse of one connection: what it is doing since when, readable from outside.
//! Comes in: what the connection notes about itself, and the verdict that it must end. Goes out:
//! what it is doing, and a bell that wakes it. May touch: the monotonic clock.
//! There is no timer for each connection: one round looks at every pulse.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::activity::Activity;

/// The pulse of one connection.
#[derive(Debug)]
pub(super) struct Pulse {
    /// When the port was opened; times are counted from there.
    opened: Instant,
    word: AtomicU64,
    bell: Notify,
}

impl Pulse {
    /// The pulse of a connection that has just come in.
    pub(super) fn new(opened: Instant) -> Self {
        let word = AtomicU64::new(Activity::Arriving.packed(millis(opened)));
        Self { opened, word, bell: Notify::new() }
    }

    /// What the connection does, and since when.
    pub(super) fn feel(&self) -> (Activity, u64) {
        Activity::unpacked(self.word.load(Ordering::Acquire))
    }

    /// Notes what begins now. False: the connection was cut, and nothing begins.
    pub(super) fn begin(&self, next: Activity) -> bool {
        self.turn(next, |_| true)
    }

    /// A byte of the peer has come: if nothing was going on, a request begins.
    pub(super) fn heard(&self) -> bool {
        self.turn(Activity::Header, |now| matches!(now, Activity::Silent | Activity::Idle))
    }

    /// All that was to be sent is sent: if it was an answer, the connection is idle.
    pub(super) fn sent(&self) {
        self.turn(Activity::Idle, |now| now == Activity::Answering);
    }

    /// Goes on to `next` if that fits to what goes on now. False: the connection was cut.
    fn turn(&self, next: Activity, fits: impl Fn(Activity) -> bool) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let (now, _) = Activity::unpacked(word);
            if now == Activity::Cut {
                return false;
            }
            if !fits(now) {
                return true;
            }
            let packed = next.packed(millis(self.opened));
            let turned =
                self.word.compare_exchange_weak(word, packed, Ordering::AcqRel, Ordering::Acquire);
            match turned {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
    }

    /// Ends the connection, unless it has done something since it was `seen`. That is decided in
    /// one step, so that no request is lost that has begun in between.
    pub(super) fn cut(&self, seen: (Activity, u64)) -> bool {
        let (activity, since) = seen;
        let cut = Activity::Cut.packed(millis(self.opened));
        let expected = activity.packed(since);
        let done =
            self.word.compare_exchange(expected, cut, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if done {
            self.ring();
        }
        done
    }

    /// Wakes the connection, so that it looks around.
    pub(super) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Waits until somebody rings. True: the connection was cut.
    pub(super) async fn rung(&self) -> bool {
        self.bell.notified().await;
        self.feel().0 == Activity::Cut
    }
}

/// The time on the port's own clock.
pub(super) fn millis(opened: Instant) -> u64 {
    u64::try_from(opened.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_that_has_begun_a_request_is_not_cut_as_an_idle_one() {
        let pulse = Pulse::new(Instant::now());
        assert!(pulse.begin(Activity::Idle));
        let seen = pulse.feel();
        assert!(pulse.heard());
        assert!(!pulse.cut(seen));
        assert_eq!(pulse.feel().0, Activity::Header);
    }

    #[tokio::test]
    async fn a_connection_that_was_cut_begins_nothing_and_hears_of_it() {
        let pulse = Pulse::new(Instant::now());
        assert!(pulse.begin(Activity::Idle));
        assert!(pulse.cut(pulse.feel()));
        assert!(!pulse.heard());
        assert!(!pulse.begin(Activity::Judging));
        assert!(pulse.rung().await);
    }

    #[tokio::test]
    async fn only_an_answer_that_is_out_makes_a_connection_idle() {
        let pulse = Pulse::new(Instant::now());
        for (before, after) in [
            (Activity::Body, Activity::Body),
            (Activity::Judging, Activity::Judging),
            (Activity::Answering, Activity::Idle),
        ] {
            assert!(pulse.begin(before));
            pulse.sent();
            assert_eq!(pulse.feel().0, after);
        }
    }
}
