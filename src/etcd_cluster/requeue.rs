//! The delays until the next reconciliation of a cluster, in one place.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::reason::Reason;

/// Between two observations of a healthy cluster.
pub(super) const HEALTHY_INTERVAL: Duration = Duration::from_secs(10);
/// While a pod, a member or etcd is waited for.
pub(super) const WAITING_INTERVAL: Duration = Duration::from_millis(500);
/// While nothing can change without an event of a watch.
pub(super) const IDLE_INTERVAL: Duration = Duration::from_mins(5);
/// After an action.
pub(super) const PROGRESS_DELAY: Duration = Duration::from_millis(20);
/// After an action that failed.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Until the stores of the watches are complete, or have caught up with a conflicting write.
pub(super) const STORES_DELAY: Duration = Duration::from_millis(200);
/// While the operator has no permissions in the namespace.
pub(super) const NOT_GRANTED_INTERVAL: Duration = Duration::from_secs(5);
/// After a reconciliation that failed as a whole.
pub(super) const ERROR_DELAY: Duration = Duration::from_secs(3);
/// After a reconciliation in a new namespace failed because the RoleBinding is not effective yet.
pub(super) const RBAC_RETRY_DELAY: Duration = Duration::from_millis(200);

/// How the actions of a reconciliation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There was nothing to do.
    Idle,
    /// All actions succeeded.
    Acted,
    /// An object changed since it was observed.
    Stale,
    /// An action failed.
    Failed,
}

/// The delay after a reconciliation with this reason.
pub(super) const fn after(progress: Progress, reason: Reason) -> Duration {
    match progress {
        Progress::Idle => reason.requeue_after(),
        Progress::Acted => PROGRESS_DELAY,
        Progress::Stale => STORES_DELAY,
        Progress::Failed => RETRY_DELAY,
    }
}
