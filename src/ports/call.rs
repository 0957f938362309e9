//! How a call to the API server ends, for every port that has nothing of its own to say about it.
//! Comes in: a call and its limit. Goes out: the answer, or a failure and what it means.
//! May touch: the timer. A failure never tells what was sent or received: it may have been a key.

use std::time::Duration;

use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use tokio::time;

/// How a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The API server answered with an error, or could not be reached.
    #[error("failed to {doing} {what}")]
    Call {
        doing: &'static str,
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time. A write may still land.
    #[error("failed to {doing} {what}: no answer within {}ms", .limit.as_millis())]
    TimedOut { doing: &'static str, what: String, limit: Duration },
    /// The answer is none that we understand. A write has landed.
    #[error("failed to {doing} {what}: the answer cannot be read")]
    Unread { doing: &'static str, what: String },
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// There is no such object.
    NotFound,
    /// The object has changed since it was read, or exists already.
    Conflict,
    /// The API server understood and said no: asking again changes nothing by itself.
    Refused,
    /// An answer came that says nothing about the call. Nobody knows whether it was done.
    Unwell,
    /// No answer came. Nobody knows whether it was done.
    Unreachable,
}

impl CallError {
    /// What the failure means.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::TimedOut { .. } => Class::Unreachable,
            Self::Unread { .. } => Class::Unwell,
            Self::Call { source, .. } => class(source),
        }
    }

    /// Whether the API server does not know the kind at all.
    pub(crate) fn is_of_unknown_kind(&self) -> bool {
        let Self::Call { source, .. } = self else { return false };
        let kube::Error::Api(status) = source.as_ref() else { return false };
        // Whoever knows the kind names the object.
        status.code == 404 && status.details.as_ref().is_none_or(|it| it.name.is_empty())
    }
}

/// The only place that knows status codes.
#[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors are no answers")]
pub(crate) fn class(error: &kube::Error) -> Class {
    match error {
        kube::Error::Api(status) => match status.code {
            // Without the object's name it is the path that was not found: a proxy, or a server
            // that is not ready to serve the kind.
            404 if status.details.as_ref().is_some_and(|it| !it.name.is_empty()) => Class::NotFound,
            409 => Class::Conflict,
            // Too many requests may be said by a gateway after the call went through.
            404 | 429 => Class::Unwell,
            400..=499 => Class::Refused,
            _ => Class::Unwell,
        },
        _ => Class::Unreachable,
    }
}

/// What the failure of a watch means.
pub(crate) fn watch_class(error: &watcher::Error) -> Class {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => class(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => Class::Unwell,
    }
}

/// One thing that is called about, in the words of its failures.
pub(crate) struct About<'a> {
    pub(crate) doing: &'static str,
    pub(crate) what: &'a str,
    pub(crate) limit: Duration,
}

impl About<'_> {
    /// Waits for the answer. It is read here and not by the client, which would log what it cannot
    /// read.
    pub(crate) async fn answer<T: DeserializeOwned>(
        self,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<T, CallError> {
        let Self { doing, what, limit } = self;
        let what = || what.to_owned();
        match time::timeout(limit, call).await {
            Ok(Ok(text)) => {
                // What the reader says might quote what it read.
                serde_json::from_str(&text).or(Err(CallError::Unread { doing, what: what() }))
            }
            Ok(Err(source)) => {
                Err(CallError::Call { doing, what: what(), source: Box::new(source) })
            }
            Err(time::error::Elapsed { .. }) => {
                Err(CallError::TimedOut { doing, what: what(), limit })
            }
        }
    }
}

/// The answer, or none if the API server says that there is no such object.
pub(crate) fn if_there<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.class() == Class::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn said(code: u16, name: &str) -> kube::Error {
        let words = serde_json::json!({ "code": code, "details": { "name": name } });
        kube::Error::Api(serde_json::from_value::<Status>(words).unwrap().boxed())
    }

    #[test]
    fn an_object_is_absent_only_if_the_api_server_names_it() {
        assert_eq!(class(&said(404, "quorate")), Class::NotFound);
        assert_eq!(class(&said(404, "")), Class::Unwell);
        for (code, meaning) in [
            (409, Class::Conflict),
            (403, Class::Refused),
            (422, Class::Refused),
            (429, Class::Unwell),
            (503, Class::Unwell),
        ] {
            assert_eq!(class(&said(code, "quorate")), meaning, "{code}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_is_not_quoted() {
        let about = About { doing: "read", what: "the secret a/b", limit: Duration::from_secs(1) };
        let text = async { Ok(r#"{"data": "hunter2"}"#.to_owned()) };
        let error = about.answer::<Vec<u8>>(text).await.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
        assert_eq!(error.class(), Class::Unwell);
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_takes_longer_than_its_limit() {
        let about = About { doing: "read", what: "the secret a/b", limit: Duration::from_secs(1) };
        let error = about.answer::<()>(std::future::pending()).await.unwrap_err();
        assert_eq!(error.class(), Class::Unreachable);
        assert_eq!(error.to_string(), "failed to read the secret a/b: no answer within 1000ms");
    }
}
