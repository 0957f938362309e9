//! EtcdCluster v1: the hub and storage version. It has every field of the older versions.
//! Every doc comment of a field is printed by `kubectl explain`; a default named there is set by
//! `defaults`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod status;

use kube::CustomResource;

use crate::api::destination::{BackupSource, Destination, Retention};
use crate::api::etcd_cluster::cel_rules;
use crate::api::macros::{object, string_enum};
use crate::api::pod::affinity::Affinity;
use crate::api::pod::{Annotations, Image, Labels, LocalRef, Resources, Toleration};
use crate::api::strings::{
    ClassName, EtcdVersion, ObjectName, Quota, Schedule, Size, TimeZone, VolumeSize,
};
use status::EtcdClusterStatus;

object! {
    /// Desired state of the cluster.
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
        doc = "etcd cluster with its members, volumes and certificates.",
        label("servicebinding.io/provisioned-service", "true"),
        scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
        printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "Desired number of members."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Number of members that are healthy voters."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "etcd version in use."),
        printcolumn(name = "Leader", type_ = "string", json_path = ".status.leader", description = "Member that is the leader."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Reason of the Ready condition."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
        printcolumn(name = "Up-To-Date", type_ = "integer", priority = 1, json_path = ".status.updatedReplicas", description = "Number of members that run the current pod template."),
        printcolumn(name = "Target", type_ = "string", priority = 1, json_path = ".spec.version", description = "Desired etcd version."),
        printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "Message of the Ready condition."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = cel_rules::V1.rules()))]
    pub struct EtcdClusterSpec {
        /// Number of etcd members, 0 to 7; 3 or 5 recommended. An even number tolerates no more
        /// failures than one member less. 0 hibernates the cluster: pods are deleted, PVCs are
        /// kept. Default: 3.
        #[schemars(range(min = 0, max = 7), extend("default" = 3))]
        replicas: i32,
        /// etcd version, such as `3.6.16`. A cluster is upgraded one minor version at a time.
        version: EtcdVersion,
        /// Container image. The tag is always `v` followed by the version. Default:
        /// `gcr.io/etcd-development/etcd`.
        image: Image,
        /// Storage of each member.
        storage: Storage,
        /// Settings of etcd. Unset ones are derived and reported in `status.tuning`.
        options: Options,
        /// TLS of client and peer connections. Default: TLS with a CA that the operator manages.
        tls: Tls,
        /// etcd authentication. Default: disabled.
        auth: Auth,
        /// Scheduling of the members' pods. Default: different nodes and zones are preferred.
        placement: Placement,
        /// Additional labels and annotations of the members' pods.
        pod_metadata: PodMetadata,
        /// Resource requests and limits of each member.
        resources: Resources,
        /// Settings of rolling updates.
        upgrade: Upgrade,
        /// When an unhealthy member is replaced.
        repair: Repair,
        /// Schedule and threshold for defragmentation, one member at a time, leader last.
        defragment: Defragment,
        /// Scheduled backups. Not supported in this release: the field is rejected.
        backup: Backup,
        /// Backup to bootstrap the cluster from. It can only be set when the cluster is created.
        /// Not supported in this release: the field is rejected.
        restore: Restore,
        /// Pauses reconciliation; status is still updated. Default: false.
        paused: bool,
        /// What happens to members and PVCs when this object is deleted: `Retain` deletes the
        /// members and keeps the PVCs, `Delete` deletes both, `Disconnect` leaves everything
        /// running, unmanaged. `SnapshotThenDelete` takes a last backup and then deletes both; it
        /// is not supported in this release and rejected. Default: `Retain`.
        deletion_policy: DeletionPolicy,
    }
}

string_enum! {
    /// Medium of the data.
    pub enum Medium {
        /// One PersistentVolumeClaim for each member.
        Disk = "Disk",
        /// Memory of the node (emptyDir): fast, lost with the pod.
        Memory = "Memory",
    }
}

