//! Change notifications of single objects.
//!
//! The receiver reads the object itself. Only metadata is watched: a CRD is large, and the content
//! of a Secret is not needed here. The stream does not end; it backs off after each failure.

use std::fmt::Debug;

use futures::stream::{self, BoxStream, SelectAll, StreamExt};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::error::{ErrorClass, watch_error_class};

/// A change, or why the watch failed.
pub(crate) type ChangeEvent = Result<(), ErrorClass>;
/// Changes of one or several objects.
pub(crate) type ChangeStream = SelectAll<BoxStream<'static, ChangeEvent>>;

/// Changes of the object `name`.
pub(crate) fn on_change<K>(
    api: Api<PartialObjectMeta<K>>,
    name: &str,
) -> BoxStream<'static, ChangeEvent>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(api, config).default_backoff();
    events.filter_map(async |event| to_change(event)).boxed()
}

/// Merges several streams.
pub(crate) fn merge(
    changes: impl IntoIterator<Item = BoxStream<'static, ChangeEvent>>,
) -> ChangeStream {
    stream::select_all(changes)
}

fn to_change<K>(event: Result<Event<PartialObjectMeta<K>>, Error>) -> Option<ChangeEvent> {
    match event {
        Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => Some(Ok(())),
        // Part of a list: its end is the notification.
        Ok(Event::Init | Event::InitApply(_)) => None,
        Err(error) => Some(Err(watch_error_class(&error))),
    }
}
