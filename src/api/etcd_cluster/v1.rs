//! EtcdCluster v1: the hub. It says everything that the older versions can say, and it is stored.
//! Comes in: nothing. Goes out: the types of `spec`, and what the definition needs to know.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod status;

use kube::CustomResource;

use crate::api::destination::{Destination, Origin, Retention};
use crate::api::etcd_cluster::rules;
use crate::api::pod::affinity::Affinity;
use crate::api::pod::{Annotations, Image, Labels, LocalRef, Resources, Toleration};
use crate::api::shape::{choice, shape};
use crate::api::texts::{
    ClassName, EtcdVersion, ObjectName, Quota, Schedule, Size, TimeZone, VolumeSize,
};
use status::EtcdClusterStatus;

shape! {
    /// What the cluster should be.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1",
        kind = "EtcdCluster",
        plural = "etcdclusters",
        namespaced,
        status = "EtcdClusterStatus",
        shortname = "etcd",
        shortname = "etcdclus",
        category = "quorate",
        doc = "An etcd cluster: members that agree, with their disks, certificates and backups.",
        label("servicebinding.io/provisioned-service", "true"),
        scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
        printcolumn(name = "Size", type_ = "integer", json_path = ".spec.replicas", description = "How many members there should be."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "How many members are healthy voters."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "The etcd release that runs."),
        printcolumn(name = "Leader", type_ = "string", json_path = ".status.leader", description = "The member that leads."),
        printcolumn(name = "Last Backup", type_ = "date", json_path = ".status.backup.lastBackupTime", description = "When the last backup was finished."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "In one word, whether all is well."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
        printcolumn(name = "Target", type_ = "string", priority = 1, json_path = ".spec.version", description = "The etcd release that is wanted."),
        printcolumn(name = "Next Backup", type_ = "string", priority = 1, json_path = ".status.backup.nextBackupTime", description = "When the next backup begins."),
        printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "In a sentence, how it is."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = rules::V1.rules()))]
    pub struct EtcdClusterSpec {
        /// How many members there should be: 3 or 5 for most, 1 to try things out, 7 at most. An even number tolerates no
        /// more failures than one less. 0 lets the cluster sleep: the members' disks stay, nothing runs.
        #[schemars(range(min = 0, max = 7), extend("default" = 3))]
        replicas: i32,
        /// The etcd release, such as `3.6.16`. A running cluster is upgraded one minor release at a time.
        version: EtcdVersion,
        /// Where the image comes from. Its tag is always `v` and the version.
        image: Image,
        /// What each member keeps its data on.
        storage: Storage,
        /// Settings of etcd itself, the same in every version of etcd.
        options: Options,
        /// How connections are protected. TLS is on, with a certificate authority of the cluster's own, unless said otherwise.
        tls: Tls,
        /// Whether clients must be known to etcd.
        auth: Auth,
        /// Where members may run. Without a word, they avoid each other's nodes and zones if they can.
        placement: Placement,
        /// Labels and annotations for the members' pods.
        pod_metadata: PodMetadata,
        /// What each member asks for and may not exceed.
        resources: Resources,
        /// How a new version is brought in.
        upgrade: Upgrade,
        /// When a member is given up.
        repair: Repair,
        /// When a member's file is rewritten to give back free space.
        defragment: Defragment,
        /// Backups on a schedule.
        backup: Backup,
        /// The data to begin with. Only when the cluster is made.
        restore: Restore,
        /// Whether the operator leaves the cluster alone. Its status goes on to be reported.
        paused: bool,
        /// What becomes of the members and their disks when this object is deleted: `Retain` (the default) removes the
        /// members and keeps the disks, `Delete` removes both, `SnapshotThenDelete` makes a last backup first,
        /// `Disconnect` lets everything run on, unmanaged.
        deletion_policy: DeletionPolicy,
    }
}

choice! {
    /// What data is kept on.
    pub enum Medium {
        /// A PersistentVolumeClaim for each member.
        Disk = "Disk",
        /// The node's memory: fast, and gone with the pod.
        Memory = "Memory",
    }
}

shape! {
    /// What each member keeps its data on.
    pub struct Storage {
        /// How much space each member has. It may grow, and never shrink.
        size: VolumeSize,
        /// The StorageClass of the volumes; the cluster's default if it is left out. It cannot be changed later.
        class_name: ClassName,
        /// `Disk` (the default), or `Memory` for data that may be lost. It cannot be changed later.
        medium: Medium,
    }
}

shape! {
    /// Settings of etcd. Each has a safe default; `status.tuning` says which value is used and why.
    pub struct Options {
        /// How large the data may grow before etcd takes no more writes, at most 8Gi. It is derived from the disk if it is left out.
        quota: Quota,
        /// How old revisions are forgotten.
        auto_compaction: AutoCompaction,
        /// After how many writes a member makes a snapshot of its own state.
        #[schemars(range(min = 1000, max = 10_000_000))]
        snapshot_count: i32,
        /// How often the leader is heard, in milliseconds. It is derived from the time between members if it is left out.
        #[schemars(range(min = 10, max = 10_000))]
        heartbeat_milliseconds: i32,
        /// How long members wait for the leader before they elect another, in milliseconds: at least five times the heartbeat.
        #[schemars(range(min = 50, max = 50_000))]
        election_milliseconds: i32,
    }
}

choice! {
    /// By what old revisions are forgotten.
    pub enum CompactionMode {
        /// By their age.
        Periodic = "Periodic",
        /// By their number.
        Revision = "Revision",
    }
}

