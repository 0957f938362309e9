//! Who has written to etcd's log, and how much must be written until a release can start on it.
//! Comes in: what was told before, and what members say. Goes out: what is told now, and a number of entries. May touch:
//! `api`; pure. etcd 3.7 ends when it comes upon what a member of 3.5 wrote: at its start, in all that came after the last
//! snapshot on its disk; and whenever a leader sends it that, which has some thousands of entries still in its memory. No
//! answer of etcd tells where that snapshot is, but a member that has acted on enough entries must have made another.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::observe::etcd::{EtcdProbe, member_of_peer_url};
use super::state::Reading;
use crate::api::etcd_cluster::v1::status::{EtcdClusterStatus, RaftLogStatus};
use crate::api::etcd_types::EndpointStatus;
use crate::api::etcd_version::{Minor, Release, policy};
use crate::api::field::Field;

/// So many entries a leader keeps for those who are behind, and some more before it looks again.
const CATCH_UP_ENTRIES: u64 = 5_100;
/// What may be on its way when members are asked, and what a member acts on before it makes a snapshot.
const IN_FLIGHT_ENTRIES: u64 = 1_000;

/// From an entry on, nobody older has written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldestWriter {
    pub(crate) writer: Minor,
    /// 0 is the beginning of all.
    pub(crate) since: u64,
}

/// What a step needs, and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RaftLogRequirement {
    /// The next release.
    pub(crate) next: Release,
    /// After so many entries a member makes a snapshot.
    pub(crate) snapshot_count: u64,
    pub(crate) oldest_writer: Option<OldestWriter>,
}

impl OldestWriter {
    /// What was told before.
    pub(crate) fn recorded(status: &EtcdClusterStatus) -> Option<Self> {
        let RaftLogStatus { oldest_writer: writer, since_index: since } =
            status.raft_log.known()?;
        let release = Release::parse(&format!("{}.0", writer.known()?.as_str()))?;
        Some(Self { writer: release.minor(), since: u64::try_from(*since.known()?).ok()? })
    }

    /// What is told now. Whoever is older counts as soon as it is heard, or is about to come: it may write and be gone before anybody
    /// hears it. That nobody older is left counts only when all are heard.
    pub(crate) fn observe(before: &EtcdClusterStatus, probe: &EtcdProbe) -> Option<Self> {
        let recorded = Self::recorded(before);
        let all = endpoint_statuses(probe);
        let minors = all.iter().flatten().filter_map(|it| minor(it));
        let Some(oldest) = minors.min() else { return recorded };
        let target = before.target_version.known().and_then(|it| Release::parse(it.as_str()));
        let oldest = target.map_or(oldest, |it| oldest.min(it.minor()));
        let all_reachable = all.iter().all(|it| it.is_some_and(|it| minor(it).is_some()));
        let from_now =
            all_reachable.then(|| Self { writer: oldest, since: probe.max_raft_index() });
        match recorded {
            Some(it) if oldest < it.writer => Some(Self { writer: oldest, ..it }),
            Some(it) if oldest > it.writer => from_now.or(recorded),
            Some(_) => recorded,
            // The founders are heard for the first time.
            None if never_ran(before) => Some(Self { writer: oldest, since: 0 }),
            None => from_now,
        }
    }

    /// As it stands in the status.
    pub(crate) fn status(self) -> RaftLogStatus {
        let Self { writer, since } = self;
        RaftLogStatus {
            oldest_writer: Field::Known(writer.to_string().into()),
            since_index: Field::Known(i64::try_from(since).unwrap_or(i64::MAX)),
        }
    }
}

impl RaftLogRequirement {
    /// How far the log must go; nothing if that is not known yet.
    fn required_index(self) -> Option<u64> {
        let Some(reads) = policy::line(self.next.minor()).and_then(|it| it.oldest_readable_log)
        else {
            return Some(0);
        };
        let OldestWriter { since, .. } = self.oldest_writer.filter(|it| it.writer >= reads)?;
        let more = self.snapshot_count.max(CATCH_UP_ENTRIES).saturating_add(IN_FLIGHT_ENTRIES);
        Some(if since == 0 { 0 } else { since.saturating_add(more) })
    }

    /// How many entries are to be written until members make another snapshot.
    pub(crate) fn missing_entries(self, probe: &EtcdProbe) -> u64 {
        self.required_index().unwrap_or(0).saturating_sub(probe.max_raft_index())
    }

    /// Whether every member can start with the next release.
    pub(crate) fn is_met(self, probe: &EtcdProbe) -> bool {
        let all = endpoint_statuses(probe);
        self.required_index().is_some_and(|required_index| {
            required_index == 0
                || !all.is_empty()
                    && all.iter().all(|it| it.is_some_and(|it| it.applied_index >= required_index))
        })
    }
}

/// What everybody in etcd's list says; nobody if there is no list.
fn endpoint_statuses(probe: &EtcdProbe) -> Vec<Option<&EndpointStatus>> {
    let Reading::Known(council) = &probe.quorum else { return Vec::new() };
    let listed = council.members.iter();
    listed
        .map(|it| {
            let name = it.peer_urls.iter().find_map(|url| member_of_peer_url(url))?;
            probe.status(&name).filter(|standing| standing.member == it.id)
        })
        .collect()
}

fn minor(standing: &EndpointStatus) -> Option<Minor> {
    Release::parse(&standing.version).map(Release::minor)
}

/// Whether nothing was ever told of members, although it is known who founds.
fn never_ran(before: &EtcdClusterStatus) -> bool {
    let founders = before.bootstrap.known().and_then(|it| it.members.known());
    before.current_version.known().is_none() && founders.is_some_and(|it| !it.is_empty())
}

#[cfg(test)]
mod tests;
