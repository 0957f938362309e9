//! Writes a record down.
//! Comes in: the record, and the object that was read. Goes out: whether it is written. May touch: `clients`. It lands on
//! the object as it was read, or nowhere: whoever led before must not turn the page back.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::json;

use super::{Acting, Done, failed};
use crate::api::names;
use crate::storage_migration::record::{Record, Tally};

impl Acting<'_> {
    /// Writes a record down.
    pub(super) async fn save(&self, record: Record) -> Done {
        let Ok(text) = serde_json::to_string(&record) else {
            return Done::Unwell("the record cannot be written as JSON".to_owned());
        };
        let (namespace, key) = (&self.outlook.namespace, self.kind.crd_name());
        let objects = &self.outlook.objects;
        let written = match &self.looked.book {
            Some(book) => {
                let version = &book.metadata.resource_version;
                let patch =
                    json!({ "metadata": { "resourceVersion": version }, "data": { key: text } });
                objects.merge::<ConfigMap>(namespace, names::MIGRATION_RECORD, &patch).await
            }
            None => objects.create(&book(namespace, key, text)).await,
        };
        match written {
            Ok(_) => Done::Well(Box::new(record), Tally::default()),
            Err(error) => failed(&error),
        }
    }
}

fn book(namespace: &str, key: String, text: String) -> ConfigMap {
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
