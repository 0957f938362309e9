//! The Lease at the API server: read, create, replace; each with a time limit.
//! Comes in: a Lease to send. Goes out: the Lease as the API server has it, or how the call ended.
//! May touch: the API server. It chooses nothing and repeats nothing.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time;

use crate::api::names;

/// One Lease at the API server.
#[derive(Clone)]
pub(crate) struct LeasePort {
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
    #[error("failed to {doing} the lease {lease}")]
    Call {
        doing: &'static str,
        lease: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time. A write may still land.
    #[error("failed to {doing} the lease {lease}: no answer within {}ms", .limit.as_millis())]
    TimedOut { doing: &'static str, lease: String, limit: Duration },
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// There is no such Lease, or no such namespace.
    NotFound,
    /// The Lease has changed since it was read, or exists already.
    Conflict,
    /// The API server understood and said no: asking again changes nothing by itself.
    Refused,
    /// An answer came that says nothing about the call: overload, or a failure on the way. Nobody
    /// knows whether it was done.
    Unwell,
    /// No answer came. Nobody knows whether it was done.
    Unreachable,
}

impl LeaseError {
    /// What the failure means; the only place that knows status codes.
    #[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors are no answers")]
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::TimedOut { .. } => Class::Unreachable,
            Self::Call { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => match status.code {
                    404 => Class::NotFound,
                    409 => Class::Conflict,
                    // Too many requests may be said by a gateway after the call went through.
                    429 => Class::Unwell,
                    400..=499 => Class::Refused,
                    _ => Class::Unwell,
                },
                _ => Class::Unreachable,
            },
        }
    }
}

impl LeasePort {
    /// The Lease `name` in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// The Lease, or none if the API server says that there is none.
    pub(crate) async fn read(&self, limit: Duration) -> Result<Option<Lease>, LeaseError> {
        self.call("read", limit, self.api.get_opt(&self.name)).await
    }

    /// Makes the Lease; a conflict if it exists.
    pub(crate) async fn create(&self, lease: &Lease, limit: Duration) -> Result<Lease, LeaseError> {
        self.call("create", limit, self.api.create(&as_us(), lease)).await
    }

    /// Replaces the Lease; a conflict if it is not the version in `lease` any more.
    pub(crate) async fn replace(
        &self,
        lease: &Lease,
        limit: Duration,
    ) -> Result<Lease, LeaseError> {
        self.call("replace", limit, self.api.replace(&self.name, &as_us(), lease)).await
    }

    async fn call<T>(
        &self,
        doing: &'static str,
        limit: Duration,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, LeaseError> {
        let lease = || format!("{}/{}", self.namespace, self.name);
        match time::timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => {
                Err(LeaseError::Call { doing, lease: lease(), source: Box::new(source) })
            }
            // The timer has nothing to tell but that it rang.
            Err(time::error::Elapsed { .. }) => {
                Err(LeaseError::TimedOut { doing, lease: lease(), limit })
            }
        }
    }
}

fn as_us() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) }
}
