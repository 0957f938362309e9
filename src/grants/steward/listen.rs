//! The six watches as one: our five kinds, and the bindings.
//! Comes in: the port. Goes out: news for the shelves, and why a watch broke.
//! May touch: `clients`. Objects are made small here: only what a decision needs is kept.

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, select_all};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::Event;

use crate::api::kinds;
use crate::clients::rbac::RbacClient;
use crate::clients::watch::WatchError;
use crate::grants::seen::{News, Which, bond, thing};
use crate::grants::shelf::{Change, Entry};

/// One thing that was heard.
pub(super) struct Heard {
    /// What the watch is about.
    pub(super) from: &'static str,
    pub(super) news: News,
    /// Why the watch broke, if it did.
    pub(super) error: Option<WatchError>,
}

pub(super) type Listening = BoxStream<'static, Heard>;

/// Begins to listen, for an operator that runs in the namespace `operator`.
pub(super) fn listen(port: &RbacClient, operator: &str) -> SelectAll<Listening> {
    let objects = kinds::ALL.map(|kind| {
        let heard = move |told| {
            let (change, error) =
                change(told, |object: &PartialObjectMeta| thing(&object.metadata));
            Heard { from: kind.name, news: News::Object(Which(kind), change), error }
        };
        port.watch(kind).map(heard).boxed()
    });
    let operator = operator.to_owned();
    let heard = move |told| {
        let (change, error) = change(told, |binding| bond(binding, &operator));
        Heard { from: "RoleBinding", news: News::Binding(change), error }
    };
    let bindings = port.watch_bindings().map(heard).boxed();
    select_all(objects.into_iter().chain([bindings]))
}

/// A change as the shelves take it.
fn change<K, T>(
    told: Result<Event<K>, WatchError>,
    read: impl Fn(&K) -> Entry<T>,
) -> (Change<T>, Option<WatchError>) {
    let event = match told {
        Ok(event) => event,
        Err(error) => return (Change::Lost, Some(error)),
    };
    let change = match event {
        Event::Init => Change::Begun,
        Event::InitApply(object) => Change::Listed(read(&object)),
        Event::InitDone => Change::Complete,
        Event::Apply(object) => Change::Put(read(&object)),
        Event::Delete(object) => Change::Gone(read(&object)),
    };
    (change, None)
}
