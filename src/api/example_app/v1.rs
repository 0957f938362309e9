//! ExampleApp v1: the hub. It says everything that the older versions can say, and it is stored.
//! Comes in: nothing. Goes out: the types of `spec`, and what the definition needs to know.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod status;

use std::collections::BTreeMap;

use kube::CustomResource;

use crate::api::destination::{Destination, Retention};
use crate::api::etcd_cluster::v1::Restore;
use crate::api::example_app::rules;
use crate::api::pod::{Image, LocalRef, Resources};
use crate::api::shape::{choice, shape};
use crate::api::texts::{
    AppVersion, ClassName, EtcdVersion, HostName, Schedule, TimeZone, VolumeSize,
};
use status::ExampleAppStatus;

/// Features, by their names.
pub type Features = BTreeMap<String, bool>;

shape! {
    /// What the application should be.
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
        doc = "An example application: a web application that keeps its data in etcd, with its cluster, its users' way in and its backups.",
        scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "The release in use."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "How many replicas answer."),
        printcolumn(name = "URL", type_ = "string", json_path = ".status.url", description = "Where it is for people."),
        printcolumn(name = "Last Backup", type_ = "date", json_path = ".status.backup.lastBackupTime", description = "When the last backup was finished."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "In one word, whether all is well."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
        printcolumn(name = "Target", type_ = "string", priority = 1, json_path = ".spec.version", description = "The release that is wanted."),
        printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "In a sentence, how it is."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = rules::v1()))]
    pub struct ExampleAppSpec {
        /// The release, such as `0.0.1`.
        version: AppVersion,
        /// Where the image comes from. Its tag is always `v` and the version.
        image: Image,
        /// How many replicas there should be. 0 lets the application sleep. Not together with `autoscaling`.
        #[schemars(range(min = 0, max = 100))]
        replicas: i32,
        /// Lets the number of replicas follow the load. Not together with `replicas`.
        autoscaling: Autoscaling,
        /// Features by their names, in lower camel case: `true` turns one on, `false` turns it off. The release's own choice
        /// holds for those that are left out.
        #[schemars(extend("maxProperties" = 32))]
        features: Features,
        /// Where the application keeps its data.
        data: Data,
        /// How people reach the application.
        exposure: Exposure,
        /// Backups on a schedule.
        backup: Backup,
        /// The data to begin with. Only when the application is made.
        restore: Restore,
        /// How a new version is brought in.
        upgrade: Upgrade,
        /// What each replica asks for and may not exceed.
        resources: Resources,
        /// Whether the operator leaves the application alone. Its status goes on to be reported.
        paused: bool,
        /// What becomes of the application when this object is deleted: `Delete` (the default) removes it, and its own
        /// EtcdCluster by that cluster's own policy; `Disconnect` lets everything run on, unmanaged.
        deletion_policy: DeletionPolicy,
    }
}

shape! {
    /// How the number of replicas follows the load.
    #[schemars(extend("required" = ["maxReplicas"], "x-kubernetes-validations" = rules::autoscaling()))]
    pub struct Autoscaling {
        /// How many replicas there are at least; 1 if it is left out.
        #[schemars(range(min = 1, max = 100))]
        min_replicas: i32,
        /// How many replicas there are at most.
        #[schemars(range(min = 1, max = 100))]
        max_replicas: i32,
        /// How much of the processor time that they ask for the replicas should use on average, in percent.
        #[schemars(range(min = 1, max = 1000))]
        target_cpu_utilization_percentage as "targetCPUUtilizationPercentage": i32,
    }
}

shape! {
    /// Where the application keeps its data.
    pub struct Data {
        /// The etcd cluster.
        etcd: Etcd,
    }
}

shape! {
    /// The etcd cluster that the data is in. Without a word, the application gets one of its own.
    #[schemars(extend("x-kubernetes-validations" = rules::one_source()))]
    pub struct Etcd {
        /// An EtcdCluster that there is, in the same namespace. It cannot be changed later.
        cluster_ref: LocalRef,
        /// How the application's own EtcdCluster should be.
        managed: ManagedEtcd,
    }
}

shape! {
    /// How the application's own EtcdCluster should be.
    pub struct ManagedEtcd {
        /// How many members there should be: 3 or 5 for most, 1 to try things out, 7 at most.
        #[schemars(range(min = 1, max = 7))]
        replicas: i32,
        /// The etcd release, such as `3.6.16`; one that suits the application if it is left out.
        version: EtcdVersion,
        /// What each member keeps its data on.
        storage: ManagedStorage,
    }
}

shape! {
    /// What each member keeps its data on.
    pub struct ManagedStorage {
        /// How much space each member has. It may grow, and never shrink.
        size: VolumeSize,
        /// The StorageClass of the volumes; the cluster's default if it is left out. It cannot be changed later.
        class_name: ClassName,
    }
}

choice! {
    /// The types of Services.
    pub enum ServiceType {
        /// Reached from inside the cluster.
        ClusterIp = "ClusterIP",
        /// Reached on a port of every node.
        NodePort = "NodePort",
        /// Reached through a load balancer of the provider.
        LoadBalancer = "LoadBalancer",
    }
}

shape! {
    /// How people reach the application.
    #[schemars(extend("x-kubernetes-validations" = rules::exposure()))]
    pub struct Exposure {
        /// `ClusterIP` (the default), `NodePort` or `LoadBalancer`.
        service_type: ServiceType,
        /// The name under which people know it, such as `app.example.com`. An Ingress is made for it.
        host: HostName,
        /// The certificate for the host; connections to the Ingress are in the clear if it is left out.
        tls: ExposureTls,
    }
}

shape! {
    /// The certificate for the host.
    #[schemars(extend("required" = ["secretRef"]))]
    pub struct ExposureTls {
        /// The Secret with `tls.crt` and `tls.key`.
        secret_ref: LocalRef,
    }
}

shape! {
    /// Backups on a schedule.
    pub struct Backup {
        /// When a backup is made, such as `0 3 * * *`.
        schedule: Schedule,
        /// The schedule's time zone; UTC if it is left out.
        time_zone: TimeZone,
        /// Whether the schedule rests.
        suspend: bool,
        /// Where backups go.
        destination: Destination,
        /// How long they are kept.
        retention: Retention,
    }
}

shape! {
    /// How a new version is brought in.
    pub struct Upgrade {
        /// Whether a backup is made before the data is changed. It needs `backup.destination`.
        snapshot_first: bool,
        /// After how many failed starts of the new version the old one comes back.
        #[schemars(range(min = 1, max = 100))]
        rollback_after_failed_starts: i32,
    }
}

choice! {
    /// What becomes of an application whose object is deleted.
    pub enum DeletionPolicy {
        /// It goes.
        Delete = "Delete",
        /// Everything runs on, unmanaged.
        Disconnect = "Disconnect",
    }
}
