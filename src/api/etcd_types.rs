//! Responses of the etcd API as plain data.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Endpoint status of a member. The member may lag behind the others without knowing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Cluster ID.
    pub cluster: u64,
    /// Member ID.
    pub member: u64,
    /// Member ID of the leader as this member knows it; 0 if there is none.
    pub leader: u64,
    /// etcd version of the member.
    pub version: String,
    /// Storage version of the data; empty before 3.6.
    pub storage_version: String,
    /// Target version of an enabled downgrade; empty if there is none, and before 3.6.
    pub downgrade_target: String,
    /// Whether the member is a learner.
    pub is_learner: bool,
    /// Last raft index.
    pub raft_index: u64,
    /// Last applied raft index.
    pub applied_index: u64,
    /// Revision.
    pub revision: i64,
    /// Size of the database file in bytes.
    pub db_size: i64,
    /// Bytes of the database file that are in use.
    pub db_in_use: i64,
}

/// Entry of the member list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEntry {
    /// Member ID.
    pub id: u64,
    /// Peer URLs. They are set before the member has started for the first time.
    pub peer_urls: Vec<String>,
    /// Whether the member is a learner.
    pub is_learner: bool,
}

/// Hash of the data of a member up to one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHash {
    /// Hash; equal for equal data.
    pub hash: u32,
    /// Compacted revision. Hashes are comparable only if it is equal.
    pub compacted: i64,
}

/// Active alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Member ID; 0 if unknown.
    pub member: u64,
    /// Type of the alarm, such as `NOSPACE`.
    pub alarm_type: &'static str,
}
