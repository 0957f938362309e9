//! The measurements of the operator's rights in namespaces.
//! Comes in: facts from the wing that keeps these rights. Goes out: a gauge and a counter.
//! May touch: the registry. Namespaces are not labels: a cluster may have thousands.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What is measured of the operator's rights.
#[derive(Clone)]
pub(crate) struct GrantMetrics {
    granted: Gauge,
    steps: Family<[(&'static str, &'static str); 1], Counter>,
}

impl GrantMetrics {
    /// Puts the measurements into the registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let granted: Gauge = Gauge::default();
        registry.register(
            "quorate_namespaces_granted",
            "Namespaces in which the operator has its rights, as the leader sees them",
            granted.clone(),
        );
        let steps: Family<_, _> = Family::default();
        registry.register(
            "quorate_grant_steps",
            "Changes made to the operator's rights in namespaces, by what asked for them",
            steps.clone(),
        );
        Self { granted, steps }
    }

    /// Notes in how many namespaces the operator has its rights.
    pub(crate) fn granted(&self, namespaces: usize) {
        self.granted.set(i64::try_from(namespaces).unwrap_or(i64::MAX));
    }

    /// Counts a change that was made.
    pub(crate) fn step(&self, because: &'static str) {
        self.steps.get_or_create(&[("because", because)]).inc();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use crate::telemetry::Metrics;

    #[test]
    fn rights_are_told_under_their_promised_names() {
        let metrics = Metrics::new(Timestamp::UNIX_EPOCH);
        metrics.grants.granted(3);
        metrics.grants.step("ObjectAppeared");
        metrics.grants.step("ObjectAppeared");
        let text = metrics.encode().unwrap();
        for line in [
            "quorate_namespaces_granted 3\n",
            "quorate_grant_steps_total{because=\"ObjectAppeared\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
