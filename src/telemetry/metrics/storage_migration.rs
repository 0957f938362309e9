//! Metrics of storage version migration, by kind.
//!
//! The counters are fed by the storage migration controller; the leader alone reports them.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type KindLabels = [(&'static str, &'static str); 1];
type OutcomeLabels = [(&'static str, &'static str); 2];

/// Handles to the metrics of storage version migration.
#[derive(Clone)]
pub(crate) struct StorageMigrationMetrics {
    stored: Family<KindLabels, Gauge>,
    running: Family<KindLabels, Gauge>,
    remaining: Family<KindLabels, Gauge>,
    objects: Family<OutcomeLabels, Counter>,
    blocked: Gauge,
}

/// Objects by outcome since the last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MigrationCounts {
    pub(crate) written: u64,
    pub(crate) current: u64,
    pub(crate) deleted: u64,
    pub(crate) failed: u64,
}

impl StorageMigrationMetrics {
    /// Registers the metrics.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            stored: Family::default(),
            running: Family::default(),
            remaining: Family::default(),
            objects: Family::default(),
            blocked: Gauge::default(),
        };
        registry.register(
            "quorate_stored_versions",
            "Entries of status.storedVersions of a kind; 1 when no migration is needed",
            metrics.stored.clone(),
        );
        registry.register(
            "quorate_storage_migration_running",
            "Whether a storage version migration of a kind is running",
            metrics.running.clone(),
        );
        registry.register(
            "quorate_storage_migration_remaining",
            "Objects of a kind that the running migration has not processed yet",
            metrics.remaining.clone(),
        );
        registry.register(
            "quorate_storage_migration_objects",
            "Objects of a kind that were processed, by outcome",
            metrics.objects.clone(),
        );
        registry.register(
            "quorate_controllers_blocked",
            "Whether controllers are stopped because storedVersions has a version that this release does not know",
            metrics.blocked.clone(),
        );
        metrics
    }

    /// Records the number of stored versions of a kind.
    pub(crate) fn stored(&self, kind: &'static str, versions: usize) {
        self.stored.get_or_create(&[("kind", kind)]).set(number(versions));
    }

    /// Records whether a migration is running, and how many objects remain.
    pub(crate) fn run(&self, kind: &'static str, running: bool, remaining: u64) {
        self.running.get_or_create(&[("kind", kind)]).set(i64::from(running));
        self.remaining.get_or_create(&[("kind", kind)]).set(number(remaining));
    }

    /// Counts processed objects.
    pub(crate) fn count_objects(&self, kind: &'static str, counts: MigrationCounts) {
        let MigrationCounts { written, current, deleted, failed } = counts;
        for (outcome, count) in
            [("written", written), ("current", current), ("deleted", deleted), ("failed", failed)]
        {
            self.objects.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc_by(count);
        }
    }

    /// Records whether the controllers are stopped.
    pub(crate) fn blocked(&self, blocked: bool) {
        self.blocked.set(i64::from(blocked));
    }
}

fn number<N: TryInto<i64>>(number: N) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Metrics;

    #[test]
    fn storage_migration_metrics_have_their_documented_names() {
        let metrics = Metrics::new(Timestamp::UNIX_EPOCH);
        metrics.storage_migration.stored("EtcdCluster", 2);
        metrics.storage_migration.run("EtcdCluster", true, 7);
        metrics.storage_migration.count_objects(
            "EtcdCluster",
            MigrationCounts { written: 3, ..MigrationCounts::default() },
        );
        metrics.storage_migration.blocked(true);
        let text = metrics.encode().unwrap();
        for line in [
            "quorate_stored_versions{kind=\"EtcdCluster\"} 2\n",
            "quorate_storage_migration_running{kind=\"EtcdCluster\"} 1\n",
            "quorate_storage_migration_remaining{kind=\"EtcdCluster\"} 7\n",
            "quorate_storage_migration_objects_total{kind=\"EtcdCluster\",outcome=\"written\"} 3\n",
            "quorate_controllers_blocked 1\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
