//! A watch that is restarted with backoff after every failure.
//!
//! kube's watcher resumes after most failures, and its caller cannot detect when it has recovered;
//! here a failure is always followed by a complete list, or by another failure.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use kube::runtime::watcher::{self, Config, DefaultBackoff, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time;

/// A list without progress for this long is restarted. The watch itself has its own timeout.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a watch failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    /// The API server responded with an error, or was unreachable.
    #[error("failed to watch")]
    Watch(#[source] Box<watcher::Error>),
    /// The list made no progress before the timeout.
    #[error("failed to list: no answer within {} seconds", LIST_TIMEOUT.as_secs())]
    TimedOut,
    /// The stream ended, which a watcher never does.
    #[error("failed to watch: the stream has ended")]
    Ended,
}

/// Classes of failed watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchErrorClass {
    /// The kind is not served.
    NotFound,
    /// The `resourceVersion` has expired; this is expected, and a new list resolves it.
    Expired,
    /// List or watch is forbidden.
    Rejected,
    /// The API server failed or is unreachable.
    ServerError,
}

impl WatchError {
    /// The class of the error; the only place that knows status codes.
    #[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors have no status code")]
    pub(crate) fn class(&self) -> WatchErrorClass {
        let error = match self {
            Self::Watch(error) => error.as_ref(),
            Self::TimedOut | Self::Ended => return WatchErrorClass::ServerError,
        };
        let code = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status) => status.code,
            _ => return WatchErrorClass::ServerError,
        };
        match code {
            404 => WatchErrorClass::NotFound,
            410 => WatchErrorClass::Expired,
            401 | 403 => WatchErrorClass::Rejected,
            _ => WatchErrorClass::ServerError,
        }
    }
}

/// Watches the objects that `api` and `config` select.
pub(crate) fn relisting_watch<K>(
    api: Api<K>,
    config: Config,
) -> BoxStream<'static, Result<Event<K>, WatchError>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watch = RelistingWatch {
        api,
        config,
        events: None,
        listing: true,
        backoff: DefaultBackoff::default(),
        delay: None,
    };
    stream::unfold(watch, async |mut watch| Some((watch.next().await, watch))).boxed()
}

struct RelistingWatch<K> {
    api: Api<K>,
    config: Config,
    events: Option<BoxStream<'static, watcher::Result<Event<K>>>>,
    /// Whether the list is incomplete.
    listing: bool,
    /// Never reset explicitly: each list starts with an event, and a list that always fails would
    /// be requested every second. The backoff resets itself after two minutes without failure.
    backoff: DefaultBackoff,
    delay: Option<Duration>,
}

impl<K> RelistingWatch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async fn next(&mut self) -> Result<Event<K>, WatchError> {
        if let Some(delay) = self.delay.take() {
            time::sleep(delay).await;
        }
        let start = || watcher::watcher(self.api.clone(), self.config.clone()).boxed();
        let events = self.events.get_or_insert_with(start);
        let next = if self.listing {
            time::timeout(LIST_TIMEOUT, events.next()).await
        } else {
            Ok(events.next().await)
        };
        let error = match next {
            Ok(Some(Ok(event))) => {
                self.listing = match event {
                    Event::Init | Event::InitApply(_) => true,
                    Event::InitDone | Event::Apply(_) | Event::Delete(_) => false,
                };
                return Ok(event);
            }
            Ok(Some(Err(error))) => WatchError::Watch(Box::new(error)),
            Ok(None) => WatchError::Ended,
            Err(time::error::Elapsed { .. }) => WatchError::TimedOut,
        };
        self.events = None;
        self.listing = true;
        self.delay = self.backoff.next();
        Err(error)
    }
}

#[cfg(test)]
mod tests;
