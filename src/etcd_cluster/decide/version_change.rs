//! What must be done before the next release can come in, when all members run the one before.
//! Comes in: a formed cluster in which nobody comes or goes. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{Downgrade, EtcdState, ObservedState, VersionProgress};

/// A way down that is not wanted any more is closed before anything else is changed: while it is open, etcd does not go up.
pub(super) fn revert(_: &ObservedState, etcd: &EtcdState) -> Decision {
    match etcd.downgrade {
        Downgrade::Unwanted => Some((Step::CancelDowngrade, Reason::PreparingVersionChange)),
        Downgrade::None | Downgrade::Requested => None,
    }
}

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    if !etcd.all_voters_healthy() || etcd.blocking_alarm {
        return None;
    }
    let step = match (state.desired.version, etcd.downgrade) {
        (VersionProgress::MoreSteps, _) if etcd.raft_log_missing > 0 => Step::AdvanceRaftLog,
        (VersionProgress::Downgrading, Downgrade::None) => Step::EnableDowngrade,
        (
            VersionProgress::AtTarget
            | VersionProgress::MoreSteps
            | VersionProgress::Downgrading
            | VersionProgress::NoPath,
            _,
        ) => return None,
    };
    Some((step, Reason::PreparingVersionChange))
}
