//! What the members of a cluster responded when they were probed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use crate::api::etcd_types::{Alarm, EndpointStatus, MemberEntry};
use crate::api::etcd_version::Release;
use crate::etcd_cluster::state::{AuthState, MemberName, Reading};

/// The responses of all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EtcdProbe {
    /// The response of each member whose pod has an address.
    pub(crate) members: BTreeMap<MemberName, MemberProbe>,
    /// What a quorum agrees on; unknown if no linearizable read succeeds.
    pub(crate) quorum: Reading<QuorumView>,
    /// Authentication, compared with the spec.
    pub(crate) auth: AuthState,
    /// The hash of the data of each member, if it was read: equal hashes are equal data.
    pub(crate) data_hashes: BTreeMap<MemberName, u64>,
}

/// The response of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberProbe {
    /// Its endpoint status.
    pub(crate) status: Option<EndpointStatus>,
    /// Whether its linearizable read succeeded.
    pub(crate) linearizable_read_ok: bool,
    /// Why a call failed.
    pub(crate) error: Option<String>,
}

/// What a quorum agrees on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuorumView {
    /// The member that was queried; its linearizable read succeeded.
    pub(crate) queried_member: MemberName,
    /// The cluster ID.
    pub(crate) cluster_id: u64,
    /// The leader; 0 if there is none.
    pub(crate) leader: u64,
    /// The member list.
    pub(crate) members: Vec<MemberEntry>,
    /// The active alarms.
    pub(crate) alarms: Vec<Alarm>,
    /// The revision of the linearizable read.
    pub(crate) revision: i64,
}

impl EtcdProbe {
    /// No member was probed.
    pub(crate) const fn none() -> Self {
        Self {
            members: BTreeMap::new(),
            quorum: Reading::Unknown,
            auth: AuthState::Unknown,
            data_hashes: BTreeMap::new(),
        }
    }

    /// The endpoint status of a member.
    pub(crate) fn status(&self, name: &MemberName) -> Option<&EndpointStatus> {
        self.members.get(name)?.status.as_ref()
    }

    /// Whether every call to every member succeeded.
    pub(crate) fn all_reachable(&self) -> bool {
        self.members.values().all(|member| member.error.is_none())
    }

    /// The target of an enabled downgrade, if a member reports one.
    pub(crate) fn downgrade_target(&self) -> Option<Release> {
        let mut statuses = self.members.values().filter_map(|member| member.status.as_ref());
        statuses.find_map(|status| Release::parse(&status.downgrade_target))
    }

    /// The highest raft index of any member.
    pub(crate) fn max_raft_index(&self) -> u64 {
        let statuses = self.members.values().filter_map(|member| member.status.as_ref());
        statuses.map(|status| status.raft_index).max().unwrap_or(0)
    }
}

/// The member that a peer URL belongs to: the first label of its host.
pub(crate) fn member_of_peer_url(url: &str) -> Option<MemberName> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['.', ':', '/']).next()?;
    (!host.is_empty()).then(|| MemberName(host.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_name_is_the_first_label_of_the_peer_url() {
        let name = |url| member_of_peer_url(url).map(|member| member.0);
        assert_eq!(name("https://main-a1b2c.main.default.svc:2380").as_deref(), Some("main-a1b2c"));
        assert_eq!(name("http://main-a1b2c:2380").as_deref(), Some("main-a1b2c"));
        assert_eq!(name("main-a1b2c"), None);
        assert_eq!(name("https://"), None);
    }
}
