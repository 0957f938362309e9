//! Reads a CRD, its migration record, the running operator versions and the delegated migration.
//!
//! Nothing comes from a cache. A failed read is unknown, and its error is logged.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use serde_json::Value;

use super::decide;
use super::record::{Phase, Record};
use super::state::{DelegatedMigration, MigrationMode, Outcome, Reading};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;
use crate::clients::error::ApiError;
use crate::clients::objects::Objects;
use crate::clients::storage_versions::{MigrationLookup, StorageVersionsClient};
use crate::telemetry::error_chain;

/// One observation of a kind.
pub(super) struct Observation {
    pub(super) crd: Reading<Option<StoredCrd>>,
    /// The ConfigMap with the records.
    pub(super) config_map: Option<ConfigMap>,
    pub(super) record: Reading<Option<Record>>,
    pub(super) retry_request: Option<String>,
    pub(super) mixed_versions: Reading<bool>,
    pub(super) delegated: Reading<DelegatedMigration>,
}

/// The clients of the controller, and its settings.
pub(super) struct MigrationClients {
    pub(super) storage_versions: StorageVersionsClient,
    pub(super) objects: Objects,
    /// The operator's own namespace.
    pub(super) namespace: String,
    pub(super) mode: MigrationMode,
}

impl MigrationClients {
    /// Observes one kind. Pods are listed only if there is anything to migrate.
    pub(super) async fn observe(&self, kind: &'static Kind) -> Observation {
        let crd = reading(self.storage_versions.crd(kind).await);
        let config_map =
            reading(self.objects.get::<ConfigMap>(&self.namespace, names::MIGRATION_RECORD).await);
        let (record, config_map) = match config_map {
            Reading::Known(found) => (Reading::Known(recorded(kind, found.as_ref())), found),
            Reading::Unknown => (Reading::Unknown, None),
        };
        let retry_request = config_map.as_ref().and_then(|config_map| {
            config_map.annotations().get(names::MIGRATION_RETRY_ANNOTATION).cloned()
        });
        let mut observation = Observation {
            crd,
            config_map,
            record,
            retry_request,
            mixed_versions: Reading::Known(false),
            delegated: Reading::Known(DelegatedMigration::NotFound),
        };
        if let (Reading::Known(Some(crd)), Reading::Known(record)) =
            (&observation.crd, &observation.record)
            && decide::needs_migration(crd, record.as_ref())
        {
            observation.mixed_versions = self.mixed_versions().await;
            if record.as_ref().is_some_and(|record| record.phase == Phase::Delegated) {
                observation.delegated = self.delegated(kind).await;
            }
        }
        observation
    }

    /// Whether a replica of another operator version runs; a terminating one still converts.
    async fn mixed_versions(&self) -> Reading<bool> {
        let operator = format!("{}={}", names::NAME_LABEL, names::OPERATOR);
        match reading(self.objects.list::<Pod>(&self.namespace, &operator).await) {
            Reading::Known(pods) => Reading::Known(pods.iter().any(is_other_version)),
            Reading::Unknown => Reading::Unknown,
        }
    }

    async fn delegated(&self, kind: &'static Kind) -> Reading<DelegatedMigration> {
        if self.mode != MigrationMode::Kubernetes {
            return Reading::Known(DelegatedMigration::NotServed);
        }
        match reading(self.storage_versions.migration(kind).await) {
            Reading::Known(MigrationLookup::NotServed) => {
                Reading::Known(DelegatedMigration::NotServed)
            }
            Reading::Known(MigrationLookup::NotFound) => {
                Reading::Known(DelegatedMigration::NotFound)
            }
            Reading::Known(MigrationLookup::Found(found)) => {
                Reading::Known(parse_delegated(&found))
            }
            Reading::Unknown => Reading::Unknown,
        }
    }
}

/// A terminated pod does not serve; a pod without the version label is not an operator replica.
fn is_other_version(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let version = pod.labels().get(names::VERSION_LABEL);
    !["Succeeded", "Failed"].contains(&phase)
        && version.is_some_and(|version| version != names::VERSION)
}

fn parse_delegated(found: &Value) -> DelegatedMigration {
    let text = |pointer: &str| {
        found.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
    let is_true = |name: &str| {
        let matches = |condition: &Value| {
            condition.get("type").is_some_and(|value| value == name)
                && condition.get("status").is_some_and(|value| value == "True")
        };
        conditions.is_some_and(|conditions| conditions.iter().any(matches))
    };
    let outcome = if is_true("Failed") {
        Some(Outcome::Failed)
    } else {
        is_true("Succeeded").then_some(Outcome::Succeeded)
    };
    DelegatedMigration::Found { uid: text("/metadata/uid"), outcome }
}

/// The record of a kind. An invalid record counts as missing: the migration starts again.
pub(crate) fn recorded(kind: &Kind, config_map: Option<&ConfigMap>) -> Option<Record> {
    let text = config_map?.data.as_ref()?.get(&kind.crd_name())?;
    serde_json::from_str(text).ok()
}

fn reading<T>(response: Result<T, ApiError>) -> Reading<T> {
    match response {
        Ok(found) => Reading::Known(found),
        Err(error) => {
            tracing::debug!(error = error_chain(&error), "failed to observe stored versions");
            Reading::Unknown
        }
    }
}
