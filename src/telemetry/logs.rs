//! Structured logs on stderr.

use std::error::Error;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// One JSON object per line, for collectors.
    Json,
    /// Plain text, for users.
    Text,
}

impl LogFormat {
    /// The format of this name.
    pub(crate) fn named(text: &str) -> Option<Self> {
        match text {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// Which events are logged.
#[derive(Debug)]
pub(crate) struct LogFilter(EnvFilter);

impl LogFilter {
    /// Parses a level, or a list of levels and of directives with `=` or `[`. The library would
    /// take any other text as a module name and log only that module: after a typo in a level
    /// nothing would be logged.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let known = |part: &str| part.contains(['=', '[']) || is_level(part);
        parts.all(known).then(|| EnvFilter::try_new(text).ok()).flatten().map(Self)
    }
}

fn is_level(text: &str) -> bool {
    !text.is_empty() && text.parse::<LevelFilter>().is_ok()
}

/// Starts logging.
pub(crate) fn start_logs(format: LogFormat, filter: LogFilter) -> Result<(), TryInitError> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter.0).with_writer(io::stderr);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
        LogFormat::Text => builder.with_ansi(false).finish().try_init(),
    }
}

/// An error with all its causes, outermost first; the innermost is often the only useful one.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(message) = status_message(inner) {
            return format!("{text}: {message}");
        }
        let message = inner.to_string();
        // Some libraries already repeat the message of their cause.
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = inner.source();
    }
    text
}

/// The message of the API server. The client's own text contains it twice, with all other fields.
fn status_message<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a str> {
    let error = match error.downcast_ref::<Box<kube::Error>>() {
        Some(boxed) => boxed,
        None => error.downcast_ref::<kube::Error>()?,
    };
    let kube::Error::Api(status) = error else { return None };
    Some(status.message.as_str()).filter(|message| !message.is_empty())
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
    fn error_chain_contains_the_innermost_cause() {
        assert_eq!(error_chain(&Outer(Inner)), "failed to read the lease: connection refused");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read the Secret a/b")]
    struct Call(#[source] Box<kube::Error>);

    #[test]
    fn message_of_the_api_server_appears_once() {
        let status = serde_json::json!({
            "status": "Failure", "code": 403, "reason": "Forbidden", "message": "b is forbidden",
        });
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        let error = Call(Box::new(kube::Error::Api(status.boxed())));
        assert_eq!(error_chain(&error), "failed to read the Secret a/b: b is forbidden");
    }

    #[test]
    fn filter_is_a_level_or_a_list_and_typos_are_rejected() {
        for good in ["info", "WARN", "off", "info,quorate=debug", "warn,[observe]=trace"] {
            assert!(LogFilter::parse(good).is_some(), "{good:?} was rejected");
        }
        for bad in ["", " ", ",", "info,", "inof", "warning", "info,loud", "quorate=loud"] {
            assert!(LogFilter::parse(bad).is_none(), "{bad:?} was accepted");
        }
    }
}
