//! What the members of a cluster said when they were asked.
//! Comes in: nothing. Goes out: `EtcdProbe`. May touch: `api`; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use crate::api::etcd_types::{Alarm, EndpointStatus, MemberEntry};
use crate::api::etcd_version::Release;
use crate::etcd_cluster::state::{AuthState, MemberName, Reading};

/// Everything that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EtcdProbe {
    /// Each member that has an address, by its name.
    pub(crate) members: BTreeMap<MemberName, MemberProbe>,
    /// What a quorum agrees on; unknown if nobody could be asked, or no quorum answers.
    pub(crate) quorum: Reading<QuorumView>,
    /// Whether etcd asks for users, beside what is wanted.
    pub(crate) auth: AuthState,
    /// Which data each member has, if that was asked for: the same number is the same data.
    pub(crate) data_hashes: BTreeMap<MemberName, u64>,
}

/// What one member said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberProbe {
    /// What it says of itself.
    pub(crate) status: Option<EndpointStatus>,
    /// Whether a quorum agreed with it just now.
    pub(crate) linearizable_read_ok: bool,
    /// Why it did not answer, in a few words.
    pub(crate) error: Option<String>,
}

/// What a quorum agrees on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuorumView {
    /// Who was asked: one that had just read with a quorum.
    pub(crate) queried_member: MemberName,
    /// The cluster's ID.
    pub(crate) cluster_id: u64,
    /// Who leads; 0 is nobody.
    pub(crate) leader: u64,
    /// Everybody.
    pub(crate) members: Vec<MemberEntry>,
    /// What is wrong.
    pub(crate) alarms: Vec<Alarm>,
    /// The revision that was agreed on.
    pub(crate) revision: i64,
}

impl EtcdProbe {
    /// Nobody was asked.
    pub(crate) const fn none() -> Self {
        Self {
            members: BTreeMap::new(),
            quorum: Reading::Unknown,
            auth: AuthState::Unknown,
            data_hashes: BTreeMap::new(),
        }
    }

    /// What a member says of itself.
    pub(crate) fn status(&self, name: &MemberName) -> Option<&EndpointStatus> {
        self.members.get(name)?.status.as_ref()
    }

    /// Whether everybody who was asked has answered.
    pub(crate) fn all_reachable(&self) -> bool {
        self.members.values().all(|it| it.error.is_none())
    }

    /// What etcd was told to go down to, if anybody says so.
    pub(crate) fn downgrade_target(&self) -> Option<Release> {
        let mut said = self.members.values().filter_map(|it| it.status.as_ref());
        said.find_map(|it| Release::parse(&it.downgrade_target))
    }

    /// How far the furthest log goes.
    pub(crate) fn max_raft_index(&self) -> u64 {
        self.members
            .values()
            .filter_map(|it| it.status.as_ref())
            .map(|it| it.raft_index)
            .max()
            .unwrap_or(0)
    }
}

/// The member that a peer URL belongs to: the first word of its host.
pub(crate) fn member_of_peer_url(url: &str) -> Option<MemberName> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['.', ':', '/']).next()?;
    (!host.is_empty()).then(|| MemberName(host.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_known_by_its_peer_url() {
        let name = |url| member_of_peer_url(url).map(|it| it.0);
        assert_eq!(name("https://main-a1b2c.main.default.svc:2380").as_deref(), Some("main-a1b2c"));
        assert_eq!(name("http://main-a1b2c:2380").as_deref(), Some("main-a1b2c"));
        assert_eq!(name("main-a1b2c"), None);
        assert_eq!(name("https://"), None);
    }
}
