//! Errors of calls to the API server, and their classes.
//!
//! An error never contains what was sent or received: that may have been a private key.

use std::time::Duration;

use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use tokio::time;

/// How a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The API server answered with an error, or could not be reached.
    #[error("failed to {verb} {what}")]
    Call {
        verb: &'static str,
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time. A write may still land.
    #[error("failed to {verb} {what}: no answer within {}ms", .timeout.as_millis())]
    TimedOut { verb: &'static str, what: String, timeout: Duration },
    /// The answer is none that we understand. A write has landed.
    #[error("failed to {verb} {what}: the answer cannot be read")]
    InvalidResponse { verb: &'static str, what: String },
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// There is no such object.
    NotFound,
    /// The object has changed since it was read, or exists already.
    Conflict,
    /// The API server understood and said no: asking again changes nothing by itself.
    Rejected,
    /// An answer came that says nothing operation the call. Nobody knows whether it was done.
    ServerError,
    /// No answer came. Nobody knows whether it was done.
    Unreachable,
}

impl ApiError {
    /// What the failure means.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::TimedOut { .. } => ErrorClass::Unreachable,
            Self::InvalidResponse { .. } => ErrorClass::ServerError,
            Self::Call { source, .. } => class(source),
        }
    }

    /// Whether the API server does not know the kind at all.
    pub(crate) fn is_unknown_kind(&self) -> bool {
        let Self::Call { source, .. } = self else { return false };
        let kube::Error::Api(status) = source.as_ref() else { return false };
        // Whoever knows the kind names the object.
        status.code == 404 && status.details.as_ref().is_none_or(|it| it.name.is_empty())
    }
}

/// The only place that knows status codes.
#[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors are no answers")]
pub(crate) fn class(error: &kube::Error) -> ErrorClass {
    match error {
        kube::Error::Api(status) => match status.code {
            // Without the object's name it is the path that was not found: a proxy, or a server
            // that is not ready to serve the kind.
            404 if status.details.as_ref().is_some_and(|it| !it.name.is_empty()) => {
                ErrorClass::NotFound
            }
            409 => ErrorClass::Conflict,
            // Too many requests may be said by a gateway after the call went through.
            404 | 429 => ErrorClass::ServerError,
            400..=499 => ErrorClass::Rejected,
            _ => ErrorClass::ServerError,
        },
        _ => ErrorClass::Unreachable,
    }
}

/// What the failure of a watch means.
pub(crate) fn watch_error_class(error: &watcher::Error) -> ErrorClass {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => class(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => {
            ErrorClass::ServerError
        }
    }
}

/// One thing that is called operation, in the words of its failures.
pub(crate) struct Operation<'a> {
    pub(crate) verb: &'static str,
    pub(crate) what: &'a str,
    pub(crate) timeout: Duration,
}

impl Operation<'_> {
    /// Waits for the answer. It is read here and not by the client, which would log what it cannot
    /// read.
    pub(crate) async fn answer<T: DeserializeOwned>(
        self,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<T, ApiError> {
        let Self { verb, what, timeout } = self;
        let what = || what.to_owned();
        match time::timeout(timeout, call).await {
            Ok(Ok(text)) => {
                // What the reader says might quote what it read.
                serde_json::from_str(&text)
                    .or(Err(ApiError::InvalidResponse { verb, what: what() }))
            }
            Ok(Err(source)) => Err(ApiError::Call { verb, what: what(), source: Box::new(source) }),
            Err(time::error::Elapsed { .. }) => {
                Err(ApiError::TimedOut { verb, what: what(), timeout })
            }
        }
    }
}

/// The answer, or none if the API server says that there is no such object.
pub(crate) fn none_if_not_found<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.class() == ErrorClass::NotFound => Ok(None),
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
        assert_eq!(class(&said(404, "quorate")), ErrorClass::NotFound);
        assert_eq!(class(&said(404, "")), ErrorClass::ServerError);
        for (code, meaning) in [
            (409, ErrorClass::Conflict),
            (403, ErrorClass::Rejected),
            (422, ErrorClass::Rejected),
            (429, ErrorClass::ServerError),
            (503, ErrorClass::ServerError),
        ] {
            assert_eq!(class(&said(code, "quorate")), meaning, "{code}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_is_not_quoted() {
        let operation =
            Operation { verb: "read", what: "the secret a/b", timeout: Duration::from_secs(1) };
        let text = async { Ok(r#"{"data": "hunter2"}"#.to_owned()) };
        let error = operation.answer::<Vec<u8>>(text).await.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
        assert_eq!(error.class(), ErrorClass::ServerError);
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_takes_longer_than_its_limit() {
        let operation =
            Operation { verb: "read", what: "the secret a/b", timeout: Duration::from_secs(1) };
        let error = operation.answer::<()>(std::future::pending()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Unreachable);
        assert_eq!(error.to_string(), "failed to read the secret a/b: no answer within 1000ms");
    }
}
