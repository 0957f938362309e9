//! The state of one connection: its activity and start time, readable by other tasks.
//!
//! There is no timer per connection: a periodic sweep checks the state of all of them.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::activity::Activity;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// When the server started; times are relative to it.
    epoch: Instant,
    packed: AtomicU64,
    wakeup: Notify,
}

impl ConnectionState {
    /// The state of a new connection.
    pub(super) fn new(epoch: Instant) -> Self {
        let packed = AtomicU64::new(Activity::Handshaking.pack(millis(epoch)));
        Self { epoch, packed, wakeup: Notify::new() }
    }

    /// The activity and its start time.
    pub(super) fn load(&self) -> (Activity, u64) {
        Activity::unpack(self.packed.load(Ordering::Acquire))
    }

    /// Starts an activity. False: the connection was aborted, and nothing starts.
    pub(super) fn enter(&self, next: Activity) -> bool {
        self.transition(next, |_| true)
    }

    /// Bytes were read: if the connection was idle, a request starts.
    pub(super) fn on_read(&self) -> bool {
        self.transition(Activity::ReadingHeaders, |activity| {
            matches!(activity, Activity::AwaitingRequest | Activity::Idle)
        })
    }

    /// The output was flushed: if it was a response, the connection is idle.
    pub(super) fn on_flush(&self) {
        self.transition(Activity::Idle, |activity| activity == Activity::Responding);
    }

    /// Changes to `next` if `allowed` holds for the current activity. False: the connection was
    /// aborted.
    fn transition(&self, next: Activity, allowed: impl Fn(Activity) -> bool) -> bool {
        let mut current = self.packed.load(Ordering::Acquire);
        loop {
            let (activity, _) = Activity::unpack(current);
            if activity == Activity::Aborted {
                return false;
            }
            if !allowed(activity) {
                return true;
            }
            let new = next.pack(millis(self.epoch));
            let swapped = self.packed.compare_exchange_weak(
                current,
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match swapped {
                Ok(_) => return true,
                Err(actual) => current = actual,
            }
        }
    }

    /// Aborts the connection, unless its state has changed since it was `observed`. One atomic
    /// operation decides, so that no request is lost that starts in between.
    pub(super) fn abort(&self, observed: (Activity, u64)) -> bool {
        let (activity, since) = observed;
        let new = Activity::Aborted.pack(millis(self.epoch));
        let expected = activity.pack(since);
        let aborted = self
            .packed
            .compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if aborted {
            self.notify();
        }
        aborted
    }

    /// Wakes the connection, so that it checks for abort and shutdown.
    pub(super) fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Waits for a notification. True: the connection was aborted.
    pub(super) async fn notified(&self) -> bool {
        self.wakeup.notified().await;
        self.load().0 == Activity::Aborted
    }
}

/// Milliseconds since the server started.
pub(super) fn millis(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connection_that_started_a_request_is_not_aborted_as_idle() {
        let state = ConnectionState::new(Instant::now());
        assert!(state.enter(Activity::Idle));
        let observed = state.load();
        assert!(state.on_read());
        assert!(!state.abort(observed));
        assert_eq!(state.load().0, Activity::ReadingHeaders);
    }

    #[tokio::test]
    async fn aborted_connection_starts_nothing_and_is_notified() {
        let state = ConnectionState::new(Instant::now());
        assert!(state.enter(Activity::Idle));
        assert!(state.abort(state.load()));
        assert!(!state.on_read());
        assert!(!state.enter(Activity::Handling));
        assert!(state.notified().await);
    }

    #[tokio::test]
    async fn connection_is_idle_only_after_its_response_is_flushed() {
        let state = ConnectionState::new(Instant::now());
        for (before, after) in [
            (Activity::ReadingBody, Activity::ReadingBody),
            (Activity::Handling, Activity::Handling),
            (Activity::Responding, Activity::Idle),
        ] {
            assert!(state.enter(before));
            state.on_flush();
            assert_eq!(state.load().0, after);
        }
    }
}
