//! Metrics of the webhook serving certificate and its CAs.
//!
//! Every label comes from a closed set in the code.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = [(&'static str, &'static str); 1];

/// Handles to the certificate metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateMetrics {
    expiry: Family<Labels, Gauge>,
    injections: Family<Labels, Counter>,
    steps: Family<Labels, Counter>,
    targets: Family<Labels, Gauge>,
}

impl CertificateMetrics {
    /// Registers the metrics.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let Self { expiry, injections, steps, targets } = all.clone();
        registry.register(
            "quorate_certificate_expiry_timestamp_seconds",
            "Expiry of the webhook serving certificate and its CAs, Unix time",
            expiry,
        );
        registry.register(
            "quorate_ca_bundle_injections",
            "CA bundles written into CRDs and webhook configurations, by kind of target",
            injections,
        );
        registry.register(
            "quorate_ca_rotation_steps",
            "CA rotation steps of the leader, by reason",
            steps,
        );
        registry.register(
            "quorate_ca_bundle_targets",
            "CRDs and webhook configurations with a CA bundle, by state",
            targets,
        );
        all
    }

    /// Records the expiry of `leaf`, `current`, `next` or `previous`; `None` removes the series.
    pub(crate) fn expires(&self, which: &'static str, until: Option<Timestamp>) {
        let labels = [("which", which)];
        match until {
            Some(time) => {
                self.expiry.get_or_create(&labels).set(time.as_second());
            }
            None => {
                self.expiry.remove(&labels);
            }
        }
    }

    /// Counts a CA bundle that was written into a target of this kind.
    pub(crate) fn injected(&self, target: &'static str) {
        self.injections.get_or_create(&[("target", target)]).inc();
    }

    /// Counts a rotation step.
    pub(crate) fn step(&self, reason: &'static str) {
        self.steps.get_or_create(&[("reason", reason)]).inc();
    }

    /// Records how many targets are in this state, as last observed by the leader.
    pub(crate) fn targets(&self, state: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.targets.get_or_create(&[("state", state)]).set(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text;

    #[test]
    fn metrics_have_their_documented_names_and_removed_series_disappear() {
        let mut registry = Registry::default();
        let metrics = CertificateMetrics::register(&mut registry);
        metrics.expires("leaf", Timestamp::from_second(77).ok());
        metrics.expires("next", Timestamp::from_second(88).ok());
        metrics.expires("next", None);
        metrics.injected("definition");
        metrics.step("CurrentOld");
        metrics.targets("managed", 4);
        let mut encoded = String::new();
        text::encode(&mut encoded, &registry).unwrap();
        for line in [
            "quorate_certificate_expiry_timestamp_seconds{which=\"leaf\"} 77\n",
            "quorate_ca_bundle_injections_total{target=\"definition\"} 1\n",
            "quorate_ca_rotation_steps_total{reason=\"CurrentOld\"} 1\n",
            "quorate_ca_bundle_targets{state=\"managed\"} 4\n",
        ] {
            assert!(encoded.contains(line), "{line} is missing in {encoded}");
        }
        assert!(!encoded.contains("88"), "{encoded}");
    }
}
