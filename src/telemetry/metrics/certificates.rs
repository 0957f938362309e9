//! The measurements of the webhooks' certificates and their authorities.
//! Comes in: facts, told by whoever knows them. Goes out: handles in the one registry.
//! May touch: nothing else. Every label comes from a closed set of words in the code.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = [(&'static str, &'static str); 1];

/// The handles.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateMetrics {
    expiry: Family<Labels, Gauge>,
    injections: Family<Labels, Counter>,
    steps: Family<Labels, Counter>,
    targets: Family<Labels, Gauge>,
}

impl CertificateMetrics {
    /// Handles to what is now in the registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let Self { expiry, injections, steps, targets } = all.clone();
        registry.register(
            "quorate_certificate_expiry_timestamp_seconds",
            "When a certificate of the webhooks or an authority ends, Unix time",
            expiry,
        );
        registry.register(
            "quorate_ca_injections",
            "Bundles of authorities written into definitions and webhook configurations",
            injections,
        );
        registry.register(
            "quorate_ca_steps",
            "Writes of the leader about the webhooks' authorities, by the rule that asked for them",
            steps,
        );
        registry.register(
            "quorate_ca_targets",
            "Definitions and webhook configurations by how they stand to our authorities",
            targets,
        );
        all
    }

    /// Notes when `which` ends: `leaf`, `current`, `next` or `previous`; none, if there is none.
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

    /// Counts a bundle that was written into a target of this kind.
    pub(crate) fn injected(&self, target: &'static str) {
        self.injections.get_or_create(&[("target", target)]).inc();
    }

    /// Counts a write that was made for this reason.
    pub(crate) fn stepped(&self, because: &'static str) {
        self.steps.get_or_create(&[("because", because)]).inc();
    }

    /// Notes how many targets are in this state, as the leader saw them last.
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
    fn every_promised_metric_is_told_under_its_name_and_what_is_gone_is_told_no_more() {
        let mut registry = Registry::default();
        let metrics = CertificateMetrics::register(&mut registry);
        metrics.expires("leaf", Timestamp::from_second(77).ok());
        metrics.expires("next", Timestamp::from_second(88).ok());
        metrics.expires("next", None);
        metrics.injected("definition");
        metrics.stepped("CurrentOld");
        metrics.targets("ours", 4);
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        for line in [
            "quorate_certificate_expiry_timestamp_seconds{which=\"leaf\"} 77\n",
            "quorate_ca_injections_total{target=\"definition\"} 1\n",
            "quorate_ca_steps_total{because=\"CurrentOld\"} 1\n",
            "quorate_ca_targets{state=\"ours\"} 4\n",
        ] {
            assert!(told.contains(line), "{line} is missing in {told}");
        }
        assert!(!told.contains("88"), "{told}");
    }
}
