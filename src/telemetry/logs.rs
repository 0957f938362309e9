//! The log: structured lines on stderr.
//! Comes in: a form and a filter, both already checked. Goes out: the process-wide subscriber.
//! May touch: stderr. Started once, by `app`, before anything has something to say.

use std::error::Error;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// One JSON object per line, for collectors.
    Json,
    /// Words, for people.
    Text,
}

impl LogFormat {
    /// The form that is called `text`, if there is one.
    pub(crate) fn named(text: &str) -> Option<Self> {
        match text {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// Whether `text` can be used as a filter.
pub(crate) fn is_log_filter(text: &str) -> bool {
    EnvFilter::try_new(text).is_ok()
}

/// Starts the log of this process.
pub(crate) fn start_logs(format: LogFormat, filter: &str) -> Result<(), TryInitError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(io::stderr);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
        LogFormat::Text => builder.with_ansi(false).finish().try_init(),
    }
}

/// An error with everything that caused it, outermost first; the deepest cause is often the only
/// one that helps.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        // Some libraries already repeat the words of their cause.
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read the lease")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct Inner;

    #[test]
    fn the_deepest_cause_of_an_error_is_told() {
        assert_eq!(
            chain(&Outer(Inner)),
            "failed to read the lease: connection refused"
        );
    }

    #[test]
    fn a_filter_that_means_nothing_is_refused() {
        assert!(is_log_filter("info,quorate=debug"));
        assert!(!is_log_filter("quorate=loud"));
    }
}
