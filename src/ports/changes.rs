//! The news that an object has changed, and nothing more: whoever hears it reads the object.
//! Comes in: the object's kind and name. Goes out: a stream that does not end, with a pause after
//! each failure. May touch: the API server. Only metadata is asked for: a definition is large, and a
//! Secret is nobody's business.

use std::fmt::Debug;

use futures::stream::{self, BoxStream, SelectAll, StreamExt};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::call::{Class, watch_class};

/// A change, or why changes are not told of at present.
pub(crate) type Change = Result<(), Class>;
/// The changes of one object or of several.
pub(crate) type Changes = SelectAll<BoxStream<'static, Change>>;

/// The changes of the object `name`.
pub(crate) fn of<K>(api: Api<PartialObjectMeta<K>>, name: &str) -> BoxStream<'static, Change>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let only = Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(api, only).default_backoff();
    events.filter_map(async |event| news(event)).boxed()
}

/// All of these together.
pub(crate) fn all(changes: impl IntoIterator<Item = BoxStream<'static, Change>>) -> Changes {
    stream::select_all(changes)
}

fn news<K>(event: Result<Event<PartialObjectMeta<K>>, Error>) -> Option<Change> {
    match event {
        Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => Some(Ok(())),
        // The begin of a list, and what is in it: its end will wake whoever waits.
        Ok(Event::Init | Event::InitApply(_)) => None,
        Err(error) => Some(Err(watch_class(&error))),
    }
}
