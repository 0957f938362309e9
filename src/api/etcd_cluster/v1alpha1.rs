//! EtcdCluster v1alpha1: the shape that readers of the first etcd operator know.
//! Comes in: nothing. Goes out: the types of this version.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::condition::Condition;
use crate::api::etcd_cluster::rules;
use crate::api::pod::affinity::Affinity;
use crate::api::pod::{Annotations, Labels, Resources, Toleration};
use crate::api::shape::shape;
use crate::api::texts::{
    ClassName, EtcdVersion, ObjectName, ReportedVersion, Repository, Selector, VolumeSize, Word,
};

shape! {
    /// What the cluster should be.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1alpha1",
        kind = "EtcdCluster",
        plural = "etcdclusters",
        namespaced,
        status = "EtcdClusterStatus",
        doc = "An etcd cluster: members that agree, with their disks, certificates and backups.",
        scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size", label_selector_path = ".status.selector"),
        printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size", description = "How many members there should be."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "The etcd release that runs."),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "In one word, how it is."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = rules::V1ALPHA1.rules()))]
    pub struct EtcdClusterSpec {
        /// How many members there should be: 3 or 5 for most, 7 at most. 0 lets the cluster sleep.
        #[schemars(range(min = 0, max = 7), extend("default" = 3))]
        size: i32,
        /// The etcd release, such as `3.6.16`. A running cluster is upgraded one minor release at a time.
        version: EtcdVersion,
        /// The repository of the image, without a tag, such as `gcr.io/etcd-development/etcd`.
        repository: Repository,
        /// Whether the operator leaves the cluster alone.
        paused: bool,
        /// How the members' pods are.
        pod: Pod,
    }
}

shape! {
    /// How the members' pods are.
    pub struct Pod {
        /// Labels for the pods.
        #[schemars(extend("maxProperties" = 32))]
        labels: Labels,
        /// Annotations for the pods.
        #[schemars(extend("maxProperties" = 32))]
        annotations: Annotations,
        /// Labels that a node must have.
        #[schemars(extend("maxProperties" = 32))]
        node_selector: Labels,
        /// Taints of nodes that the pods put up with.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        tolerations: Vec<Toleration>,
        /// Where the pods like to be.
        affinity: Affinity,
        /// What each member asks for and may not exceed.
        resources: Resources,
        /// The volume of each member.
        persistent_volume_claim_spec: ClaimSpec,
    }
}

shape! {
    /// The volume of each member.
    pub struct ClaimSpec {
        /// The StorageClass; the cluster's default if it is left out. It cannot be changed later.
        storage_class_name: ClassName,
        /// What the volume asks for.
        resources: ClaimResources,
    }
}

shape! {
    /// What a volume asks for.
    pub struct ClaimResources {
        /// What it asks for.
        requests: ClaimRequests,
    }
}

shape! {
    /// What a volume asks for.
    pub struct ClaimRequests {
        /// How much space it has. It may grow, and never shrink.
        storage: VolumeSize,
    }
}

shape! {
    /// What the cluster is.
    pub struct EtcdClusterStatus {
        /// How it is, in one word, for display only: read the conditions instead.
        phase: Word,
        /// How many members there are.
        #[schemars(range(min = 0, max = 100))]
        size: i32,
        /// The labels by which the members' pods are found.
        selector: Selector,
        /// The etcd release that runs: the oldest one, while members differ.
        current_version: ReportedVersion,
        /// The etcd release that is being brought in.
        target_version: ReportedVersion,
        /// The port for clients.
        #[schemars(range(min = 1, max = 65_535))]
        client_port: i32,
        /// The Service for clients.
        service_name: ObjectName,
        /// The members, by how they are.
        members: MembersByHealth,
        /// Whether the operator leaves the cluster alone.
        control_paused: bool,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

shape! {
    /// The members, by how they are.
    pub struct MembersByHealth {
        /// The names of those that answer as they should.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        ready: Vec<ObjectName>,
        /// The names of the others.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        unready: Vec<ObjectName>,
    }
}
