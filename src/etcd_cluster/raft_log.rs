//! The oldest version that wrote to etcd's raft log, and how far the log must advance before a
//! version can start with it.
//!
//! etcd 3.7 exits when it reads an entry that a member of 3.5 wrote: at startup, in all entries
//! after the last snapshot on its disk; and whenever a leader sends such an entry, which keeps some
//! thousands in memory. etcd does not report the index of the snapshot, but a member that has
//! applied enough entries must have written a newer one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::observe::etcd::{EtcdProbe, member_of_peer_url};
use super::state::Reading;
use crate::api::etcd_cluster::v1::status::{EtcdClusterStatus, RaftLogStatus};
use crate::api::etcd_types::EndpointStatus;
use crate::api::etcd_version::{Minor, Release, policy};
use crate::api::field::Field;

/// The entries that a leader keeps for members that are behind, plus those before it compacts
/// again.
const CATCH_UP_ENTRIES: u64 = 5_100;
/// Entries in flight when members are probed, and those applied before a snapshot is written.
const IN_FLIGHT_ENTRIES: u64 = 1_000;

/// From an index on, no version older than this has written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldestWriter {
    pub(crate) writer: Minor,
    /// 0 is the start of the log.
    pub(crate) since: u64,
}

/// What the next version requires of the log, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RaftLogRequirement {
    /// The next version.
    pub(crate) next: Release,
    /// A member writes a snapshot after this many entries.
    pub(crate) snapshot_count: u64,
    pub(crate) oldest_writer: Option<OldestWriter>,
}

impl OldestWriter {
    /// What the status records.
    pub(crate) fn recorded(status: &EtcdClusterStatus) -> Option<Self> {
        let RaftLogStatus { oldest_writer: writer, since_index: since } =
            status.raft_log.known()?;
        let release = Release::parse(&format!("{}.0", writer.known()?.as_str()))?;
        Some(Self { writer: release.minor(), since: u64::try_from(*since.known()?).ok()? })
    }

    /// What is to be recorded. An older version counts once it is observed or is the target: it may
    /// write and be removed before it is observed. That none is left counts only when all members
    /// are reachable.
    pub(crate) fn observe(status: &EtcdClusterStatus, probe: &EtcdProbe) -> Option<Self> {
        let recorded = Self::recorded(status);
        let all = endpoint_statuses(probe);
        let minors = all.iter().flatten().filter_map(|status| minor(status));
        let Some(oldest) = minors.min() else { return recorded };
        let target =
            status.target_version.known().and_then(|target| Release::parse(target.as_str()));
        let oldest = target.map_or(oldest, |target| oldest.min(target.minor()));
        let all_reachable =
            all.iter().all(|status| status.is_some_and(|status| minor(status).is_some()));
        let from_now =
            all_reachable.then(|| Self { writer: oldest, since: probe.max_raft_index() });
        match recorded {
            Some(known) if oldest < known.writer => Some(Self { writer: oldest, ..known }),
            Some(known) if oldest > known.writer => from_now.or(recorded),
            Some(_) => recorded,
            // The initial members are reachable for the first time.
            None if never_ran(status) => Some(Self { writer: oldest, since: 0 }),
            None => from_now,
        }
    }

    /// The status that records this.
    pub(crate) fn status(self) -> RaftLogStatus {
        let Self { writer, since } = self;
        RaftLogStatus {
            oldest_writer: Field::Known(writer.to_string().into()),
            since_index: Field::Known(i64::try_from(since).unwrap_or(i64::MAX)),
        }
    }
}

impl RaftLogRequirement {
    /// The index that the log must reach; `None` if that is not known yet.
    fn required_index(self) -> Option<u64> {
        let line = policy::line(self.next.minor());
        let Some(readable) = line.and_then(|line| line.oldest_readable_log) else {
            return Some(0);
        };
        let OldestWriter { since, .. } =
            self.oldest_writer.filter(|oldest| oldest.writer >= readable)?;
        let more = self.snapshot_count.max(CATCH_UP_ENTRIES).saturating_add(IN_FLIGHT_ENTRIES);
        Some(if since == 0 { 0 } else { since.saturating_add(more) })
    }

    /// How many entries must be written until members have newer snapshots.
    pub(crate) fn missing_entries(self, probe: &EtcdProbe) -> u64 {
        self.required_index().unwrap_or(0).saturating_sub(probe.max_raft_index())
    }

    /// Whether every member can start with the next version.
    pub(crate) fn is_met(self, probe: &EtcdProbe) -> bool {
        let all = endpoint_statuses(probe);
        self.required_index().is_some_and(|required_index| {
            required_index == 0
                || !all.is_empty()
                    && all.iter().all(|status| {
                        status.is_some_and(|status| status.applied_index >= required_index)
                    })
        })
    }
}

/// The status of each listed member; `None` if it is unreachable. Empty without quorum.
fn endpoint_statuses(probe: &EtcdProbe) -> Vec<Option<&EndpointStatus>> {
    let Reading::Known(view) = &probe.quorum else { return Vec::new() };
    let listed = view.members.iter();
    listed
        .map(|entry| {
            let name = entry.peer_urls.iter().find_map(|url| member_of_peer_url(url))?;
            probe.status(&name).filter(|status| status.member == entry.id)
        })
        .collect()
}

fn minor(status: &EndpointStatus) -> Option<Minor> {
    Release::parse(&status.version).map(Release::minor)
}

/// Whether initial members are recorded, and none was ever reported as running.
fn never_ran(status: &EtcdClusterStatus) -> bool {
    let initial = status.bootstrap.known().and_then(|bootstrap| bootstrap.members.known());
    status.current_version.known().is_none() && initial.is_some_and(|members| !members.is_empty())
}

#[cfg(test)]
mod tests;
