//! Metrics of etcd clusters and of their reconciliation.
//!
//! Namespace and name of a cluster are labels: there are as many series as clusters.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The value of the label `controller`.
const CONTROLLER: &str = "etcdcluster";
const NOSPACE: &str = "NOSPACE";
const CORRUPT: &str = "CORRUPT";

type ClusterLabels = [(&'static str, String); 2];
type AlarmLabels = [(&'static str, String); 3];
type OperationLabels = [(&'static str, &'static str); 1];
type ControllerLabels = [(&'static str, &'static str); 1];
type ErrorLabels = [(&'static str, &'static str); 2];

/// Handles to the metrics of etcd clusters.
#[derive(Clone)]
pub(crate) struct EtcdClusterMetrics {
    desired: Family<ClusterLabels, Gauge>,
    ready: Family<ClusterLabels, Gauge>,
    has_quorum: Family<ClusterLabels, Gauge>,
    rolled_back: Family<ClusterLabels, Gauge>,
    alarm: Family<AlarmLabels, Gauge>,
    db_size: Family<ClusterLabels, Gauge>,
    db_in_use: Family<ClusterLabels, Gauge>,
    operations: Family<OperationLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
    durations: Family<ControllerLabels, Histogram, fn() -> Histogram>,
}

/// What one reconciliation has observed of a cluster.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent gauge")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterSample {
    /// Desired members.
    pub(crate) desired: usize,
    /// Healthy voters.
    pub(crate) ready: usize,
    /// Whether linearizable reads succeed.
    pub(crate) has_quorum: bool,
    /// Whether the last change of the spec was rolled back.
    pub(crate) is_rolled_back: bool,
    /// Whether a member's database has reached its quota.
    pub(crate) has_nospace_alarm: bool,
    /// Whether members have different data.
    pub(crate) has_corrupt_alarm: bool,
    /// The size of the largest database file, in bytes.
    pub(crate) db_size: i64,
    /// The most that is in use of a database file, in bytes.
    pub(crate) db_in_use: i64,
}

impl EtcdClusterMetrics {
    /// Registers the metrics.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            desired: Family::default(),
            ready: Family::default(),
            has_quorum: Family::default(),
            rolled_back: Family::default(),
            alarm: Family::default(),
            db_size: Family::default(),
            db_in_use: Family::default(),
            operations: Family::default(),
            errors: Family::default(),
            durations: Family::new_with_constructor(durations),
        };
        metrics.register_gauges(registry);
        let Self { operations, errors, durations, .. } = metrics.clone();
        registry.register(
            "quorate_etcd_operations",
            "Changes made to members of etcd clusters, by reason",
            operations,
        );
        registry.register(
            "quorate_reconcile_errors",
            "Failed reconciliations, by controller and reason",
            errors,
        );
        registry.register(
            "quorate_reconcile_duration_seconds",
            "Duration of a reconciliation, by controller",
            durations,
        );
        metrics
    }

    /// Registers the gauges of each cluster.
    fn register_gauges(&self, registry: &mut Registry) {
        let Self { desired, ready, has_quorum, rolled_back, alarm, db_size, db_in_use, .. } = self;
        let gauges = [
            ("quorate_etcd_members_desired", "Desired members", desired),
            ("quorate_etcd_members_ready", "Healthy voters", ready),
            (
                "quorate_etcd_has_quorum",
                "Whether linearizable reads succeed on a quorum of voters",
                has_quorum,
            ),
            (
                "quorate_etcd_rolled_back",
                "Whether the last change of the spec was rolled back because a member failed to start",
                rolled_back,
            ),
            ("quorate_etcd_db_size_bytes", "Size of the largest database file", db_size),
            ("quorate_etcd_db_in_use_bytes", "Most bytes in use of a database file", db_in_use),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "quorate_etcd_alarm",
            "Whether an etcd alarm is active, by type (NOSPACE or CORRUPT)",
            alarm.clone(),
        );
    }

    /// Records what a reconciliation has observed.
    pub(crate) fn record(&self, namespace: &str, cluster: &str, sample: ClusterSample) {
        let labels = labels(namespace, cluster);
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.desired.get_or_create(&labels).set(count(sample.desired));
        self.ready.get_or_create(&labels).set(count(sample.ready));
        self.has_quorum.get_or_create(&labels).set(i64::from(sample.has_quorum));
        self.rolled_back.get_or_create(&labels).set(i64::from(sample.is_rolled_back));
        let alarm = |kind, active| {
            self.alarm.get_or_create(&alarm_labels(&labels, kind)).set(i64::from(active))
        };
        alarm(NOSPACE, sample.has_nospace_alarm);
        alarm(CORRUPT, sample.has_corrupt_alarm);
        self.db_size.get_or_create(&labels).set(sample.db_size);
        self.db_in_use.get_or_create(&labels).set(sample.db_in_use);
    }

    /// Removes the series of a cluster that was deleted.
    pub(crate) fn remove(&self, namespace: &str, cluster: &str) {
        let labels = labels(namespace, cluster);
        let Self { desired, ready, has_quorum, rolled_back, db_size, db_in_use, .. } = self;
        for family in [desired, ready, has_quorum, rolled_back, db_size, db_in_use] {
            family.remove(&labels);
        }
        for kind in [NOSPACE, CORRUPT] {
            self.alarm.remove(&alarm_labels(&labels, kind));
        }
    }

    /// Counts a change that was made.
    pub(crate) fn operation(&self, reason: &'static str) {
        self.operations.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts a reconciliation that failed.
    pub(crate) fn reconcile_failed(&self, reason: &'static str) {
        self.errors.get_or_create(&[("controller", CONTROLLER), ("reason", reason)]).inc();
    }

    /// Records the duration of a reconciliation.
    pub(crate) fn reconciled(&self, duration: Duration) {
        let labels = [("controller", CONTROLLER)];
        self.durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}

fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 12))
}

fn labels(namespace: &str, cluster: &str) -> ClusterLabels {
    [("namespace", namespace.to_owned()), ("cluster", cluster.to_owned())]
}

fn alarm_labels(labels: &ClusterLabels, kind: &str) -> AlarmLabels {
    let [namespace, cluster] = labels.clone();
    [namespace, cluster, ("type", kind.to_owned())]
}
