//! EtcdCluster v1beta1: deprecated spoke version, flat where v1 has nested objects.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::condition::Condition;
use crate::api::etcd_cluster::cel_rules;
use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::{object, string_enum};
use crate::api::pod::affinity::Affinity;
use crate::api::pod::{Annotations, Labels, PullPolicy, Resources, Toleration};
use crate::api::strings::{
    ClassName, EtcdVersion, HexId, Location, ObjectName, Quota, ReportedVersion, Repository,
    Schedule, Selector, Time, VolumeSize,
};

object! {
    /// Desired state of the cluster.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1beta1",
        kind = "EtcdCluster",
        plural = "etcdclusters",
        namespaced,
        deprecated = "etcd.appdelivery.cncf.io/v1beta1 EtcdCluster is deprecated; use etcd.appdelivery.cncf.io/v1 EtcdCluster",
        status = "EtcdClusterStatus",
        doc = "etcd cluster with its members, volumes and certificates.",
        scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size", label_selector_path = ".status.selector"),
        printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.size", description = "Desired number of members."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readySize", description = "Number of members that are healthy voters."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "etcd version in use."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Reason of the Ready condition."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = cel_rules::V1BETA1.rules()))]
    pub struct EtcdClusterSpec {
        /// Number of etcd members, 0 to 7; 3 or 5 recommended. 0 hibernates the cluster: pods are
        /// deleted, PVCs are kept. Default: 3.
        #[schemars(range(min = 0, max = 7), extend("default" = 3))]
        size: i32,
        /// etcd version, such as `3.6.16`. A cluster is upgraded one minor version at a time.
        version: EtcdVersion,
        /// Container image.
        image: Image,
        /// Size of the volume of each member. It can be increased and not decreased. Default:
        /// 10Gi.
        storage_size: VolumeSize,
        /// StorageClass of the PVCs. Immutable. Default: the default StorageClass.
        storage_class: ClassName,
        /// TLS of client and peer connections: `Enabled` or `Disabled`. Default: `Enabled`.
        tls: TlsMode,
        /// Database size at which etcd rejects writes, at most 8Gi. Default: half of the volume
        /// without the WAL.
        quota: Quota,
        /// Cron schedule of backups in UTC, such as `0 3 * * *`. Not supported in this release: the
        /// field is rejected.
        backup_schedule: Schedule,
        /// URL of the object store or volume for backups, such as `s3://bucket/prefix`. Not
        /// supported in this release: the field is rejected.
        backup_destination: Location,
        /// Additional labels of the members' pods.
        #[schemars(extend("maxProperties" = 32))]
        pod_labels: Labels,
        /// Additional annotations of the members' pods.
        #[schemars(extend("maxProperties" = 32))]
        pod_annotations: Annotations,
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
        /// Pauses reconciliation; status is still updated. Default: false.
        paused: bool,
    }
}

object! {
    /// Container image.
    pub struct Image {
        /// Image repository without a tag. Default: `gcr.io/etcd-development/etcd`.
        repository: Repository,
        /// Pull policy of the image. Default: that of Kubernetes.
        pull_policy: PullPolicy,
    }
}

string_enum! {
    /// TLS of client and peer connections.
    pub enum TlsMode {
        /// TLS with a CA that the operator manages for this cluster.
        Enabled = "Enabled",
        /// Plaintext.
        Disabled = "Disabled",
    }
}

object! {
    /// Observed state of the cluster.
    pub struct EtcdClusterStatus {
        /// Generation of the spec that this status refers to.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        observed_generation: i64,
        /// etcd cluster ID. Set once when the cluster is bootstrapped and never changed.
        cluster_id as "clusterID": HexId,
        /// etcd version in use: the oldest one while members differ.
        current_version: ReportedVersion,
        /// etcd version that is being rolled out.
        target_version: ReportedVersion,
        /// Number of members.
        #[schemars(range(min = 0, max = 100))]
        size: i32,
        /// Number of members that are healthy voters.
        #[schemars(range(min = 0, max = 100))]
        ready_size: i32,
        /// Label selector of the members' pods, for the scale subresource.
        selector: Selector,
        /// Name of the member that is the leader.
        leader: ObjectName,
        /// Name of the Service for clients.
        service_name: ObjectName,
        /// Completion time of the last successful backup.
        last_backup_time: Time,
        /// Conditions of the object.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}