shape! {
    /// How old revisions are forgotten.
    #[schemars(extend("x-kubernetes-validations" = rules::compaction()))]
    pub struct AutoCompaction {
        /// `Periodic` (the default) by age, `Revision` by number.
        mode: CompactionMode,
        /// For `Periodic`: how many seconds of history are kept.
        #[schemars(range(min = 60, max = 2_592_000))]
        retention_seconds: i32,
        /// For `Revision`: how many revisions are kept.
        #[schemars(range(min = 100, max = 100_000_000))]
        retention_revisions: i32,
    }
}

shape! {
    /// How connections are protected.
    pub struct Tls {
        /// Connections of clients to members.
        client: TlsSide,
        /// Connections between members.
        peer: TlsSide,
    }
}

choice! {
    /// Where certificates come from.
    pub enum TlsSource {
        /// The operator keeps a certificate authority for the cluster.
        Managed = "Managed",
        /// cert-manager issues them.
        CertManager = "CertManager",
        /// They are in a Secret of yours.
        Secret = "Secret",
        /// There are none: connections are in the clear.
        Disabled = "Disabled",
    }
}

shape! {
    /// One side of TLS.
    #[schemars(extend("x-kubernetes-validations" = rules::tls_side()))]
    pub struct TlsSide {
        /// `Managed` (the default): the operator keeps a certificate authority for the cluster. `CertManager`: an issuer of
        /// cert-manager signs. `Secret`: the certificates are yours. `Disabled`: connections are in the clear.
        source: TlsSource,
        /// For `CertManager`: who signs.
        issuer_ref: IssuerRef,
        /// For `Secret`: the Secret with `ca.crt`, `tls.crt` and `tls.key` for all members. The certificate names
        /// `*.<namespace>.svc` and is good for servers and clients. For clients, `client.crt` and `client.key` are handed on
        /// to applications, if they are there.
        secret_ref: LocalRef,
    }
}

choice! {
    /// The kinds of issuers of cert-manager.
    pub enum IssuerKind {
        /// An issuer of the namespace.
        Issuer = "Issuer",
        /// An issuer of the whole cluster.
        ClusterIssuer = "ClusterIssuer",
    }
}

shape! {
    /// An issuer of cert-manager.
    #[schemars(extend("required" = ["name"]))]
    pub struct IssuerRef {
        /// Its name.
        name: ObjectName,
        /// `Issuer` (the default), or `ClusterIssuer`.
        kind: IssuerKind,
    }
}

shape! {
    /// Whether clients must be known to etcd.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "!has(self.enabled) || !self.enabled || has(self.rootSecretRef)",
        "message": "needs rootSecretRef when auth is enabled: a Secret with `password` for the user root",
    }]))]
    pub struct Auth {
        /// Whether etcd asks for a user and password, or for a certificate that names one.
        enabled: bool,
        /// A Secret with `password`, for the user `root`.
        root_secret_ref: LocalRef,
    }
}

shape! {
    /// Where members may run.
    pub struct Placement {
        /// Labels that a node must have.
        #[schemars(extend("maxProperties" = 32))]
        node_selector: Labels,
        /// Taints of nodes that the members put up with.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        tolerations: Vec<Toleration>,
        /// Where members like to be. It replaces the default, which keeps them on different nodes and zones if possible.
        affinity: Affinity,
    }
}

shape! {
    /// Labels and annotations for pods.
    pub struct PodMetadata {
        /// Labels. Those of Kubernetes' and of ours cannot be set here.
        #[schemars(extend("maxProperties" = 32))]
        labels: Labels,
        /// Annotations.
        #[schemars(extend("maxProperties" = 32))]
        annotations: Annotations,
    }
}

shape! {
    /// How a new version is brought in.
    pub struct Upgrade {
        /// Whether a backup is made before the first member is touched. It needs `backup.destination`.
        snapshot_first: bool,
    }
}

shape! {
    /// When a member is given up.
    pub struct Repair {
        /// How many times a member that keeps failing is started again before it is replaced by an empty one.
        #[schemars(range(min = 1, max = 100))]
        recreate_attempts: i32,
        /// For how many seconds a member may be gone before it is replaced.
        #[schemars(range(min = 60, max = 86_400))]
        replace_after_seconds: i32,
    }
}

shape! {
    /// When a member's file is rewritten to give back free space. One member at a time, the leader last.
    pub struct Defragment {
        /// When to look, such as `0 4 * * 0`; all the time, if it is left out.
        schedule: Schedule,
        /// The schedule's time zone; UTC if it is left out.
        time_zone: TimeZone,
        /// How much space must be free in the file for it to be worth the pause; a tenth of the file, if only a schedule is given.
        reclaim_above: Size,
    }
}

shape! {
    /// Backups on a schedule.
    pub struct Backup {
        /// When a backup is made, such as `0 3 * * *`.
        schedule: Schedule,
        /// The time zone of the schedules; UTC if it is left out.
        time_zone: TimeZone,
        /// Whether the schedules rest.
        suspend: bool,
        /// Where backups go.
        destination: Destination,
        /// How long they are kept.
        retention: Retention,
        /// When the newest backup is restored into a throw-away etcd to prove that it can be.
        verify_schedule: Schedule,
    }
}

shape! {
    /// The data to begin with.
    #[schemars(extend("required" = ["from"]))]
    pub struct Restore {
        /// What to restore.
        from: Origin,
    }
}

choice! {
    /// What becomes of a cluster whose object is deleted.
    pub enum DeletionPolicy {
        /// Members go, disks stay.
        Retain = "Retain",
        /// Members and disks go.
        Delete = "Delete",
        /// A last backup is made, then members and disks go.
        SnapshotThenDelete = "SnapshotThenDelete",
        /// Everything runs on, unmanaged.
        Disconnect = "Disconnect",
    }
}
