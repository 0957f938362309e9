//! The leader election Lease: read, create, replace.
//!
//! Each call has a timeout. Nothing is retried here.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time;

use crate::api::names;

/// One Lease at the API server.
#[derive(Clone)]
pub(crate) struct LeaseClient {
    api: Api<Lease>,
    /// The Lease's name.
    pub(crate) name: String,
    /// The Lease's namespace.
    pub(crate) namespace: String,
}

/// How a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    /// The API server answered with an error, or could not be reached.
    #[error("failed to {verb} the lease {lease}")]
    Call {
        verb: &'static str,
        lease: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time. A write may still land.
    #[error("failed to {verb} the lease {lease}: no answer within {}ms", .timeout.as_millis())]
    TimedOut { verb: &'static str, lease: String, timeout: Duration },
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseErrorClass {
    /// There is no such Lease, or no such namespace.
    NotFound,
    /// The Lease has changed since it was read, or exists already.
    Conflict,
    /// The API server understood and said no: asking again changes nothing by itself.
    Rejected,
    /// An answer came that says nothing about the call: overload, or a failure on the way. Nobody
    /// knows whether it was done.
    ServerError,
    /// No answer came. Nobody knows whether it was done.
    Unreachable,
}

impl LeaseError {
    /// What the failure means; the only place that knows status codes.
    #[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors are no answers")]
    pub(crate) fn class(&self) -> LeaseErrorClass {
        match self {
            Self::TimedOut { .. } => LeaseErrorClass::Unreachable,
            Self::Call { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => match status.code {
                    404 => LeaseErrorClass::NotFound,
                    409 => LeaseErrorClass::Conflict,
                    // Too many requests may be said by a gateway after the call went through.
                    429 => LeaseErrorClass::ServerError,
                    400..=499 => LeaseErrorClass::Rejected,
                    _ => LeaseErrorClass::ServerError,
                },
                _ => LeaseErrorClass::Unreachable,
            },
        }
    }
}

impl LeaseClient {
    /// The Lease `name` in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// The Lease, or none if the API server says that there is none.
    pub(crate) async fn read(&self, timeout: Duration) -> Result<Option<Lease>, LeaseError> {
        self.call("read", timeout, self.api.get_opt(&self.name)).await
    }

    /// Makes the Lease; a conflict if it exists.
    pub(crate) async fn create(
        &self,
        lease: &Lease,
        timeout: Duration,
    ) -> Result<Lease, LeaseError> {
        self.call("create", timeout, self.api.create(&post_params(), lease)).await
    }

    /// Replaces the Lease; a conflict if it is not the version in `lease` any more.
    pub(crate) async fn replace(
        &self,
        lease: &Lease,
        timeout: Duration,
    ) -> Result<Lease, LeaseError> {
        self.call("replace", timeout, self.api.replace(&self.name, &post_params(), lease)).await
    }

    async fn call<T>(
        &self,
        verb: &'static str,
        timeout: Duration,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, LeaseError> {
        let lease = || format!("{}/{}", self.namespace, self.name);
        match time::timeout(timeout, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => {
                Err(LeaseError::Call { verb, lease: lease(), source: Box::new(source) })
            }
            // The timer has nothing to tell but that it rang.
            Err(time::error::Elapsed { .. }) => {
                Err(LeaseError::TimedOut { verb, lease: lease(), timeout })
            }
        }
    }
}

fn post_params() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) }
}
