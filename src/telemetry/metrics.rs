//! The metrics of this process, in one registry.
//!
//! Every metric name is defined here or in a submodule, and nowhere else.

mod certificates;
mod etcd_clusters;
mod namespace_access;
mod storage_migration;
mod webhook;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub(crate) use etcd_clusters::ClusterSample;
pub(crate) use storage_migration::MigrationCounts;
pub(crate) use webhook::{RejectReason, RequestOutcome, RequestType, WebhookMetrics};

use crate::api::names;
use certificates::CertificateMetrics;
use etcd_clusters::EtcdClusterMetrics;
use namespace_access::NamespaceAccessMetrics;
use storage_migration::StorageMigrationMetrics;

/// The registry, and handles to its metrics.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    leader: Gauge,
    leadership_changes: Counter,
    webhook: WebhookMetrics,
    /// The webhook serving certificate and its CAs.
    pub(crate) certificates: CertificateMetrics,
    /// etcd clusters and their reconciliation.
    pub(crate) etcd_clusters: EtcdClusterMetrics,
    /// The operator's access to namespaces.
    pub(crate) namespace_access: NamespaceAccessMetrics,
    /// Storage version migration.
    pub(crate) storage_migration: StorageMigrationMetrics,
}

impl Metrics {
    /// A registry for a process that started at `started`.
    pub(crate) fn new(started: Timestamp) -> Self {
        let mut registry = Registry::default();
        registry.register(
            "quorate_build",
            "Version, operating system and architecture of the running operator",
            build(),
        );
        // Registered without a unit, which would become part of this conventional name.
        let start: Gauge<f64, AtomicU64> = Gauge::default();
        start.set(started.as_duration().as_secs_f64());
        registry.register(
            "process_start_time_seconds",
            "Start time of the process since the Unix epoch in seconds",
            start,
        );
        let leader: Gauge = Gauge::default();
        registry.register("quorate_leader", "Whether this replica is the leader", leader.clone());
        let leadership_changes: Counter = Counter::default();
        registry.register(
            "quorate_leadership_changes",
            "Leadership transitions of this replica, gained and lost",
            leadership_changes.clone(),
        );
        Self {
            leader,
            leadership_changes,
            webhook: WebhookMetrics::new(&mut registry),
            certificates: CertificateMetrics::register(&mut registry),
            etcd_clusters: EtcdClusterMetrics::register(&mut registry),
            namespace_access: NamespaceAccessMetrics::register(&mut registry),
            storage_migration: StorageMigrationMetrics::register(&mut registry),
            registry: Arc::new(registry),
        }
    }

    /// The metrics of the webhook server.
    pub(crate) fn webhook(&self) -> WebhookMetrics {
        self.webhook.clone()
    }

    /// Records whether this replica leads; each change is counted.
    pub(crate) fn leads(&self, leads: bool) {
        let value = i64::from(leads);
        if self.leader.set(value) != value {
            self.leadership_changes.inc();
        }
    }

    /// All metrics in the `OpenMetrics` text format.
    pub(crate) fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn build() -> Info<Vec<(&'static str, &'static str)>> {
    Info::new(vec![
        ("version", names::VERSION),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_leadership_is_counted_once() {
        let metrics = Metrics::new(Timestamp::UNIX_EPOCH);
        metrics.leads(false);
        metrics.leads(true);
        metrics.leads(true);
        let text = metrics.encode().unwrap();
        assert!(text.contains("quorate_leader 1\n"), "{text}");
        assert!(text.contains("quorate_leadership_changes_total 1\n"), "{text}");
    }

    #[test]
    fn metrics_have_their_documented_names() {
        let text = Metrics::new(Timestamp::UNIX_EPOCH).encode().unwrap();
        for name in [
            "quorate_build_info{version=\"",
            "process_start_time_seconds 0.0\n",
            "quorate_leader 0\n",
            "quorate_leadership_changes_total 0\n",
        ] {
            assert!(text.contains(name), "{name} is missing in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
