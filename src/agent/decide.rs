//! Decides how a member starts.
//!
//! etcd reads its flags only when it finds no WAL. `--initial-cluster-state=new` on an emptied
//! volume then bootstraps a second cluster with the same IDs, or brings back a voter without its
//! data, and acknowledged writes are lost. So only a member that has never started may bootstrap or
//! join. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::start_mode::StartMode;

/// The content of the member's data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataDir {
    /// No data of etcd.
    Empty,
    /// Directories of etcd without a WAL: etcd has started to initialise.
    Initializing,
    /// A WAL.
    HasWal,
}

/// The decision of one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartDecision {
    /// etcd starts, with its `--initial-cluster-state`.
    Start(&'static str),
    /// etcd must not start.
    Refuse(DataMissing),
}

/// Which data is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DataMissing {
    /// The data of a member that ran before this pod.
    #[error(
        "refused to start etcd: this member has run before, and its volume is empty. Starting etcd \
         could bootstrap a second cluster or lose acknowledged writes. The operator replaces the \
         member if the remaining voters have quorum; otherwise restore the volume"
    )]
    BeforeThisPod,
    /// The data, deleted while this pod was running.
    #[error(
        "refused to start etcd: etcd has run in this pod, and its data was deleted since. Starting \
         etcd could bootstrap a second cluster or lose acknowledged writes. The operator replaces \
         the member if the remaining voters have quorum; otherwise restore the data"
    )]
    DuringThisPod,
}

const NEW: &str = "new";
const EXISTING: &str = "existing";

/// Decides one start. `started_before`: whether etcd was started in this pod before.
pub(super) fn decide(
    start_mode: StartMode,
    data_dir: DataDir,
    started_before: bool,
) -> StartDecision {
    let first = match start_mode {
        StartMode::Bootstrap => NEW,
        StartMode::Join | StartMode::Rejoin => EXISTING,
    };
    match (data_dir, start_mode, started_before) {
        // With a WAL etcd ignores its initial cluster flags.
        (DataDir::HasWal, StartMode::Bootstrap | StartMode::Join | StartMode::Rejoin, _) => {
            StartDecision::Start(EXISTING)
        }
        (DataDir::Empty | DataDir::Initializing, StartMode::Rejoin, _) => {
            StartDecision::Refuse(DataMissing::BeforeThisPod)
        }
        (DataDir::Empty, StartMode::Bootstrap | StartMode::Join, true) => {
            StartDecision::Refuse(DataMissing::DuringThisPod)
        }
        // Directories without a WAL: etcd exited before it was a member, because names did not
        // resolve or peers did not respond. An emptied volume has no such directories.
        (DataDir::Empty, StartMode::Bootstrap | StartMode::Join, false)
        | (DataDir::Initializing, StartMode::Bootstrap | StartMode::Join, _) => {
            StartDecision::Start(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_with_a_wal_starts_in_every_mode() {
        for start_mode in StartMode::ALL {
            for started_before in [true, false] {
                assert_eq!(
                    decide(start_mode, DataDir::HasWal, started_before),
                    StartDecision::Start("existing"),
                    "{start_mode}"
                );
            }
        }
    }

    #[test]
    fn only_a_member_that_never_started_bootstraps_or_joins() {
        assert_eq!(
            decide(StartMode::Bootstrap, DataDir::Empty, false),
            StartDecision::Start("new")
        );
        assert_eq!(
            decide(StartMode::Join, DataDir::Empty, false),
            StartDecision::Start("existing")
        );
        for start_mode in [StartMode::Bootstrap, StartMode::Join] {
            let decision = decide(start_mode, DataDir::Empty, true);
            assert_eq!(decision, StartDecision::Refuse(DataMissing::DuringThisPod), "{start_mode}");
        }
        for (data_dir, started_before) in
            [(DataDir::Empty, true), (DataDir::Empty, false), (DataDir::Initializing, true)]
        {
            assert_eq!(
                decide(StartMode::Rejoin, data_dir, started_before),
                StartDecision::Refuse(DataMissing::BeforeThisPod)
            );
        }
    }

    #[test]
    fn start_without_a_wal_is_retried() {
        assert_eq!(
            decide(StartMode::Bootstrap, DataDir::Initializing, true),
            StartDecision::Start("new")
        );
        assert_eq!(
            decide(StartMode::Join, DataDir::Initializing, true),
            StartDecision::Start("existing")
        );
    }

    #[test]
    fn refusal_has_the_cause_and_the_next_step() {
        for missing in [DataMissing::BeforeThisPod, DataMissing::DuringThisPod] {
            let message = missing.to_string();
            assert!(message.contains("refused to start etcd") && message.contains("The operator"));
            assert!(message.len() < 1024, "termination messages are limited");
        }
    }
}
