//! What members of an etcd cluster say when they are asked.
//! Comes in: nothing. Goes out: their answers, as plain data. May touch: std.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// What a member says of itself. It may be behind the others and not know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointStatus {
    /// The cluster that it is in.
    pub cluster: u64,
    /// Its own ID.
    pub member: u64,
    /// Whom it takes for the leader; 0 is nobody.
    pub leader: u64,
    /// The etcd release that it runs.
    pub version: String,
    /// The release whose form its data has; nothing before 3.6.
    pub storage_version: String,
    /// The release that etcd was told to go down to; nothing if it was not, and nothing before 3.6.
    pub downgrade_target: String,
    /// Whether it only listens.
    pub is_learner: bool,
    /// How far its log goes.
    pub raft_index: u64,
    /// How far it has acted on it.
    pub applied_index: u64,
    /// Its revision.
    pub revision: i64,
    /// The size of its file, in bytes.
    pub db_size: i64,
    /// How much of that is in use.
    pub db_in_use: i64,
}

/// A member as another lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEntry {
    /// Its ID.
    pub id: u64,
    /// Where the others reach it. It is there before the member has ever started.
    pub peer_urls: Vec<String>,
    /// Whether it only listens.
    pub is_learner: bool,
}

/// What a member has, up to one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHash {
    /// The same for the same data.
    pub hash: u32,
    /// What it has forgotten. Only those who have forgotten the same can be compared.
    pub compacted: i64,
}

/// What a member raised the alarm about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The member; 0 if nobody knows which.
    pub member: u64,
    /// etcd's `alarm_type` for it.
    pub alarm_type: &'static str,
}
