//! Metrics of the namespace access controller.
//!
//! The leader reports them: other replicas show zero.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Handles to the metrics of the operator's access to namespaces.
#[derive(Clone)]
pub(crate) struct NamespaceAccessMetrics {
    granted: Gauge,
    changes: Family<[(&'static str, &'static str); 1], Counter>,
}

impl NamespaceAccessMetrics {
    /// Registers the metrics.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let granted: Gauge = Gauge::default();
        registry.register(
            "quorate_namespace_access_granted",
            "Namespaces in which the operator has its RoleBinding, as observed by the leader",
            granted.clone(),
        );
        let changes: Family<_, _> = Family::default();
        registry.register(
            "quorate_namespace_access_changes",
            "Changes to the operator's RoleBindings, by reason",
            changes.clone(),
        );
        Self { granted, changes }
    }

    /// Records the number of namespaces with the operator's `RoleBinding`.
    pub(crate) fn granted(&self, namespaces: usize) {
        self.granted.set(i64::try_from(namespaces).unwrap_or(i64::MAX));
    }

    /// Counts a change.
    pub(crate) fn change(&self, reason: &'static str) {
        self.changes.get_or_create(&[("reason", reason)]).inc();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use crate::telemetry::Metrics;

    #[test]
    fn namespace_access_metrics_have_their_documented_names() {
        let metrics = Metrics::new(Timestamp::UNIX_EPOCH);
        metrics.namespace_access.granted(3);
        metrics.namespace_access.change("ObjectAppeared");
        metrics.namespace_access.change("ObjectAppeared");
        let text = metrics.encode().unwrap();
        for line in [
            "quorate_namespace_access_granted 3\n",
            "quorate_namespace_access_changes_total{reason=\"ObjectAppeared\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
