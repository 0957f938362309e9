//! EtcdCluster v1alpha1: deprecated spoke version with the fields of the first etcd operator.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::condition::Condition;
use crate::api::etcd_cluster::cel_rules;
use crate::api::macros::object;
use crate::api::pod::affinity::Affinity;
use crate::api::pod::{Annotations, Labels, Resources, Toleration};
use crate::api::strings::{
    ClassName, EtcdVersion, ObjectName, ReportedVersion, Repository, Selector, Token, VolumeSize,
};

object! {
    /// Desired state of the cluster.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1alpha1",
        kind = "EtcdCluster",
        plural = "etcdclusters",
        namespaced,
        deprecated = "etcd.appdelivery.cncf.io/v1alpha1 EtcdCluster is deprecated; use etcd.appdelivery.cncf.io/v1 EtcdCluster",
        status = "EtcdClusterStatus",
        doc = "etcd cluster with its members, volumes and certificates.",
        scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size", label_selector_path = ".status.selector"),
        printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.size", description = "Desired number of members."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "etcd version in use."),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Phase of the cluster, for display only."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = cel_rules::V1ALPHA1.rules()))]
    pub struct EtcdClusterSpec {
        /// Number of etcd members, 0 to 7; 3 or 5 recommended. 0 hibernates the cluster: pods are
        /// deleted, PVCs are kept. Default: 3.
        #[schemars(range(min = 0, max = 7), extend("default" = 3))]
        size: i32,
        /// etcd version, such as `3.6.16`. A cluster is upgraded one minor version at a time.
        version: EtcdVersion,
        /// Image repository without a tag. Default: `gcr.io/etcd-development/etcd`.
        repository: Repository,
        /// Pauses reconciliation; status is still updated. Default: false.
        paused: bool,
        /// Pod settings of the members.
        pod: Pod,
    }
}

object! {
    /// Pod settings of the members.
    pub struct Pod {
        /// Additional labels of the pods.
        #[schemars(extend("maxProperties" = 32))]
        labels: Labels,
        /// Additional annotations of the pods.
        #[schemars(extend("maxProperties" = 32))]
        annotations: Annotations,
        /// Node labels that are required.
        #[schemars(extend("maxProperties" = 32))]
        node_selector: Labels,
        /// Tolerations of node taints.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        tolerations: Vec<Toleration>,
        /// Affinity rules. Default: different nodes and zones are preferred.
        affinity: Affinity,
        /// Resource requests and limits of each member.
        resources: Resources,
        /// PersistentVolumeClaim of each member.
        persistent_volume_claim_spec: ClaimSpec,
    }
}

object! {
    /// PersistentVolumeClaim of each member.
    pub struct ClaimSpec {
        /// StorageClass of the PVC. Immutable. Default: the default StorageClass.
        storage_class_name: ClassName,
        /// Resources of the volume.
        resources: ClaimResources,
    }
}

object! {
    /// Resources of a volume.
    pub struct ClaimResources {
        /// Requested resources.
        requests: ClaimRequests,
    }
}

object! {
    /// Requested resources of a volume.
    pub struct ClaimRequests {
        /// Size of the volume. It can be increased and not decreased. Default: 10Gi.
        storage: VolumeSize,
    }
}

object! {
    /// Observed state of the cluster.
    pub struct EtcdClusterStatus {
        /// Phase of the cluster, for display only; use the conditions instead.
        phase: Token,
        /// Number of members.
        #[schemars(range(min = 0, max = 100))]
        size: i32,
        /// Label selector of the members' pods, for the scale subresource.
        selector: Selector,
        /// etcd version in use: the oldest one while members differ.
        current_version: ReportedVersion,
        /// etcd version that is being rolled out.
        target_version: ReportedVersion,
        /// Port for clients.
        #[schemars(range(min = 1, max = 65_535))]
        client_port: i32,
        /// Name of the Service for clients.
        service_name: ObjectName,
        /// Members by health.
        members: MembersByHealth,
        /// Whether reconciliation is paused.
        control_paused: bool,
        /// Conditions of the object.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

object! {
    /// Members by health.
    pub struct MembersByHealth {
        /// Names of the healthy members.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        ready: Vec<ObjectName>,
        /// Names of the unhealthy members.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        unready: Vec<ObjectName>,
    }
}
