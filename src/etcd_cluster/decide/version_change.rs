//! Prepares the next version step once all members run the same version.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{Downgrade, EtcdState, ObservedState, VersionProgress};

/// Cancels a downgrade that is not desired any more: etcd rejects upgrades while one is enabled.
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
