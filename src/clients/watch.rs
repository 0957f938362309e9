//! A watch that is restarted with backoff whenever it breaks.
//!
//! kube's watcher resumes after most failures, and a caller cannot tell when it has recovered; here a
//! failure is always followed by a complete list, or by another failure.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use kube::runtime::watcher::{self, Config, DefaultBackoff, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time;

/// A list that brings nothing for so long is begun anew. A watch has a timeout of its own.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a watch broke.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    /// The API server answered with an error, or not at all.
    #[error("failed to watch")]
    Watch(#[source] Box<watcher::Error>),
    /// The list brought nothing for too long.
    #[error("failed to list: no answer within {} seconds", LIST_TIMEOUT.as_secs())]
    TimedOut,
    /// The watch ended, which it never does.
    #[error("failed to watch: the watch has ended")]
    Ended,
}

/// What a broken watch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchErrorClass {
    /// There is no such kind.
    NotFound,
    /// The API server has forgotten where we were: nothing is wrong.
    Expired,
    /// The API server understood and said no.
    Rejected,
    /// The API server is not well, or cannot be reached.
    ServerError,
}

impl WatchError {
    /// What the failure means; the only place that knows status codes.
    #[expect(clippy::wildcard_enum_match_arm, reason = "kube's other errors are no answers")]
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

/// Watches everything that `api` and `config` name.
pub(crate) fn relisting_watch<K>(
    api: Api<K>,
    config: Config,
) -> BoxStream<'static, Result<Event<K>, WatchError>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let begun = RelistingWatch {
        api,
        config,
        events: None,
        listing: true,
        backoff: DefaultBackoff::default(),
        pause: None,
    };
    stream::unfold(begun, async |mut it| Some((it.next().await, it))).boxed()
}

struct RelistingWatch<K> {
    api: Api<K>,
    config: Config,
    events: Option<BoxStream<'static, watcher::Result<Event<K>>>>,
    /// Whether the list is not complete yet.
    listing: bool,
    /// It is never told to begin small again: each list begins with an event, and a list that
    /// always fails would be asked for every second. It does so by itself after two quiet minutes.
    backoff: DefaultBackoff,
    pause: Option<Duration>,
}

impl<K> RelistingWatch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async fn next(&mut self) -> Result<Event<K>, WatchError> {
        if let Some(pause) = self.pause.take() {
            time::sleep(pause).await;
        }
        let begin = || watcher::watcher(self.api.clone(), self.config.clone()).boxed();
        let events = self.events.get_or_insert_with(begin);
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
            // The timer has nothing to tell but that it rang.
            Err(time::error::Elapsed { .. }) => WatchError::TimedOut,
        };
        self.events = None;
        self.listing = true;
        self.pause = self.backoff.next();
        Err(error)
    }
}

#[cfg(test)]
mod tests;