object! {
    /// Storage of each member.
    pub struct Storage {
        /// Size of the volume of each member. It can be increased and not decreased. Default:
        /// 10Gi, or 1Gi with medium `Memory`.
        size: VolumeSize,
        /// StorageClass of the PVCs. Immutable. Default: the default StorageClass.
        class_name: ClassName,
        /// `Disk`, or `Memory` for data that may be lost. Immutable. Default: `Disk`.
        medium: Medium,
    }
}

object! {
    /// Settings of etcd. Each has a safe default; `status.tuning` lists the derived values and the
    /// reasons.
    pub struct Options {
        /// etcd `--quota-backend-bytes`, at most 8Gi: database size at which etcd rejects writes.
        /// Default: half of the volume without the WAL.
        quota: Quota,
        /// Auto compaction of old revisions. Default: revisions are kept for one hour.
        auto_compaction: AutoCompaction,
        /// etcd `--snapshot-count`: committed raft entries between two snapshots to disk. Default:
        /// 10000.
        #[schemars(range(min = 1000, max = 10_000_000))]
        snapshot_count: i32,
        /// etcd `--heartbeat-interval` in milliseconds. Default: a tenth of the election timeout,
        /// at most 100; derived from peer RTT, at least 100, if both are unset.
        #[schemars(range(min = 10, max = 10_000))]
        heartbeat_milliseconds: i32,
        /// etcd `--election-timeout` in milliseconds, at least five times the heartbeat interval.
        /// Default: ten times the heartbeat interval, at least 1000.
        #[schemars(range(min = 50, max = 50_000))]
        election_milliseconds: i32,
    }
}

string_enum! {
    /// Mode of auto compaction.
    pub enum CompactionMode {
        /// By age of the revisions.
        Periodic = "Periodic",
        /// By number of revisions.
        Revision = "Revision",
    }
}

object! {
    /// Auto compaction of old revisions.
    #[schemars(extend("x-kubernetes-validations" = cel_rules::compaction()))]
    pub struct AutoCompaction {
        /// `Periodic` compacts by age, `Revision` by number. Default: `Periodic`.
        mode: CompactionMode,
        /// For `Periodic`: age in seconds up to which revisions are kept. Default: 3600.
        #[schemars(range(min = 60, max = 2_592_000))]
        retention_seconds: i32,
        /// For `Revision`: number of revisions that are kept.
        #[schemars(range(min = 100, max = 100_000_000))]
        retention_revisions: i32,
    }
}

object! {
    /// TLS of client and peer connections.
    pub struct Tls {
        /// TLS of client connections.
        client: TlsSide,
        /// TLS of peer connections.
        peer: TlsSide,
    }
}

string_enum! {
    /// Source of certificates.
    pub enum TlsSource {
        /// A CA that the operator manages for this cluster.
        Managed = "Managed",
        /// An issuer of cert-manager.
        CertManager = "CertManager",
        /// A Secret that the user provides.
        Secret = "Secret",
        /// None: plaintext.
        Disabled = "Disabled",
    }
}

object! {
    /// TLS of one kind of connections.
    #[schemars(extend("x-kubernetes-validations" = cel_rules::tls_side()))]
    pub struct TlsSide {
        /// `Managed`: a CA that the operator manages for this cluster. `CertManager`: an issuer of
        /// cert-manager. `Secret`: certificates in a Secret. `Disabled`: plaintext. Default:
        /// `Managed`.
        source: TlsSource,
        /// For `CertManager`: the issuer.
        issuer_ref: IssuerRef,
        /// For `Secret`: Secret with `ca.crt`, `tls.crt` and `tls.key` for all members. The
        /// certificate needs the SAN `*.<namespace>.svc` and the usages server auth and client
        /// auth. For client connections, `client.crt` and `client.key` are passed on to
        /// applications if present.
        secret_ref: LocalRef,
    }
}

string_enum! {
    /// Kind of a cert-manager issuer.
    pub enum IssuerKind {
        /// Issuer in the same namespace.
        Issuer = "Issuer",
        /// Cluster-scoped issuer.
        ClusterIssuer = "ClusterIssuer",
    }
}

