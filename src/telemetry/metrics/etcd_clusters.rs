//! The measurements of etcd clusters.
//! Comes in: facts from the wing that runs them. Goes out: gauges, counters and a histogram.
//! May touch: the registry. A cluster is a label here: there are as many as people made.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Cluster = [(&'static str, String); 2];
type Because = [(&'static str, &'static str); 1];

/// What is measured of etcd clusters.
#[derive(Clone)]
pub(crate) struct EtcdClusterMetrics {
    wanted: Family<Cluster, Gauge>,
    ready: Family<Cluster, Gauge>,
    quorum: Family<Cluster, Gauge>,
    taken_back: Family<Cluster, Gauge>,
    no_space: Family<Cluster, Gauge>,
    differs: Family<Cluster, Gauge>,
    file: Family<Cluster, Gauge>,
    in_use: Family<Cluster, Gauge>,
    steps: Family<Because, Counter>,
    failures: Family<Because, Counter>,
    passes: Histogram,
}

/// What a pass tells of one cluster.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is or is not the case")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Census {
    pub(crate) wanted: usize,
    pub(crate) ready: usize,
    pub(crate) has_quorum: bool,
    pub(crate) is_taken_back: bool,
    /// Whether a file has reached its quota.
    pub(crate) is_full: bool,
    /// Whether members have different data.
    pub(crate) differs: bool,
    /// The size of the largest file, in bytes.
    pub(crate) file: i64,
    /// The most that is in use of one.
    pub(crate) in_use: i64,
}

impl EtcdClusterMetrics {
    /// Puts the measurements into the registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            wanted: Family::default(),
            ready: Family::default(),
            quorum: Family::default(),
            taken_back: Family::default(),
            no_space: Family::default(),
            differs: Family::default(),
            file: Family::default(),
            in_use: Family::default(),
            steps: Family::default(),
            failures: Family::default(),
            passes: Histogram::new(exponential_buckets(0.005, 2.0, 12)),
        };
        metrics.register_gauges(registry);
        let Self { steps, failures, passes, .. } = metrics.clone();
        registry.register(
            "quorate_etcd_steps",
            "Changes of members, by what asked for them",
            steps,
        );
        registry.register(
            "quorate_etcd_failures",
            "Passes that could not do what they should, by what asked for it",
            failures,
        );
        registry.register(
            "quorate_etcd_pass_seconds",
            "How long a pass over a cluster takes",
            passes,
        );
        metrics
    }

    /// What each cluster has.
    fn register_gauges(&self, registry: &mut Registry) {
        let Self { wanted, ready, quorum, taken_back, no_space, differs, file, in_use, .. } = self;
        let gauges = [
            ("quorate_etcd_members_wanted", "Members that an etcd cluster should have", wanted),
            ("quorate_etcd_members_ready", "Voters of an etcd cluster that are well", ready),
            ("quorate_etcd_quorum", "Whether an etcd cluster answers with a quorum", quorum),
            (
                "quorate_etcd_change_taken_back",
                "Whether what the spec of an etcd cluster asks for was taken back, because a member did not start with it",
                taken_back,
            ),
            (
                "quorate_etcd_no_space",
                "Whether a file of an etcd cluster has reached its quota, so that nobody can write",
                no_space,
            ),
            (
                "quorate_etcd_data_differs",
                "Whether members of an etcd cluster have different data",
                differs,
            ),
            ("quorate_etcd_file_bytes", "The largest file of an etcd cluster's members", file),
            ("quorate_etcd_file_in_use_bytes", "The most that is in use of such a file", in_use),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
    }

    /// Notes what a pass has seen of a cluster.
    pub(crate) fn told(&self, namespace: &str, cluster: &str, census: Census) {
        let labels = [("namespace", namespace.to_owned()), ("cluster", cluster.to_owned())];
        let count = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
        self.wanted.get_or_create(&labels).set(count(census.wanted));
        self.ready.get_or_create(&labels).set(count(census.ready));
        self.quorum.get_or_create(&labels).set(i64::from(census.has_quorum));
        self.taken_back.get_or_create(&labels).set(i64::from(census.is_taken_back));
        self.no_space.get_or_create(&labels).set(i64::from(census.is_full));
        self.differs.get_or_create(&labels).set(i64::from(census.differs));
        self.file.get_or_create(&labels).set(census.file);
        self.in_use.get_or_create(&labels).set(census.in_use);
    }

    /// Drops what is known of a cluster that is gone.
    pub(crate) fn gone(&self, namespace: &str, cluster: &str) {
        let labels = [("namespace", namespace.to_owned()), ("cluster", cluster.to_owned())];
        let Self { wanted, ready, quorum, taken_back, no_space, differs, file, in_use, .. } = self;
        for family in [wanted, ready, quorum, taken_back, no_space, differs, file, in_use] {
            family.remove(&labels);
        }
    }

    /// Counts a change that was made.
    pub(crate) fn step(&self, because: &'static str) {
        self.steps.get_or_create(&[("because", because)]).inc();
    }

    /// Counts a pass that failed.
    pub(crate) fn failed(&self, because: &'static str) {
        self.failures.get_or_create(&[("because", because)]).inc();
    }

    /// Notes how long a pass took.
    pub(crate) fn passed(&self, took: Duration) {
        self.passes.observe(took.as_secs_f64());
    }
}
