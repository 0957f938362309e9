//! Runs the controllers only while this release knows every stored version of its kinds.
//!
//! Webhooks are not affected: conversion continues. A failed read neither starts nor stops the
//! controllers.

use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::time;

use super::report::{crd_reference, publish};
use crate::api::kinds::{self, Kind};
use crate::api::names;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::notify::ChangeStream;
use crate::clients::storage_versions::StorageVersionsClient;
use crate::telemetry::{Metrics, error_chain};

/// The delay after a failed read.
const READ_RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often the CRDs are read without an event.
const RESYNC_INTERVAL: Duration = Duration::from_mins(5);

/// The guard of the controllers of one leadership term.
pub(crate) struct StoredVersionGuard {
    pub(crate) client: Client,
    pub(crate) leader_guard: LeaderGuard,
    pub(crate) metrics: Metrics,
}

/// The stored versions of all kinds.
enum StoredVersions {
    /// This release knows all of them.
    Known,
    /// This CRD has unknown ones.
    Unsupported { kind: &'static Kind, uid: String, versions: Vec<String> },
    /// A CRD could not be read.
    Unread,
}

impl StoredVersionGuard {
    /// Runs `controllers` while all stored versions are known, and starts it again after they were
    /// not. Runs until it is dropped or `controllers` returns.
    pub(crate) async fn run_guarded(self, controllers: impl Fn() -> BoxFuture<'static, ()>) {
        let Self { client, leader_guard, metrics } = self;
        let storage_versions = StorageVersionsClient::new(client.clone(), leader_guard.clone());
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let recorder = Recorder::new(client, reporter);
        let mut changes = storage_versions.changes(kinds::ALL.into_iter());
        loop {
            match check(&storage_versions).await {
                StoredVersions::Known => {
                    metrics.storage_migration.blocked(false);
                    tokio::select! {
                        () = controllers() => return,
                        () = wait_for_unsupported(&storage_versions, &mut changes) => {}
                    }
                }
                StoredVersions::Unsupported { kind, uid, versions } => {
                    metrics.storage_migration.blocked(true);
                    let note = message(kind, &versions);
                    tracing::error!(crd = kind.crd_name(), "{note}");
                    let event = Event {
                        type_: EventType::Warning,
                        reason: "UnknownStoredVersion".to_owned(),
                        note: Some(note),
                        action: "StopControllers".to_owned(),
                        secondary: None,
                    };
                    publish(&recorder, &leader_guard, &event, &crd_reference(kind, &uid)).await;
                    wait_for_change(&mut changes, RESYNC_INTERVAL).await;
                }
                StoredVersions::Unread => wait_for_change(&mut changes, READ_RETRY_DELAY).await,
            }
        }
    }
}

/// Returns when a version is stored that this release does not know.
async fn wait_for_unsupported(
    storage_versions: &StorageVersionsClient,
    changes: &mut ChangeStream,
) {
    loop {
        wait_for_change(changes, RESYNC_INTERVAL).await;
        if let StoredVersions::Unsupported { .. } = check(storage_versions).await {
            return;
        }
    }
}

/// Waits until a CRD has changed, or for the timeout.
async fn wait_for_change(changes: &mut ChangeStream, timeout: Duration) {
    tokio::select! {
        () = time::sleep(timeout) => {}
        // A failed watch also yields, after its backoff.
        Some(_) = changes.next() => {}
    }
}

async fn check(storage_versions: &StorageVersionsClient) -> StoredVersions {
    let mut result = StoredVersions::Known;
    for kind in kinds::ALL {
        match storage_versions.crd(kind).await {
            Ok(Some(crd)) => {
                let versions = crd.unknown_versions(kind);
                if !versions.is_empty() {
                    return StoredVersions::Unsupported { kind, uid: crd.uid, versions };
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "failed to read a CRD");
                result = StoredVersions::Unread;
            }
        }
    }
    result
}

fn message(kind: &Kind, versions: &[String]) -> String {
    let (versions, name, release) = (versions.join(", "), kind.name, names::VERSION);
    format!(
        "{name} objects may be stored as {versions}, which release {release} does not know. The controllers are \
         stopped and change nothing; conversion between known versions continues. Install a release that knows \
         {versions}; to return to this release, migrate the objects to another storage version with that release first"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_stored_versions_and_the_remedy() {
        let kind = kinds::by_name("EtcdCluster").unwrap();
        let message = message(kind, &["v2".to_owned()]);
        assert!(message.contains("EtcdCluster objects may be stored as v2"), "{message}");
        assert!(message.contains("Install a release that knows v2"), "{message}");
    }
}