object! {
    /// Reference to a cert-manager issuer.
    #[schemars(extend("required" = ["name"]))]
    pub struct IssuerRef {
        /// Name of the issuer.
        name: ObjectName,
        /// `Issuer` or `ClusterIssuer`. Default: `Issuer`.
        kind: IssuerKind,
    }
}

object! {
    /// etcd authentication.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "!has(self.enabled) || !self.enabled || has(self.rootSecretRef)",
        "message": "requires rootSecretRef when auth is enabled: a Secret with `password` for the user root",
    }]))]
    pub struct Auth {
        /// Enables etcd authentication (password or client certificate CN). Default: false.
        enabled: bool,
        /// Secret with the key `password` for the user `root`.
        root_secret_ref: LocalRef,
    }
}

object! {
    /// Scheduling of the members' pods.
    pub struct Placement {
        /// Node labels that are required.
        #[schemars(extend("maxProperties" = 32))]
        node_selector: Labels,
        /// Tolerations of node taints.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        tolerations: Vec<Toleration>,
        /// Affinity rules. Default: different nodes and zones are preferred.
        affinity: Affinity,
    }
}

object! {
    /// Additional labels and annotations of pods.
    pub struct PodMetadata {
        /// Labels. Keys reserved for Kubernetes and for the operator are rejected.
        #[schemars(extend("maxProperties" = 32))]
        labels: Labels,
        /// Annotations.
        #[schemars(extend("maxProperties" = 32))]
        annotations: Annotations,
    }
}

object! {
    /// Settings of rolling updates.
    pub struct Upgrade {
        /// Takes a backup before a rolling update starts. Not supported in this release: `true` is
        /// rejected. Default: false.
        snapshot_first: bool,
    }
}

object! {
    /// When an unhealthy member is replaced.
    pub struct Repair {
        /// Number of restarts after which a crash-looping member is replaced by a new, empty one.
        /// Default: 3.
        #[schemars(range(min = 1, max = 100))]
        recreate_attempts: i32,
        /// Seconds after which an unreachable member is replaced. Default: 600.
        #[schemars(range(min = 60, max = 86_400))]
        replace_after_seconds: i32,
    }
}

object! {
    /// Schedule and threshold for defragmentation, one member at a time, leader last.
    pub struct Defragment {
        /// Cron schedule, such as `0 4 * * 0`. Default: none; a member is defragmented when it
        /// exceeds the threshold, at most once an hour.
        schedule: Schedule,
        /// Time zone of the schedule. Default: UTC.
        time_zone: TimeZone,
        /// Free bytes in the database file above which a member is defragmented, at least 1Mi.
        /// Default: a tenth of the file.
        reclaim_above: Size,
    }
}

object! {
    /// Scheduled backups.
    pub struct Backup {
        /// Cron schedule of backups, such as `0 3 * * *`.
        schedule: Schedule,
        /// Time zone of the schedules. Default: UTC.
        time_zone: TimeZone,
        /// Suspends the schedules. Default: false.
        suspend: bool,
        /// Object store or volume for backups.
        destination: Destination,
        /// Retention of backups.
        retention: Retention,
        /// Cron schedule on which the newest backup is restored into a temporary etcd to verify it.
        verify_schedule: Schedule,
    }
}

object! {
    /// Backup to bootstrap the cluster from.
    #[schemars(extend("required" = ["from"]))]
    pub struct Restore {
        /// Backup to restore.
        from: BackupSource,
    }
}

string_enum! {
    /// What happens to members and PVCs when the object is deleted.
    pub enum DeletionPolicy {
        /// Members are deleted, PVCs are kept.
        Retain = "Retain",
        /// Members and PVCs are deleted.
        Delete = "Delete",
        /// A last backup is taken, then members and PVCs are deleted.
        SnapshotThenDelete = "SnapshotThenDelete",
        /// Everything is left running, unmanaged.
        Disconnect = "Disconnect",
    }
}
