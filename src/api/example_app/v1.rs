//! ExampleApp v1: the hub and storage version. It has every field of the older versions.
//! Every doc comment of a field is printed by `kubectl explain`; a default named there is set by
//! `defaults`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod status;

use std::collections::BTreeMap;

use kube::CustomResource;

use crate::api::destination::{Destination, Retention};
use crate::api::etcd_cluster::v1::Restore;
use crate::api::example_app::cel_rules;
use crate::api::macros::{object, string_enum};
use crate::api::pod::{Image, LocalRef, Resources};
use crate::api::strings::{
    AppVersion, ClassName, EtcdVersion, HostName, Schedule, TimeZone, VolumeSize,
};
use status::ExampleAppStatus;

/// Features by name.
pub type Features = BTreeMap<String, bool>;

object! {
    /// Desired state of the application.
    #[derive(CustomResource)]
    #[kube(
        group = "example-app.appdelivery.cncf.io",
        version = "v1",
        kind = "ExampleApp",
        plural = "exampleapps",
        namespaced,
        status = "ExampleAppStatus",
        shortname = "exapp",
        category = "quorate",
        doc = "Example web application that stores its data in etcd, with its EtcdCluster and Ingress. Not reconciled in this release: objects of this kind are only stored.",
        scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "Version in use."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Number of ready replicas."),
        printcolumn(name = "URL", type_ = "string", json_path = ".status.url", description = "URL of the application."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Reason of the Ready condition."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
        printcolumn(name = "Target", type_ = "string", priority = 1, json_path = ".spec.version", description = "Desired version."),
        printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "Message of the Ready condition."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = cel_rules::v1()))]
    pub struct ExampleAppSpec {
        /// Version of the application, such as `0.0.1`.
        version: AppVersion,
        /// Container image. The tag is always `v` followed by the version.
        image: Image,
        /// Number of replicas. 0 hibernates the application. Mutually exclusive with
        /// `autoscaling`. Default: 2.
        #[schemars(range(min = 0, max = 100))]
        replicas: i32,
        /// Scales the number of replicas by CPU utilization. Mutually exclusive with `replicas`.
        autoscaling: Autoscaling,
        /// Features by name, in lower camel case: `true` enables, `false` disables. Features that
        /// are not listed have the default of the version.
        #[schemars(extend("maxProperties" = 32))]
        features: Features,
        /// Storage of the application's data.
        data: Data,
        /// Service and Ingress of the application.
        exposure: Exposure,
        /// Scheduled backups. Not supported in this release.
        backup: Backup,
        /// Backup to start from. It can only be set when the application is created. Not supported
        /// in this release.
        restore: Restore,
        /// Settings of version changes.
        upgrade: Upgrade,
        /// Resource requests and limits of each replica.
        resources: Resources,
        /// Pauses reconciliation; status is still updated. Default: false.
        paused: bool,
        /// What happens to the application when this object is deleted: `Delete` deletes the
        /// application, and its dedicated EtcdCluster by the policy of that cluster; `Disconnect`
        /// leaves everything running, unmanaged. Default: `Delete`.
        deletion_policy: DeletionPolicy,
    }
}

object! {
    /// Horizontal scaling by CPU utilization.
    #[schemars(extend("required" = ["maxReplicas"], "x-kubernetes-validations" = cel_rules::autoscaling()))]
    pub struct Autoscaling {
        /// Minimum number of replicas. Default: 1.
        #[schemars(range(min = 1, max = 100))]
        min_replicas: i32,
        /// Maximum number of replicas.
        #[schemars(range(min = 1, max = 100))]
        max_replicas: i32,
        /// Target average CPU utilization in percent of the requested CPU. Default: 80.
        #[schemars(range(min = 1, max = 1000))]
        target_cpu_utilization_percentage as "targetCPUUtilizationPercentage": i32,
    }
}

object! {
    /// Storage of the application's data.
    pub struct Data {
        /// The EtcdCluster.
        etcd: Etcd,
    }
}

object! {
    /// EtcdCluster of the application. Default: a dedicated one is created.
    #[schemars(extend("x-kubernetes-validations" = cel_rules::single_data_source()))]
    pub struct Etcd {
        /// Existing EtcdCluster in the same namespace. Immutable.
        cluster_ref: LocalRef,
        /// Settings of the dedicated EtcdCluster.
        managed: ManagedEtcd,
    }
}

object! {
    /// Settings of the dedicated EtcdCluster.
    pub struct ManagedEtcd {
        /// Number of etcd members, 1 to 7; 3 or 5 recommended. Default: 3.
        #[schemars(range(min = 1, max = 7))]
        replicas: i32,
        /// etcd version. Default: `3.6.16`.
        version: EtcdVersion,
        /// Storage of each member.
        storage: ManagedStorage,
    }
}

object! {
    /// Storage of each member.
    pub struct ManagedStorage {
        /// Size of the volume of each member. It can be increased and not decreased. Default:
        /// 10Gi.
        size: VolumeSize,
        /// StorageClass of the PVCs. Immutable. Default: the default StorageClass.
        class_name: ClassName,
    }
}

string_enum! {
    /// Type of a Service.
    pub enum ServiceType {
        /// Reachable from inside the cluster.
        ClusterIp = "ClusterIP",
        /// Reachable on a port of every node.
        NodePort = "NodePort",
        /// Reachable through a load balancer of the provider.
        LoadBalancer = "LoadBalancer",
    }
}

object! {
    /// Service and Ingress of the application.
    #[schemars(extend("x-kubernetes-validations" = cel_rules::exposure()))]
    pub struct Exposure {
        /// Type of the Service: `ClusterIP`, `NodePort` or `LoadBalancer`. Default: `ClusterIP`.
        service_type: ServiceType,
        /// Host name of the Ingress, such as `app.example.com`. Default: no Ingress is created.
        host: HostName,
        /// TLS certificate of the Ingress. Default: plaintext.
        tls: ExposureTls,
    }
}

object! {
    /// TLS certificate of the Ingress.
    #[schemars(extend("required" = ["secretRef"]))]
    pub struct ExposureTls {
        /// Secret with `tls.crt` and `tls.key`.
        secret_ref: LocalRef,
    }
}

object! {
    /// Scheduled backups.
    pub struct Backup {
        /// Cron schedule of backups, such as `0 3 * * *`. Default: `0 3 * * *` if a destination is
        /// set.
        schedule: Schedule,
        /// Time zone of the schedule. Default: UTC.
        time_zone: TimeZone,
        /// Suspends the schedule. Default: false.
        suspend: bool,
        /// Object store or volume for backups.
        destination: Destination,
        /// Retention of backups.
        retention: Retention,
    }
}

object! {
    /// Settings of version changes.
    pub struct Upgrade {
        /// Takes a backup before the data is changed. Requires `backup.destination`. Default:
        /// false.
        snapshot_first: bool,
        /// Number of failed starts after which the previous version is restored. Default: 3.
        #[schemars(range(min = 1, max = 100))]
        rollback_after_failed_starts: i32,
    }
}

string_enum! {
    /// What happens to the application when the object is deleted.
    pub enum DeletionPolicy {
        /// The application is deleted.
        Delete = "Delete",
        /// Everything is left running, unmanaged.
        Disconnect = "Disconnect",
    }
}
