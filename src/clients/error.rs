//! Errors of calls to the API server, and their classes.
//!
//! An error never contains what was sent or received: that may have been a private key.

use std::time::Duration;

use kube::core::Status;
use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use tokio::time;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The API server responded with an error, or is unreachable.
    #[error("failed to {verb} {what}")]
    Call {
        verb: &'static str,
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// No response came in time. A write may still be applied.
    #[error("failed to {verb} {what}: no response within {}ms", .timeout.as_millis())]
    TimedOut { verb: &'static str, what: String, timeout: Duration },
    /// The response cannot be parsed. A write was applied.
    #[error("failed to {verb} {what}: the response is invalid")]
    InvalidResponse { verb: &'static str, what: String },
}

/// The class of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The object does not exist.
    NotFound,
    /// The object has changed since it was read, or exists already.
    Conflict,
    /// The API server rejected the request: the same request will fail again.
    Rejected,
    /// The response does not show whether the call was processed.
    ServerError,
    /// No response came: it is unknown whether the call was processed.
    Unreachable,
}

impl ApiError {
    /// The class of the error.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::TimedOut { .. } => ErrorClass::Unreachable,
            Self::InvalidResponse { .. } => ErrorClass::ServerError,
            Self::Call { source, .. } => class(source),
        }
    }

    fn status(&self) -> Option<&Status> {
        let Self::Call { source, .. } = self else { return None };
        let kube::Error::Api(status) = source.as_ref() else { return None };
        Some(status)
    }

    /// Whether the API server does not serve the kind. Otherwise the response names the object.
    pub(crate) fn is_unknown_kind(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404 && !names_object(status))
    }

    /// Whether an object of that name exists. Other conflicts do not imply it: a quota may respond
    /// with one too.
    pub(crate) fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// Whether the object itself was denied: by a quota, a policy or the validation of the API
    /// server.
    pub(crate) fn is_denied(&self) -> bool {
        self.status().is_some_and(|status| matches!(status.code, 403 | 422))
    }

    /// Whether a continue token has expired.
    pub(crate) fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410)
    }

    /// The token that continues an expired list as it is now, if the API server sent one.
    pub(crate) fn continue_token(&self) -> Option<String> {
        let token = self.status()?.metadata.as_ref()?.continue_.clone()?;
        (!token.is_empty()).then_some(token)
    }
}

fn names_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// The class of an error of the client.
#[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors are not responses")]
pub(crate) fn class(error: &kube::Error) -> ErrorClass {
    match error {
        kube::Error::Api(status) => match status.code {
            // Without a name the path was not found: a proxy responded, or an API server that does
            // not serve the kind yet.
            404 if names_object(status) => ErrorClass::NotFound,
            409 => ErrorClass::Conflict,
            // A gateway may respond with 429 after the call was processed.
            404 | 429 => ErrorClass::ServerError,
            400..=499 => ErrorClass::Rejected,
            _ => ErrorClass::ServerError,
        },
        _ => ErrorClass::Unreachable,
    }
}

/// The class of a failed watch.
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

/// A call, as its errors describe it.
pub(crate) struct Operation<'a> {
    pub(crate) verb: &'static str,
    pub(crate) what: &'a str,
    pub(crate) timeout: Duration,
}

impl Operation<'_> {
    /// Waits for the response, and parses it here: the client would log what it cannot parse.
    pub(crate) async fn response<T: DeserializeOwned>(
        self,
        call: impl Future<Output = kube::Result<String>>,
    ) -> Result<T, ApiError> {
        let Self { verb, what, timeout } = self;
        let what = || what.to_owned();
        match time::timeout(timeout, call).await {
            Ok(Ok(text)) => {
                // The error of the parser may quote the text, so it is dropped.
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

/// The response, or none if the object does not exist.
pub(crate) fn none_if_not_found<T>(response: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match response {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.class() == ErrorClass::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api_error(code: u16, name: &str) -> kube::Error {
        let status = serde_json::json!({ "code": code, "details": { "name": name } });
        kube::Error::Api(serde_json::from_value::<Status>(status).unwrap().boxed())
    }

    #[test]
    fn object_is_not_found_only_if_the_response_names_it() {
        assert_eq!(class(&api_error(404, "quorate")), ErrorClass::NotFound);
        assert_eq!(class(&api_error(404, "")), ErrorClass::ServerError);
        for (code, expected) in [
            (409, ErrorClass::Conflict),
            (403, ErrorClass::Rejected),
            (422, ErrorClass::Rejected),
            (429, ErrorClass::ServerError),
            (503, ErrorClass::ServerError),
        ] {
            assert_eq!(class(&api_error(code, "quorate")), expected, "{code}");
        }
    }

    #[tokio::test]
    async fn invalid_response_is_not_quoted() {
        let operation =
            Operation { verb: "read", what: "Secret a/b", timeout: Duration::from_secs(1) };
        let text = async { Ok(r#"{"data": "hunter2"}"#.to_owned()) };
        let error = operation.response::<Vec<u8>>(text).await.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
        assert_eq!(error.class(), ErrorClass::ServerError);
    }

    #[tokio::test(start_paused = true)]
    async fn call_ends_after_its_timeout() {
        let operation =
            Operation { verb: "read", what: "Secret a/b", timeout: Duration::from_secs(1) };
        let error = operation.response::<()>(std::future::pending()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Unreachable);
        assert_eq!(error.to_string(), "failed to read Secret a/b: no response within 1000ms");
    }
}
