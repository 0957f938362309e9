//! EtcdCluster v1, what the operator reports.
//! Comes in: nothing. Goes out: the types of `status`.
//! May touch: the vocabulary of `api`. Figures that always move change in coarse steps here; the
//! fine ones are metrics.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::condition::Condition;
use crate::api::field::WIDEST;
use crate::api::pod::LocalRef;
use crate::api::shape::{choice, shape};
use crate::api::texts::{
    HexId, KeptText, Location, MemberName, MemberUrl, ObjectName, Phrase, ReportedVersion,
    Selector, Sentence, Time, Word,
};

shape! {
    /// What the cluster is.
    pub struct EtcdClusterStatus {
        /// The generation of the spec that this status is about.
        #[schemars(range(min = 0, max = WIDEST))]
        observed_generation: i64,
        /// The cluster's ID. It is set once and never changes.
        cluster_id as "clusterID": HexId,
        /// Who founds the cluster. It is set once, before the first of them is made.
        founding: Founding,
        /// The etcd release that runs: the oldest one, while members differ.
        current_version: ReportedVersion,
        /// The etcd release that is being brought in.
        target_version: ReportedVersion,
        /// Who has written to etcd's log, and from where on. It says when a release can start that does not read what an older one wrote.
        log: LogStatus,
        /// How many members there are.
        #[schemars(range(min = 0, max = 100))]
        replicas: i32,
        /// How many of them are healthy voters.
        #[schemars(range(min = 0, max = 100))]
        ready_replicas: i32,
        /// How many of them are as the spec wants them: with the release that is being brought in, and with its options.
        #[schemars(range(min = 0, max = 100))]
        updated_members: i32,
        /// The labels by which the members' pods are found.
        selector: Selector,
        /// The member that leads.
        leader: ObjectName,
        /// The URLs for clients.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        endpoints: Vec<MemberUrl>,
        /// The Service for clients.
        service_name: ObjectName,
        /// The Secret with all that an application needs to connect.
        binding: LocalRef,
        /// How applications are told to connect, and since when.
        clients: ClientLine,
        /// The highest revision ever seen. A restore goes beyond it, so that no watcher sees time run backwards.
        #[schemars(range(min = 0, max = WIDEST))]
        highest_revision: i64,
        /// The members.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        members: Vec<MemberStatus>,
        /// A change that members do not start with, and what they are made of instead. It holds until that part of the spec is changed.
        taken_back: TakenBack,
        /// How the members' files are looked after.
        upkeep: UpkeepStatus,
        /// What comes next, and why.
        plan: PlanStatus,
        /// How far a long piece of work has come.
        progress: Progress,
        /// How backups are doing.
        backup: BackupStatus,
        /// Which settings the operator chose, and why.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["option"]))]
        tuning: Vec<Tuned>,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

shape! {
    /// Who founds a cluster.
    pub struct Founding {
        /// The members that do.
        #[schemars(length(max = 7), extend("x-kubernetes-list-type" = "set"))]
        members: Vec<MemberName>,
        /// Whether any of them may have run. A member that is missing since then is not made anew.
        begun: bool,
        /// Whether they are given up: too few of them can still become a cluster, or the spec has changed before they did. Nobody has
        /// been given a way to write to them, so all of them go, and others found the cluster.
        abandoned: bool,
    }
}

shape! {
    /// How applications are told to connect.
    pub struct ClientLine {
        /// `https`, or `http` for connections in the clear.
        scheme: Word,
        /// When they were first told so. For a while members take those who come in the old way, too.
        since: Time,
    }
}

shape! {
    /// Who has written to etcd's log.
    pub struct LogStatus {
        /// The oldest minor version that has written to it, such as `3.6`.
        writer: ReportedVersion,
        /// The entry from which on no older one has.
        #[schemars(range(min = 0, max = WIDEST))]
        since: i64,
    }
}

shape! {
    /// A change that was taken back.
    pub struct TakenBack {
        /// A word for what the spec asks for.
        refused: Word,
        /// What members are made of instead, as JSON.
        instead: KeptText,
        /// The member that did not start.
        member: ObjectName,
        /// Why it did not.
        reason: Sentence,
        /// The generation of the spec at that time.
        #[schemars(range(min = 0, max = WIDEST))]
        generation: i64,
    }
}

shape! {
    /// How the members' files are looked after.
    pub struct UpkeepStatus {
        /// Why files are rewritten, or were last: `Schedule`, `Threshold` or `NoSpace`.
        occasion: Word,
        /// When that began.
        began: Time,
        /// When it was over; absent while it goes on.
        ended: Time,
        /// The members that had their turn, in order. One whose file is still too large has a second one.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        turns: Vec<MemberName>,
        /// Until when nobody wonders that the last of them is silent: who rewrites its file answers nobody.
        until: Time,
        /// The revision up to which history was given up to make room.
        #[schemars(range(min = 0, max = WIDEST))]
        compacted: i64,
        /// When files are looked at next, by the schedule.
        next: Time,
    }
}

choice! {
    /// What a member is to the others.
    pub enum MemberRole {
        /// It leads.
        Leader = "Leader",
        /// It votes.
        Voter = "Voter",
        /// It catches up and does not vote yet.
        Learner = "Learner",
        /// It could not be found out.
        Unknown = "Unknown",
    }
}

shape! {
    /// One member.
    #[schemars(extend("required" = ["name"]))]
    pub struct MemberStatus {
        /// Its name, which is also its pod's.
        name: ObjectName,
        /// Its ID in etcd.
        id: HexId,
        /// What it is to the others: `Leader`, `Voter`, `Learner` or `Unknown`.
        role: MemberRole,
        /// The etcd release it runs.
        version: ReportedVersion,
        /// How large its file is, in bytes, in coarse steps.
        #[schemars(range(min = 0, max = WIDEST))]
        db_size: i64,
        /// How much of the file is in use, in bytes, in coarse steps.
        #[schemars(range(min = 0, max = WIDEST))]
        db_in_use: i64,
        /// How many entries it is behind the leader, in coarse steps.
        #[schemars(range(min = 0, max = WIDEST))]
        raft_lag: i64,
        /// Whether it answers as it should.
        healthy: bool,
        /// Alarms it has raised, such as `NOSPACE`.
        #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"))]
        alarms: Vec<Word>,
    }
}

shape! {
    /// What comes next.
    pub struct PlanStatus {
        /// The next step.
        step: Phrase,
        /// The rule that asks for it.
        because: Sentence,
        /// What it waits for.
        blocked_by: Sentence,
    }
}

shape! {
    /// How far a long piece of work has come.
    pub struct Progress {
        /// What is being done.
        operation: Word,
        /// Where it is, such as `3/7`.
        step: Word,
        /// How much of it is done.
        #[schemars(range(min = 0, max = 100))]
        percent: i32,
        /// How many bytes are done.
        #[schemars(range(min = 0, max = WIDEST))]
        bytes_done: i64,
        /// How many bytes there are.
        #[schemars(range(min = 0, max = WIDEST))]
        bytes_total: i64,
        /// The same in a sentence.
        message: Sentence,
    }
}

shape! {
    /// How backups are doing.
    pub struct BackupStatus {
        /// When the last good backup was finished.
        last_backup_time: Time,
        /// Where it is.
        location: Location,
        /// The etcd release it was made of.
        version: ReportedVersion,
        /// When the newest proof by restoring was made.
        last_verified_time: Time,
        /// When the next backup begins.
        next_backup_time: Time,
        /// Why the last attempt failed; absent if it did not.
        last_error: Sentence,
    }
}

shape! {
    /// One setting that the operator chose.
    #[schemars(extend("required" = ["option"]))]
    pub struct Tuned {
        /// The setting.
        option: Word,
        /// Its value.
        value: Phrase,
        /// Why.
        why: Sentence,
    }
}
