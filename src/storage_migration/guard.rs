//! The guard: lets controllers work only while this release knows every version in which objects are stored.
//! Comes in: the definitions, and the work. Goes out: the work, running, or words on why it does not. May touch:
//! `clients`, `telemetry`. The webhooks are none of its business: conversion goes on. What cannot be read begins nothing
//! and ends nothing.

use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::time;

use super::tell::{definition, publish};
use crate::api::kinds::{self, Kind};
use crate::api::names;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::notify::ChangeStream;
use crate::clients::storage_versions::StorageVersionsClient;
use crate::telemetry::{Metrics, error_chain};

/// What could not be read is read again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// Even if nothing is heard, everything is looked at this often.
const SELDOM: Duration = Duration::from_mins(5);

/// Stands before the controllers of a term.
pub(crate) struct Guard {
    pub(crate) client: Client,
    pub(crate) mandate: LeaderGuard,
    pub(crate) metrics: Metrics,
}

/// What the guard has seen.
enum Verdict {
    /// Everything is known.
    Fine,
    /// This is not: the definition's kind and uid, and the versions.
    Stranded(&'static Kind, String, Vec<String>),
    /// A definition could not be read.
    Unknown,
}

impl Guard {
    /// Keeps the work running while it may, and begins it anew when it may again. Goes on until it is dropped, or until
    /// the work ends by itself.
    pub(crate) async fn protect(self, work: impl Fn() -> BoxFuture<'static, ()>) {
        let Self { client, mandate, metrics } = self;
        let port = StorageVersionsClient::new(client.clone(), mandate.clone());
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let recorder = Recorder::new(client, reporter);
        let mut changes = port.changes(kinds::ALL.into_iter());
        loop {
            match look(&port).await {
                Verdict::Fine => {
                    metrics.storage_migration.blocked(false);
                    tokio::select! {
                        () = work() => return,
                        () = until_stranded(&port, &mut changes) => {}
                    }
                }
                Verdict::Stranded(kind, uid, versions) => {
                    metrics.storage_migration.blocked(true);
                    let note = words(kind, &versions);
                    tracing::error!(definition = kind.crd_name(), "{note}");
                    let event = Event {
                        type_: EventType::Warning,
                        reason: "ControllersRefused".to_owned(),
                        note: Some(note),
                        action: "Refuse".to_owned(),
                        secondary: None,
                    };
                    publish(&recorder, &mandate, &event, &definition(kind, &uid)).await;
                    heard(&mut changes, SELDOM).await;
                }
                Verdict::Unknown => heard(&mut changes, AGAIN).await,
            }
        }
    }
}

/// Is done when a version is stored that this release does not know.
async fn until_stranded(port: &StorageVersionsClient, changes: &mut ChangeStream) {
    loop {
        heard(changes, SELDOM).await;
        if let Verdict::Stranded(..) = look(port).await {
            return;
        }
    }
}

/// Waits until a definition has changed, or for so long.
async fn heard(changes: &mut ChangeStream, most: Duration) {
    tokio::select! {
        () = time::sleep(most) => {}
        // A watch that fails says so, too, after a pause.
        Some(_) = changes.next() => {}
    }
}

async fn look(port: &StorageVersionsClient) -> Verdict {
    let mut verdict = Verdict::Fine;
    for kind in kinds::ALL {
        match port.definition(kind).await {
            Ok(Some(live)) => {
                let stranded = live.unknown_versions(kind);
                if !stranded.is_empty() {
                    return Verdict::Stranded(kind, live.uid, stranded);
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "a definition could not be read");
                verdict = Verdict::Unknown;
            }
        }
    }
    verdict
}

fn words(kind: &Kind, versions: &[String]) -> String {
    let (versions, name, release) = (versions.join(", "), kind.name, names::VERSION);
    format!(
        "objects of {name} may be stored as {versions}, which release {release} does not know: it could not read them, \
         so no controller of it runs, and nothing of theirs is changed; conversion between the versions that it knows \
         goes on. Install a release that knows {versions}; to go back to this one, let the release that does store \
         everything in another version first"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_says_what_is_stored_and_what_to_do() {
        let kind = kinds::by_name("EtcdCluster").unwrap();
        let said = words(kind, &["v2".to_owned()]);
        assert!(said.contains("EtcdCluster may be stored as v2"), "{said}");
        assert!(said.contains("Install a release that knows v2"), "{said}");
    }
}
