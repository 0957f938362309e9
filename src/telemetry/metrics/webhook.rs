//! Metrics of the webhook server.
//!
//! Labels are closed enums: nothing that a request contains becomes a label, so a request can
//! neither grow the number of series nor expose names of other users.

use std::fmt::{Error, Write};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// From a tenth of a millisecond to ten seconds. Kubernetes allows 50 ms for a conversion.
const DURATION_BUCKETS: [f64; 9] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

/// Declares a label: the variants, and the label value of each.
macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident => $value:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name { $($(#[$what])* $variant,)+ }

        impl $name {
            const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The value in metrics and log lines.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $value,)+ }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), Error> {
                encoder.write_str(self.as_str())
            }
        }
    };
}

label! {
    /// The type of a request.
    RequestType {
        /// Mutating admission: defaulting.
        Mutate => "mutate",
        /// Validating admission.
        Validate => "validate",
        /// Conversion to another version.
        Convert => "convert",
    }
}

label! {
    /// The outcome of a request.
    RequestOutcome {
        /// Allowed without a patch.
        Allowed => "allowed",
        /// Allowed, with a patch.
        Patched => "patched",
        /// Denied with reasons.
        Denied => "denied",
        /// Every object converted.
        Converted => "converted",
        /// At least one object could not be converted.
        Unconverted => "unconverted",
        /// Not a valid review.
        Unreadable => "unreadable",
        /// The handler panicked; the panic was caught.
        Panicked => "panicked",
    }
}

label! {
    /// Why a connection or a request did not reach the handler.
    RejectReason {
        /// `accept` failed.
        Accept => "accept",
        /// The TLS handshake failed: other protocol, unsupported version, or untrusted certificate.
        Handshake => "handshake",
        /// The handshake took too long.
        SlowHandshake => "slow_handshake",
        /// No request came after the handshake.
        NoRequest => "no_request",
        /// A request's header took too long.
        SlowHeader => "slow_header",
        /// A request's body took too long.
        SlowBody => "slow_body",
        /// The response was read too slowly.
        SlowReader => "slow_reader",
        /// All connections are in use, and none could be evicted.
        ConnectionLimit => "connection_limit",
        /// An idle connection was evicted for a new one.
        Evicted => "evicted",
        /// Not HTTP, or aborted in the middle.
        Malformed => "malformed",
        /// No such path.
        Path => "path",
        /// A method other than POST.
        Method => "method",
        /// A media type other than uncompressed JSON.
        MediaType => "media_type",
        /// A body beyond its size limit.
        TooLarge => "too_large",
        /// The body exceeds what is left of the memory budget.
        MemoryBudget => "memory_budget",
        /// Too many concurrent requests.
        Busy => "busy",
        /// A panic ended the connection.
        Panicked => "panicked",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    r#type: RequestType,
    outcome: RequestOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: RequestType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: RejectReason,
}

/// Handles to the metrics of the webhook server. Clones share their counts.
#[derive(Clone)]
pub(crate) struct WebhookMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<TypeLabel, Histogram, fn() -> Histogram>,
    converted_objects: Counter,
    connections: Gauge,
    rejected: Family<ReasonLabel, Counter>,
}

impl WebhookMetrics {
    /// Registers everything.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(durations),
            converted_objects: Counter::default(),
            connections: Gauge::default(),
            rejected: Family::default(),
        };
        registry.register(
            "quorate_webhook_requests",
            "Webhook requests, by type and outcome",
            metrics.requests.clone(),
        );
        registry.register(
            "quorate_webhook_request_duration_seconds",
            "Time from the last byte of a request to its response, by type",
            metrics.durations.clone(),
        );
        registry.register(
            "quorate_webhook_converted_objects",
            "Objects converted by the webhook",
            metrics.converted_objects.clone(),
        );
        registry.register(
            "quorate_webhook_connections",
            "Open connections to the webhook server",
            metrics.connections.clone(),
        );
        registry.register(
            "quorate_webhook_rejected",
            "Rejected connections and requests, by reason",
            metrics.rejected.clone(),
        );
        // Every series exists from the start: absence would look like a missing metric.
        for reason in RejectReason::ALL {
            drop(metrics.rejected.get_or_create(&ReasonLabel { reason: *reason }));
        }
        for r#type in RequestType::ALL.iter().copied() {
            drop(metrics.durations.get_or_create(&TypeLabel { r#type }));
            for outcome in RequestOutcome::ALL.iter().copied() {
                drop(metrics.requests.get_or_create(&RequestLabels { r#type, outcome }));
            }
        }
        metrics
    }

    /// Counts a request that was answered `duration` after its last byte.
    pub(crate) fn request(&self, r#type: RequestType, outcome: RequestOutcome, duration: Duration) {
        self.requests.get_or_create(&RequestLabels { r#type, outcome }).inc();
        self.durations.get_or_create(&TypeLabel { r#type }).observe(duration.as_secs_f64());
    }

    /// Counts converted objects.
    pub(crate) fn converted(&self, objects: usize) {
        self.converted_objects.inc_by(u64::try_from(objects).unwrap_or(u64::MAX));
    }

    /// Records the number of open connections.
    pub(crate) fn connections(&self, count: usize) {
        self.connections.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a rejected connection or request.
    pub(crate) fn rejected(&self, reason: RejectReason) {
        self.rejected.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// The count of one reason.
    #[cfg(test)]
    pub(crate) fn count(&self, reason: RejectReason) -> u64 {
        self.rejected.get_or_create(&ReasonLabel { reason }).get()
    }
}

fn durations() -> Histogram {
    Histogram::new(DURATION_BUCKETS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn recorded_values_are_encoded_under_their_documented_names() {
        let mut registry = Registry::default();
        let metrics = WebhookMetrics::new(&mut registry);
        metrics.request(RequestType::Convert, RequestOutcome::Converted, Duration::from_millis(2));
        metrics.converted(3);
        metrics.connections(7);
        metrics.rejected(RejectReason::SlowBody);
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        for line in [
            "quorate_webhook_requests_total{type=\"convert\",outcome=\"converted\"} 1\n",
            "quorate_webhook_request_duration_seconds_bucket{le=\"0.001\",type=\"convert\"} 0\n",
            "quorate_webhook_request_duration_seconds_bucket{le=\"0.005\",type=\"convert\"} 1\n",
            "quorate_webhook_request_duration_seconds_count{type=\"mutate\"} 0\n",
            "quorate_webhook_converted_objects_total 3\n",
            "quorate_webhook_connections 7\n",
            "quorate_webhook_rejected_total{reason=\"slow_body\"} 1\n",
            "quorate_webhook_rejected_total{reason=\"panicked\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn reason_labels_are_unique() {
        let labels: BTreeSet<&str> =
            RejectReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(labels.len(), RejectReason::ALL.len());
    }
}
