//! Structured logs on stderr.

use std::error::Error;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
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

/// What is logged, and what is not.
#[derive(Debug)]
pub(crate) struct LogFilter(EnvFilter);

impl LogFilter {
    /// The filter that `text` describes: a level, or a list of levels and of parts with a `=` or
    /// a `[` in them. The library would take any other word for the name of a module and log
    /// nothing but that module: a slip of the pen in a level would be silence.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let known = |part: &str| part.contains(['=', '[']) || is_level(part);
        let fits = parts.all(known);
        fits.then(|| EnvFilter::try_new(text).ok()).flatten().map(Self)
    }
}

fn is_level(word: &str) -> bool {
    !word.is_empty() && word.parse::<LevelFilter>().is_ok()
}

/// Starts the log of this process.
pub(crate) fn start_logs(format: LogFormat, filter: LogFilter) -> Result<(), TryInitError> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter.0).with_writer(io::stderr);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
        LogFormat::Text => builder.with_ansi(false).finish().try_init(),
    }
}

/// An error with everything that caused it, outermost first; the deepest cause is often the only
/// one that helps.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(said) = said(inner) {
            return format!("{text}: {said}");
        }
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

/// What the API server said. Its client would tell it twice, the second time with everything around it.
fn said<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a str> {
    let error = match error.downcast_ref::<Box<kube::Error>>() {
        Some(boxed) => boxed,
        None => error.downcast_ref::<kube::Error>()?,
    };
    let kube::Error::Api(status) = error else { return None };
    Some(status.message.as_str()).filter(|it| !it.is_empty())
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
        assert_eq!(error_chain(&Outer(Inner)), "failed to read the lease: connection refused");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read the Secret a/b")]
    struct Call(#[source] Box<kube::Error>);

    #[test]
    fn what_the_api_server_said_is_told_once_and_alone() {
        let said = serde_json::json!({
            "status": "Failure", "code": 403, "reason": "Forbidden", "message": "b is forbidden",
        });
        let said: kube::core::Status = serde_json::from_value(said).unwrap();
        let error = Call(Box::new(kube::Error::Api(said.boxed())));
        assert_eq!(error_chain(&error), "failed to read the Secret a/b: b is forbidden");
    }

    #[test]
    fn a_filter_is_a_level_or_a_list_and_a_slip_of_the_pen_is_refused() {
        for good in ["info", "WARN", "off", "info,quorate=debug", "warn,[look]=trace"] {
            assert!(LogFilter::parse(good).is_some(), "{good:?} was refused");
        }
        for bad in ["", " ", ",", "info,", "inof", "warning", "info,loud", "quorate=loud"] {
            assert!(LogFilter::parse(bad).is_none(), "{bad:?} was taken");
        }
    }
}
