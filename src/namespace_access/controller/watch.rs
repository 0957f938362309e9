//! The watches of our kinds and of the bindings, merged into one stream.
//!
//! Objects are reduced here: only the data that decisions need stays in memory.

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, select_all};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::Event;

use crate::api::kinds;
use crate::clients::rbac::RbacClient;
use crate::clients::watch::WatchError;
use crate::namespace_access::state::{KindRef, WatchEvent, binding_entry, object_entry};
use crate::namespace_access::store::{Entry, StoreEvent};

/// One event of a watch.
pub(super) struct WatchMessage {
    /// The watched kind.
    pub(super) kind: &'static str,
    pub(super) event: WatchEvent,
    /// Why the watch failed, if it did.
    pub(super) error: Option<WatchError>,
}

pub(super) type WatchMessages = BoxStream<'static, WatchMessage>;

/// Starts all watches, for an operator that runs in the namespace `operator`.
pub(super) fn watch_all(rbac: &RbacClient, operator: &str) -> SelectAll<WatchMessages> {
    let objects = kinds::ALL.map(|kind| {
        let message = move |result| {
            let (event, error) =
                store_event(result, |object: &PartialObjectMeta| object_entry(&object.metadata));
            WatchMessage { kind: kind.name, event: WatchEvent::Object(KindRef(kind), event), error }
        };
        rbac.watch(kind).map(message).boxed()
    });
    let operator = operator.to_owned();
    let message = move |result| {
        let (event, error) = store_event(result, |binding| binding_entry(binding, &operator));
        WatchMessage { kind: "RoleBinding", event: WatchEvent::Binding(event), error }
    };
    let bindings = rbac.watch_bindings().map(message).boxed();
    select_all(objects.into_iter().chain([bindings]))
}

fn store_event<K, T>(
    result: Result<Event<K>, WatchError>,
    entry: impl Fn(&K) -> Entry<T>,
) -> (StoreEvent<T>, Option<WatchError>) {
    let event = match result {
        Ok(event) => event,
        Err(error) => return (StoreEvent::WatchFailed, Some(error)),
    };
    let event = match event {
        Event::Init => StoreEvent::ListStarted,
        Event::InitApply(object) => StoreEvent::Listed(entry(&object)),
        Event::InitDone => StoreEvent::ListComplete,
        Event::Apply(object) => StoreEvent::Applied(entry(&object)),
        Event::Delete(object) => StoreEvent::Deleted(entry(&object)),
    };
    (event, None)
}
