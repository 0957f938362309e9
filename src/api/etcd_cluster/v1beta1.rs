//! EtcdCluster v1beta1: the step between, flat where v1 has blocks.
//! Comes in: nothing. Goes out: the types of this version.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::condition::Condition;
use crate::api::etcd_cluster::rules;
use crate::api::field::WIDEST;
use crate::api::pod::affinity::Affinity;
use crate::api::pod::{Annotations, Labels, PullPolicy, Resources, Toleration};
use crate::api::shape::{choice, shape};
use crate::api::texts::{
    ClassName, EtcdVersion, HexId, Location, ObjectName, Quota, ReportedVersion, Repository,
    Schedule, Selector, Time, VolumeSize,
};

shape! {
    /// What the cluster should be.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1beta1",
        kind = "EtcdCluster",
        plural = "etcdclusters",
        namespaced,
        status = "EtcdClusterStatus",
        doc = "An etcd cluster: members that agree, with their disks, certificates and backups.",
        scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size", label_selector_path = ".status.selector"),
        printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size", description = "How many members there should be."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readySize", description = "How many members are healthy voters."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "The etcd release that runs."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "In one word, whether all is well."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = rules::V1BETA1.rules()))]
    pub struct EtcdClusterSpec {
        /// How many members there should be: 3 or 5 for most, 7 at most. 0 lets the cluster sleep.
        #[schemars(range(min = 0, max = 7), extend("default" = 3))]
        size: i32,
        /// The etcd release, such as `3.6.16`. A running cluster is upgraded one minor release at a time.
        version: EtcdVersion,
        /// Where the image comes from.
        image: Image,
        /// How much space each member has. It may grow, and never shrink.
        storage_size: VolumeSize,
        /// The StorageClass of the volumes; the cluster's default if it is left out. It cannot be changed later.
        storage_class: ClassName,
        /// Whether connections are protected: `Enabled` (the default) or `Disabled`.
        tls: TlsSwitch,
        /// How large the data may grow before etcd takes no more writes, at most 8Gi.
        quota: Quota,
        /// When a backup is made, such as `0 3 * * *`, in UTC.
        backup_schedule: Schedule,
        /// Where backups go, as a URL such as `s3://bucket/prefix`.
        backup_destination: Location,
        /// Labels for the members' pods.
        #[schemars(extend("maxProperties" = 32))]
        pod_labels: Labels,
        /// Annotations for the members' pods.
        #[schemars(extend("maxProperties" = 32))]
        pod_annotations: Annotations,
        /// Labels that a member's node must have.
        #[schemars(extend("maxProperties" = 32))]
        node_selector: Labels,
        /// Taints of nodes that the members put up with.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        tolerations: Vec<Toleration>,
        /// Where members like to be.
        affinity: Affinity,
        /// What each member asks for and may not exceed.
        resources: Resources,
        /// Whether the operator leaves the cluster alone.
        paused: bool,
    }
}

shape! {
    /// Where an image comes from.
    pub struct Image {
        /// The repository, without a tag, such as `gcr.io/etcd-development/etcd`.
        repository: Repository,
        /// When the image is pulled; Kubernetes' own rule if it is left out.
        pull_policy: PullPolicy,
    }
}

choice! {
    /// Whether connections are protected.
    pub enum TlsSwitch {
        /// They are.
        Enabled = "Enabled",
        /// They are in the clear.
        Disabled = "Disabled",
    }
}

shape! {
    /// What the cluster is.
    pub struct EtcdClusterStatus {
        /// The generation of the spec that this status is about.
        #[schemars(range(min = 0, max = WIDEST))]
        observed_generation: i64,
        /// The cluster's ID. It is set once and never changes.
        cluster_id as "clusterID": HexId,
        /// The etcd release that runs: the oldest one, while members differ.
        current_version: ReportedVersion,
        /// The etcd release that is being brought in.
        target_version: ReportedVersion,
        /// How many members there are.
        #[schemars(range(min = 0, max = 100))]
        size: i32,
        /// How many of them are healthy voters.
        #[schemars(range(min = 0, max = 100))]
        ready_size: i32,
        /// The labels by which the members' pods are found.
        selector: Selector,
        /// The member that leads.
        leader: ObjectName,
        /// The Service for clients.
        service_name: ObjectName,
        /// When the last good backup was finished.
        last_backup_time: Time,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}
