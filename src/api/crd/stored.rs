//! The parts of a CRD that determine the versions in which objects are stored. A CRD has a hundred
//! kilobytes, nearly all of it schemas. Missing values are read as empty.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Deserialize;
use serde_json::Value;

use crate::api::kinds::Kind;
use crate::api::names;

/// The storage versions of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCrd {
    /// Name, such as `etcdclusters.etcd.appdelivery.cncf.io`.
    pub name: String,
    /// Uid: a CRD of the same name that was created later has another.
    pub uid: String,
    /// Resource version that was read; a write applies to it or fails.
    pub resource_version: String,
    /// Storage version.
    pub storage: String,
    /// Versions in order, and whether each is served.
    pub versions: Vec<(String, bool)>,
    /// Versions in which objects may be stored: `status.storedVersions`.
    pub stored: Vec<String>,
    /// Whether the API server serves it.
    pub established: bool,
    /// Whether the CRD has a conversion webhook.
    pub converted: bool,
    /// Whether an administrator paused the migration of its objects.
    pub paused: bool,
    /// Managers and times of the last writes to the spec, except for `caBundle`. It detects that
    /// the storage version was changed and changed back between two observations.
    pub spec_fingerprint: String,
}

impl StoredCrd {
    /// Reads a CRD; `None` if the object is none.
    #[must_use]
    pub fn read(object: Value) -> Option<Self> {
        let raw: RawCrd = serde_json::from_value(object).ok()?;
        let RawCrd { metadata, spec, status } = raw;
        let spec_fingerprint = spec_fingerprint(&metadata);
        let established = |condition: &CrdCondition| {
            condition.kind == "Established" && condition.status == "True"
        };
        Some(Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            storage: spec
                .versions
                .iter()
                .find(|version| version.storage)
                .map(|version| version.name.clone())
                .unwrap_or_default(),
            versions: spec
                .versions
                .into_iter()
                .map(|version| (version.name, version.served))
                .collect(),
            stored: status.stored_versions,
            established: status.conditions.iter().any(established),
            converted: spec.conversion.is_some_and(|conversion| conversion.strategy == "Webhook"),
            paused: metadata
                .annotations
                .get(names::MIGRATION_ANNOTATION)
                .and_then(Value::as_str)
                .is_some_and(|value| value == names::MIGRATION_PAUSED),
            spec_fingerprint,
        })
    }

    /// Whether objects may be stored in another version than the storage version.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stored.iter().any(|version| *version != self.storage)
    }

    /// Served versions.
    #[must_use]
    pub fn served(&self) -> Vec<String> {
        self.versions.iter().filter(|(_, served)| *served).map(|(name, _)| name.clone()).collect()
    }

    /// Versions in which objects may be stored and which this release cannot read.
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
    versions: Vec<CrdVersion>,
    conversion: Option<Conversion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdVersion {
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
    conditions: Vec<CrdCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// The generation cannot be used: it changes with each injection of `caBundle`, so that a migration
/// would never complete.
fn spec_fingerprint(metadata: &Metadata) -> String {
    let of_spec = |entry: &&Entry| {
        entry.subresource.is_empty()
            && entry.manager != names::CA_FIELD_MANAGER
            && entry.fields_v1.get("f:spec").is_some()
    };
    let write = |entry: &Entry| {
        format!("{} {} {}", entry.manager.trim(), entry.operation.trim(), entry.time.trim())
    };
    let mut writes: Vec<String> =
        metadata.managed_fields.iter().filter(of_spec).map(write).collect();
    writes.sort();
    // Without managed fields only the generation is left.
    if writes.is_empty() {
        return format!("generation {}", metadata.generation);
    }
    writes.join(", ")
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
    fn crd_is_read_without_its_schemas() {
        let read = StoredCrd::read(live()).unwrap();
        assert_eq!((read.storage.as_str(), read.served()), ("v1", vec!["v1".to_owned()]));
        assert!(read.is_stale() && read.established && read.converted && !read.paused);
        let empty = StoredCrd::read(json!({})).unwrap();
        assert!(!empty.is_stale() && !empty.established);
    }

    #[test]
    fn fingerprint_contains_only_writes_to_the_spec() {
        let read = StoredCrd::read(live()).unwrap();
        assert_eq!(read.spec_fingerprint, "kubectl Apply 2026-01-01T00:00:00Z");
        let mut stripped = live();
        stripped["metadata"]["managedFields"] = json!([]);
        assert_eq!(StoredCrd::read(stripped).unwrap().spec_fingerprint, "generation 3");
    }

    #[test]
    fn stored_version_that_this_release_lacks_is_unknown() {
        let mut live = live();
        live["status"]["storedVersions"] = json!(["v2", "v1"]);
        let kind = kinds::by_name("EtcdCluster").unwrap();
        assert_eq!(StoredCrd::read(live).unwrap().unknown_versions(kind), ["v2"]);
    }
}
