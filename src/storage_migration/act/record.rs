//! Writes the migration record to its ConfigMap.
//!
//! Guarantees: the write applies to the ConfigMap as it was read, so a former leader cannot
//! overwrite newer progress.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::json;

use super::{Executor, StepResult, failure};
use crate::api::names;
use crate::storage_migration::record::{Counts, Record};

impl Executor<'_> {
    /// Writes a record.
    pub(super) async fn save(&self, record: Record) -> StepResult {
        let Ok(text) = serde_json::to_string(&record) else {
            return StepResult::Failed("failed to serialize the record as JSON".to_owned());
        };
        let (namespace, key) = (&self.clients.namespace, self.kind.crd_name());
        let objects = &self.clients.objects;
        let written = match &self.observation.config_map {
            Some(config_map) => {
                let version = &config_map.metadata.resource_version;
                let patch =
                    json!({ "metadata": { "resourceVersion": version }, "data": { key: text } });
                objects.merge::<ConfigMap>(namespace, names::MIGRATION_RECORD, &patch).await
            }
            None => objects.create(&config_map(namespace, key, text)).await,
        };
        match written {
            Ok(_) => StepResult::Done(Box::new(record), Counts::default()),
            Err(error) => failure(&error),
        }
    }
}

fn config_map(namespace: &str, key: String, text: String) -> ConfigMap {
    let labels = [(names::NAME_LABEL, names::OPERATOR), (names::MANAGED_BY_LABEL, names::OPERATOR)];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(names::MIGRATION_RECORD.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels.into_iter().map(owned).collect()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(key, text)])),
        ..ConfigMap::default()
    }
}
