//! The measurements of the webhook port.
//! Comes in: how each review ended, and why a connection or a request was refused. Goes out: counts
//! and times in the registry. May touch: the registry it is given. Labels are closed lists: nothing
//! that a request says becomes one, so no request can make the list grow or read another's names.

use std::fmt::{Error, Write};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// From a tenth of a millisecond to ten seconds. 50 ms is what Kubernetes grants a conversion.
const SECONDS: [f64; 9] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

/// Declares a label: the variants, and the word of each.
macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident => $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name { $($(#[$what])* $variant,)+ }

        impl $name {
            const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word in metrics and log lines.
            pub(crate) const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), Error> {
                encoder.write_str(self.word())
            }
        }
    };
}

label! {
    /// What a review asked for.
    ReviewErrand {
        /// To fill in what was not said.
        Mutate => "mutate",
        /// Whether an object may be.
        Validate => "validate",
        /// Objects in another version.
        Convert => "convert",
    }
}

label! {
    /// How a review ended.
    ReviewOutcome {
        /// Allowed as it was.
        Allowed => "allowed",
        /// Allowed, with a patch.
        Patched => "patched",
        /// Refused with reasons.
        Denied => "denied",
        /// Every object converted.
        Converted => "converted",
        /// At least one object could not be converted.
        Unconverted => "unconverted",
        /// Not a review.
        Unreadable => "unreadable",
        /// A bug of ours, kept inside the review.
        Panicked => "panicked",
    }
}

label! {
    /// Why a connection or a request got no answer from the desk.
    Refused {
        /// The system would not hand over a connection.
        Accept => "accept",
        /// No handshake came about: another protocol, another version, or no trust.
        Handshake => "handshake",
        /// The handshake took too long.
        SlowHandshake => "slow_handshake",
        /// No request came after the handshake.
        Silent => "silent",
        /// A request's header took too long.
        SlowHeader => "slow_header",
        /// A request's body took too long.
        SlowBody => "slow_body",
        /// The answer was read too slowly.
        SlowReader => "slow_reader",
        /// Every place was taken, and none could be cleared.
        Full => "full",
        /// An idle connection that made place for a newcomer.
        Displaced => "displaced",
        /// Not HTTP, or cut off in the middle.
        Malformed => "malformed",
        /// No such path.
        Path => "path",
        /// Something else than POST.
        Method => "method",
        /// Something else than plain JSON.
        MediaType => "media_type",
        /// A body beyond its limit.
        TooLarge => "too_large",
        /// No room for the body among those of other requests.
        NoRoom => "no_room",
        /// Too many reviews at once.
        Busy => "busy",
        /// A bug of ours, which ended one connection.
        Panicked => "panicked",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    errand: ReviewErrand,
    outcome: ReviewOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    errand: ReviewErrand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Because {
    why: Refused,
}

/// The handles to what the webhook port measures. Copies count together.
#[derive(Clone)]
pub(crate) struct WebhookMetrics {
    reviews: Family<Ended, Counter>,
    seconds: Family<Asked, Histogram, fn() -> Histogram>,
    objects: Counter,
    connections: Gauge,
    refused: Family<Because, Counter>,
}

impl WebhookMetrics {
    /// Registers everything.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            reviews: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            objects: Counter::default(),
            connections: Gauge::default(),
            refused: Family::default(),
        };
        registry.register(
            "quorate_webhook_reviews",
            "Reviews that were answered",
            metrics.reviews.clone(),
        );
        registry.register(
            "quorate_webhook_review_seconds",
            "From the last byte of a review to its answer",
            metrics.seconds.clone(),
        );
        registry.register(
            "quorate_webhook_objects",
            "Objects that were converted",
            metrics.objects.clone(),
        );
        registry.register(
            "quorate_webhook_connections",
            "Connections to the webhook port",
            metrics.connections.clone(),
        );
        registry.register(
            "quorate_webhook_refused",
            "Connections and requests that got no review",
            metrics.refused.clone(),
        );
        // A count that is not there yet cannot be told from one that is missing.
        for why in Refused::ALL {
            drop(metrics.refused.get_or_create(&Because { why: *why }));
        }
        for errand in ReviewErrand::ALL.iter().copied() {
            drop(metrics.seconds.get_or_create(&Asked { errand }));
            for outcome in ReviewOutcome::ALL.iter().copied() {
                drop(metrics.reviews.get_or_create(&Ended { errand, outcome }));
            }
        }
        metrics
    }

    /// Counts a review that was answered `after` its last byte came.
    pub(crate) fn reviewed(&self, errand: ReviewErrand, outcome: ReviewOutcome, after: Duration) {
        self.reviews.get_or_create(&Ended { errand, outcome }).inc();
        self.seconds.get_or_create(&Asked { errand }).observe(after.as_secs_f64());
    }

    /// Counts objects that were converted.
    pub(crate) fn converted(&self, objects: usize) {
        self.objects.inc_by(u64::try_from(objects).unwrap_or(u64::MAX));
    }

    /// Notes how many connections there are.
    pub(crate) fn connections(&self, count: usize) {
        self.connections.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts one that was refused.
    pub(crate) fn refused(&self, why: Refused) {
        self.refused.get_or_create(&Because { why }).inc();
    }

    /// How often that was so.
    #[cfg(test)]
    pub(crate) fn count(&self, why: Refused) -> u64 {
        self.refused.get_or_create(&Because { why }).get()
    }
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn what_is_told_stands_in_the_text_under_its_name() {
        let mut registry = Registry::default();
        let metrics = WebhookMetrics::new(&mut registry);
        metrics.reviewed(ReviewErrand::Convert, ReviewOutcome::Converted, Duration::from_millis(2));
        metrics.converted(3);
        metrics.connections(7);
        metrics.refused(Refused::SlowBody);
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        for line in [
            "quorate_webhook_reviews_total{errand=\"convert\",outcome=\"converted\"} 1\n",
            "quorate_webhook_review_seconds_bucket{le=\"0.001\",errand=\"convert\"} 0\n",
            "quorate_webhook_review_seconds_bucket{le=\"0.005\",errand=\"convert\"} 1\n",
            "quorate_webhook_review_seconds_count{errand=\"mutate\"} 0\n",
            "quorate_webhook_objects_total 3\n",
            "quorate_webhook_connections 7\n",
            "quorate_webhook_refused_total{why=\"slow_body\"} 1\n",
            "quorate_webhook_refused_total{why=\"panicked\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn no_two_reasons_share_a_word() {
        let words: BTreeSet<&str> = Refused::ALL.iter().map(|why| why.word()).collect();
        assert_eq!(words.len(), Refused::ALL.len());
    }
}
