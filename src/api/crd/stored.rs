//! As much of a cluster's definition as tells in which versions its objects are stored, and no more: a definition has
//! a hundred kilobytes, nearly all of it schemas.
//! Comes in: JSON. Goes out: plain data. May touch: nothing. What is not there is empty.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Deserialize;
use serde_json::Value;

use crate::api::kinds::Kind;
use crate::api::names;

/// A definition, as storage sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCrd {
    /// Its name, such as `etcdclusters.etcd.appdelivery.cncf.io`.
    pub name: String,
    /// Tells it from one of the same name that was made later.
    pub uid: String,
    /// The version that was read. A write lands on this one or nowhere.
    pub resource_version: String,
    /// The version in which everything that is written is stored.
    pub storage: String,
    /// Its versions, in their order, and whether each is served.
    pub versions: Vec<(String, bool)>,
    /// The versions in which objects may be stored: `status.storedVersions`.
    pub stored: Vec<String>,
    /// Whether the API server serves it.
    pub established: bool,
    /// Whether a webhook converts between its versions.
    pub converted: bool,
    /// Whether an administrator wants its objects to be left as they are stored.
    pub paused: bool,
    /// Who wrote its spec last, and when; but for whoever puts the authorities in. The storage version may have gone
    /// there and back while nobody looked, and then this is another text.
    pub spec_fingerprint: String,
}

impl StoredCrd {
    /// Reads a definition as the API server wrote it; nothing if it is none.
    #[must_use]
    pub fn read(object: Value) -> Option<Self> {
        let raw: RawCrd = serde_json::from_value(object).ok()?;
        let RawCrd { metadata, spec, status } = raw;
        let spec_fingerprint = spec_fingerprint(&metadata);
        let holds = |it: &Condition| it.kind == "Established" && it.status == "True";
        Some(Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            storage: spec
                .versions
                .iter()
                .find(|it| it.storage)
                .map(|it| it.name.clone())
                .unwrap_or_default(),
            versions: spec.versions.into_iter().map(|it| (it.name, it.served)).collect(),
            stored: status.stored_versions,
            established: status.conditions.iter().any(holds),
            converted: spec.conversion.is_some_and(|it| it.strategy == "Webhook"),
            paused: metadata
                .annotations
                .get(names::MIGRATION_ANNOTATION)
                .and_then(Value::as_str)
                .is_some_and(|it| it == names::MIGRATION_PAUSED),
            spec_fingerprint,
        })
    }

    /// Whether objects may be stored in another version than the one that is written now.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stored.iter().any(|it| *it != self.storage)
    }

    /// The versions that are served.
    #[must_use]
    pub fn served(&self) -> Vec<String> {
        self.versions.iter().filter(|(_, served)| *served).map(|(name, _)| name.clone()).collect()
    }

    /// Versions in which objects may be stored, and which this release does not know: it could not read them.
    #[must_use]
    pub fn unknown_versions(&self, kind: &Kind) -> Vec<String> {
        let known = |name: &&String| kind.versions().any(|version| version.name == name.as_str());
        self.stored.iter().filter(|name| !known(name)).cloned().collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCrd {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    generation: i64,
    annotations: serde_json::Map<String, Value>,
    managed_fields: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    manager: String,
    operation: String,
    subresource: String,
    time: String,
    fields_v1: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    versions: Vec<Version>,
    conversion: Option<Conversion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    name: String,
    served: bool,
    storage: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conversion {
    strategy: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    stored_versions: Vec<String>,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// The generation would move with each authority that is put in, and nothing would ever come to an end.
fn spec_fingerprint(metadata: &Metadata) -> String {
    let of_spec = |it: &&Entry| {
        it.subresource.is_empty()
            && it.manager != names::CA_FIELD_MANAGER
            && it.fields_v1.get("f:spec").is_some()
    };
    let words =
        |it: &Entry| format!("{} {} {}", it.manager.trim(), it.operation.trim(), it.time.trim());
    let mut spec_fingerprint: Vec<String> =
        metadata.managed_fields.iter().filter(of_spec).map(words).collect();
    spec_fingerprint.sort();
    // Whoever strips the list of owners leaves only the generation.
    if spec_fingerprint.is_empty() {
        return format!("generation {}", metadata.generation);
    }
    spec_fingerprint.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kinds;

    fn live() -> Value {
        json!({
            "metadata": {
                "name": "things.example.org", "uid": "u", "resourceVersion": "7", "generation": 3,
                "managedFields": [
                    { "manager": "kubectl", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
                      "fieldsV1": { "f:spec": { "f:versions": {} } } },
                    { "manager": names::CA_FIELD_MANAGER, "operation": "Apply", "time": "2026-01-02T00:00:00Z",
                      "fieldsV1": { "f:spec": { "f:conversion": {} } } },
                    { "manager": "kubectl-annotate", "operation": "Update", "time": "2026-01-03T00:00:00Z",
                      "fieldsV1": { "f:metadata": { "f:annotations": {} } } },
                    { "manager": "apiserver", "operation": "Update", "time": "2026-01-04T00:00:00Z",
                      "subresource": "status", "fieldsV1": { "f:spec": {} } },
                ],
            },
            "spec": {
                "versions": [
                    { "name": "v1", "served": true, "storage": true, "schema": { "much": "more" } },
                    { "name": "v1alpha1", "served": false, "storage": false },
                ],
                "conversion": { "strategy": "Webhook" },
            },
            "status": {
                "storedVersions": ["v1alpha1", "v1"],
                "conditions": [{ "type": "Established", "status": "True" }],
            },
        })
    }

    #[test]
    fn a_definition_is_read_without_its_schemas() {
        let read = StoredCrd::read(live()).unwrap();
        assert_eq!((read.storage.as_str(), read.served()), ("v1", vec!["v1".to_owned()]));
        assert!(read.is_stale() && read.established && read.converted && !read.paused);
        let silent = StoredCrd::read(json!({})).unwrap();
        assert!(!silent.is_stale() && !silent.established);
    }

    #[test]
    fn only_those_who_write_the_spec_count_as_its_editors() {
        let read = StoredCrd::read(live()).unwrap();
        assert_eq!(read.spec_fingerprint, "kubectl Apply 2026-01-01T00:00:00Z");
        let mut stripped = live();
        stripped["metadata"]["managedFields"] = json!([]);
        assert_eq!(StoredCrd::read(stripped).unwrap().spec_fingerprint, "generation 3");
    }

    #[test]
    fn a_version_that_this_release_does_not_know_strands_what_is_stored_in_it() {
        let mut live = live();
        live["status"]["storedVersions"] = json!(["v2", "v1"]);
        let kind = kinds::by_name("EtcdCluster").unwrap();
        assert_eq!(StoredCrd::read(live).unwrap().unknown_versions(kind), ["v2"]);
    }
}
