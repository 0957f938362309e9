//! The measurements of stored objects and the versions that they are stored in.
//! Comes in: facts from the wing that carries them. Goes out: gauges and a counter, by kind.
//! May touch: the registry.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type OfKind = [(&'static str, &'static str); 1];
type OfOutcome = [(&'static str, &'static str); 2];

/// What is measured of stored objects.
#[derive(Clone)]
pub(crate) struct StorageMigrationMetrics {
    stored: Family<OfKind, Gauge>,
    running: Family<OfKind, Gauge>,
    left: Family<OfKind, Gauge>,
    objects: Family<OfOutcome, Counter>,
    refused: Gauge,
}

/// What became of objects since the last time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dealt {
    pub(crate) written: u64,
    pub(crate) fresh: u64,
    pub(crate) gone: u64,
    pub(crate) failed: u64,
}

impl StorageMigrationMetrics {
    /// Puts the measurements into the registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            stored: Family::default(),
            running: Family::default(),
            left: Family::default(),
            objects: Family::default(),
            refused: Gauge::default(),
        };
        registry.register(
            "quorate_stored_versions",
            "Versions in which objects of a kind may be stored; one is well",
            metrics.stored.clone(),
        );
        registry.register(
            "quorate_storage_migration_running",
            "Whether stored objects of a kind are being carried to another version",
            metrics.running.clone(),
        );
        registry.register(
            "quorate_storage_migration_left",
            "Objects of a kind that the pass at hand has not looked at yet",
            metrics.left.clone(),
        );
        registry.register(
            "quorate_storage_migration_objects",
            "Objects of a kind that were looked at, by what became of them",
            metrics.objects.clone(),
        );
        registry.register(
            "quorate_controllers_refused",
            "Whether no controller runs because objects are stored in a version that this release does not know",
            metrics.refused.clone(),
        );
        metrics
    }

    /// Notes in how many versions objects of a kind may be stored.
    pub(crate) fn stored(&self, kind: &'static str, versions: usize) {
        self.stored.get_or_create(&[("kind", kind)]).set(number(versions));
    }

    /// Notes whether a run is under way, and how many objects are left in its pass.
    pub(crate) fn run(&self, kind: &'static str, running: bool, left: u64) {
        self.running.get_or_create(&[("kind", kind)]).set(i64::from(running));
        self.left.get_or_create(&[("kind", kind)]).set(number(left));
    }

    /// Counts objects that were looked at.
    pub(crate) fn dealt(&self, kind: &'static str, dealt: Dealt) {
        let Dealt { written, fresh, gone, failed } = dealt;
        for (outcome, count) in
            [("written", written), ("fresh", fresh), ("gone", gone), ("failed", failed)]
        {
            self.objects.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc_by(count);
        }
    }

    /// Notes whether the controllers are kept from running.
    pub(crate) fn refused(&self, refused: bool) {
        self.refused.set(i64::from(refused));
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
    fn stored_objects_are_told_under_their_promised_names() {
        let metrics = Metrics::new(Timestamp::UNIX_EPOCH);
        metrics.storage_migration.stored("EtcdCluster", 2);
        metrics.storage_migration.run("EtcdCluster", true, 7);
        metrics.storage_migration.dealt("EtcdCluster", Dealt { written: 3, ..Dealt::default() });
        metrics.storage_migration.refused(true);
        let text = metrics.encode().unwrap();
        for line in [
            "quorate_stored_versions{kind=\"EtcdCluster\"} 2\n",
            "quorate_storage_migration_running{kind=\"EtcdCluster\"} 1\n",
            "quorate_storage_migration_left{kind=\"EtcdCluster\"} 7\n",
            "quorate_storage_migration_objects_total{kind=\"EtcdCluster\",outcome=\"written\"} 3\n",
            "quorate_controllers_refused 1\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
