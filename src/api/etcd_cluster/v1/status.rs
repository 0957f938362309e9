//! EtcdCluster v1: the status that the operator reports.
//! Values that change all the time (sizes, indexes, lag) are rounded here, so that an idle cluster
//! causes no writes; the exact values are metrics.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::condition::Condition;
use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::{object, string_enum};
use crate::api::pod::LocalRef;
use crate::api::strings::{
    HexId, Location, MemberName, MemberUrl, Message, ObjectName, OpaqueText, ReportedVersion,
    Selector, ShortString, Time, Token,
};

object! {
    /// Observed state of the cluster.
    pub struct EtcdClusterStatus {
        /// Generation of the spec that this status refers to.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        observed_generation: i64,
        /// etcd cluster ID. Set once when the cluster is bootstrapped and never changed.
        cluster_id as "clusterID": HexId,
        /// Initial members of the cluster. Recorded before the first of them is created.
        bootstrap: BootstrapStatus,
        /// etcd version in use: the oldest one while members differ.
        current_version: ReportedVersion,
        /// etcd version that is being rolled out.
        target_version: ReportedVersion,
        /// Oldest etcd minor version with entries in the raft log. A release that cannot read
        /// entries of an older minor version is started only when none are left.
        raft_log: RaftLogStatus,
        /// Number of members.
        #[schemars(range(min = 0, max = 100))]
        replicas: i32,
        /// Number of members that are healthy voters.
        #[schemars(range(min = 0, max = 100))]
        ready_replicas: i32,
        /// Number of members that run the current pod template.
        #[schemars(range(min = 0, max = 100))]
        updated_replicas: i32,
        /// Label selector of the members' pods, for the scale subresource.
        selector: Selector,
        /// Name of the member that is the leader.
        leader: ObjectName,
        /// Client URLs of the members.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        endpoints: Vec<MemberUrl>,
        /// Name of the Service for clients.
        service_name: ObjectName,
        /// Secret with everything an application needs to connect (Service Binding specification).
        binding: LocalRef,
        /// URL scheme that is advertised to clients.
        client_tls as "clientTLS": ClientTlsStatus,
        /// Upper bound of revisions seen; a restore bumps the revision beyond it.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        highest_revision: i64,
        /// Observed state of each member.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        members: Vec<MemberStatus>,
        /// Spec change that was rolled back, and the template in use. It is kept until that part
        /// of the spec is changed.
        rollback: RollbackStatus,
        /// Running or last defragmentation, and the next scheduled one.
        defragmentation: DefragmentationStatus,
        /// Next step of the operator and the reason for it.
        plan: PlanStatus,
        /// Progress of a long-running operation.
        progress: Progress,
        /// State of scheduled backups. Not set in this release.
        backup: BackupStatus,
        /// Settings that the operator derived because the spec does not set them.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["option"]))]
        tuning: Vec<TuningEntry>,
        /// Conditions of the cluster.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

object! {
    /// Bootstrap of the cluster.
    pub struct BootstrapStatus {
        /// Names of the initial members.
        #[schemars(length(max = 7), extend("x-kubernetes-list-type" = "set"))]
        members: Vec<MemberName>,
        /// Whether an initial member may have started. From then on missing members are not
        /// recreated.
        started: bool,
        /// Whether the bootstrap was aborted: too few initial members are left to form a quorum,
        /// or the spec changed before they did. No client had access yet, so all of them are
        /// deleted and the bootstrap starts again with new members.
        aborted: bool,
    }
}

object! {
    /// URL scheme that is advertised to clients.
    pub struct ClientTlsStatus {
        /// `https`, or `http` for plaintext.
        scheme: Token,
        /// Time at which this scheme was first advertised. Members accept connections with the
        /// previous scheme for an overlap period after it.
        last_transition_time: Time,
    }
}

object! {
    /// Versions that wrote to the raft log.
    pub struct RaftLogStatus {
        /// Oldest etcd minor version that wrote to the raft log, such as `3.6`.
        oldest_writer: ReportedVersion,
        /// Raft index from which on no older minor version has written.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        since_index: i64,
    }
}

object! {
    /// Spec change that was rolled back.
    pub struct RollbackStatus {
        /// Hash of the part of the spec that was rolled back.
        spec_hash: Token,
        /// Part of the spec that the pods are created from instead, as JSON.
        previous_template: OpaqueText,
        /// Name of the member that did not start with the change.
        member: ObjectName,
        /// Reason for which the member did not start.
        reason: Message,
        /// Generation of the spec that was rolled back.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        observed_generation: i64,
    }
}

object! {
    /// Running or last defragmentation.
    pub struct DefragmentationStatus {
        /// Trigger of the running or last defragmentation: `Schedule`, `Threshold` or `NoSpace`.
        trigger: Token,
        /// Start time of the running or last defragmentation.
        start_time: Time,
        /// Completion time of the last defragmentation; absent while one is running.
        completion_time: Time,
        /// Members that were defragmented, in order. A member whose database is still too large
        /// is listed a second time.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        members: Vec<MemberName>,
        /// Deadline for the member that is defragmented now, the last in `members`; the member is
        /// unavailable until it finishes.
        deadline: Time,
        /// Revision up to which the operator compacted the database to reclaim space.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        compacted_revision: i64,
        /// Time of the next scheduled defragmentation.
        next_schedule_time: Time,
    }
}

string_enum! {
    /// Role of a member in the cluster.
    pub enum MemberRole {
        /// Leader.
        Leader = "Leader",
        /// Voting member that is not the leader.
        Voter = "Voter",
        /// Non-voting member that is catching up.
        Learner = "Learner",
        /// The role could not be determined.
        Unknown = "Unknown",
    }
}

object! {
    /// Observed state of a member.
    #[schemars(extend("required" = ["name"]))]
    pub struct MemberStatus {
        /// Name of the member and of its pod.
        name: ObjectName,
        /// etcd member ID.
        id: HexId,
        /// Role of the member: `Leader`, `Voter`, `Learner` or `Unknown`.
        role: MemberRole,
        /// etcd version that the member runs.
        version: ReportedVersion,
        /// Size of the database file in bytes, rounded.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        db_size: i64,
        /// Bytes of the database file that are in use, rounded.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        db_in_use: i64,
        /// Number of raft entries by which the member is behind the leader, rounded.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        raft_lag: i64,
        /// Whether the member is healthy.
        healthy: bool,
        /// Active etcd alarms of the member, such as `NOSPACE`.
        #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"))]
        alarms: Vec<Token>,
    }
}

object! {
    /// Next step of the operator.
    pub struct PlanStatus {
        /// Next step.
        step: ShortString,
        /// Reason for the step.
        reason: Message,
        /// Error of the last attempt; absent if it succeeded.
        error: Message,
    }
}

object! {
    /// Progress of a long-running operation.
    pub struct Progress {
        /// Name of the operation.
        operation: Token,
        /// Current step and number of steps, such as `3/7`.
        step: Token,
        /// Completed part in percent.
        #[schemars(range(min = 0, max = 100))]
        percent: i32,
        /// Number of bytes processed.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        bytes_done: i64,
        /// Total number of bytes.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        bytes_total: i64,
        /// Human-readable progress.
        message: Message,
    }
}

object! {
    /// State of scheduled backups.
    pub struct BackupStatus {
        /// Completion time of the last successful backup.
        last_backup_time: Time,
        /// URL of the last successful backup.
        location: Location,
        /// etcd version that the last successful backup was taken from.
        version: ReportedVersion,
        /// Time at which a backup was last verified by restoring it.
        last_verified_time: Time,
        /// Time of the next scheduled backup.
        next_backup_time: Time,
        /// Error of the last attempt; absent if it succeeded.
        last_error: Message,
    }
}

object! {
    /// Setting that the operator derived.
    #[schemars(extend("required" = ["option"]))]
    pub struct TuningEntry {
        /// Name of the etcd flag or environment variable.
        option: Token,
        /// Value in use.
        value: ShortString,
        /// Reason for the value.
        reason: Message,
    }
}
