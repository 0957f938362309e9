//! The samples in `deploy/samples`: each is a valid object, survives conversion to every version,
//! is accepted or rejected by this release as the table in its README.md states, and can be read by
//! its controller. Together they contain every field.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/markdown_tables.rs"]
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use quorate::api::convert::convert;
use quorate::api::crd;
use quorate::api::etcd_backup::validated::EtcdBackup;
use quorate::api::etcd_cluster::validated::EtcdCluster;
use quorate::api::etcd_member::validated::EtcdMember;
use quorate::api::etcd_restore::validated::EtcdRestore;
use quorate::api::example_app::validated::ExampleApp;
use quorate::api::kinds::{self, Kind};
use quorate::api::validated::{FromObject, Validated};
use quorate::api::validation::features::{Feature, FeatureSet};
use quorate::api::validation::{ValidationContext, ValidationResult, validate};
use serde_json::{Map, Value};

/// Part of every message about an unsupported feature.
const UNSUPPORTED: &str = "not supported in this release";

/// The folders of `deploy/samples`, in the order of its README.
const FOLDERS: [&str; 6] = ["quickstart", "production", "tls", "day2", "compat", "not-yet"];

/// A sample with its kind and version.
struct Sample {
    file: String,
    object: Value,
    kind: &'static Kind,
    version: &'static str,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/samples")
}

/// The files below `deploy/samples`, one level of folders deep.
fn files() -> Vec<PathBuf> {
    let entries = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(directory()).filter(|path| path.is_dir());
    folders.flat_map(entries).collect()
}

fn samples() -> Vec<Sample> {
    let yaml = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let mut samples: Vec<Sample> = yaml.map(|path| sample(&path)).collect();
    samples.sort_by(|one, other| one.file.cmp(&other.file));
    assert!(samples.len() > 20, "only {} samples were found", samples.len());
    samples
}

fn sample(path: &Path) -> Sample {
    let file = path.strip_prefix(directory()).unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# "), "{file}: the first line must be a comment with its purpose");
    let object: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let kind = object["kind"].as_str().and_then(kinds::by_name);
    let kind = kind.unwrap_or_else(|| panic!("{file}: {} is an unknown kind", object["kind"]));
    let version =
        object["apiVersion"].as_str().and_then(|api_version| kind.version_of(api_version));
    let version = version.unwrap_or_else(|| panic!("{file}: {}", object["apiVersion"])).name;
    Sample { file, object, kind, version }
}

impl Sample {
    fn to(&self, version: &str) -> Value {
        converted(self.kind, &self.object, version)
    }

    fn validate(&self, features: FeatureSet) -> ValidationResult {
        let context = ValidationContext { now: now(), features, request_version: self.version };
        validate(self.kind, None, &self.to(self.kind.hub().name), &context)
    }

    /// Reads the sample as its controller does. Defaults of the webhook make no difference.
    fn read<T: FromObject + Debug + PartialEq>(&self) {
        let hub = self.kind.hub().name;
        let context =
            ValidationContext { now: now(), features: FeatureSet::ALL, request_version: hub };
        let read = |object: &Value| {
            let read = Validated::<T>::read(object, &context);
            read.unwrap_or_else(|result| panic!("{}: {:#?}", self.file, result.violations))
        };
        let plain = self.to(hub);
        let defaulted = self.kind.with_defaults(&plain, None);
        assert_eq!(read(&plain), read(&defaulted), "{}", self.file);
    }

    /// The result of validation by this release, as the table names it.
    fn outcome(&self) -> &'static str {
        let result = self.validate(FeatureSet::CURRENT);
        for violation in &result.violations {
            assert!(violation.detail.contains(UNSUPPORTED), "{}: {violation}", self.file);
        }
        let has_controller =
            self.kind.name != "ExampleApp" || FeatureSet::CURRENT.contains(Feature::Application);
        match (result.is_valid(), has_controller) {
            (false, _) => "rejected",
            (true, false) => "stored",
            (true, true) => "accepted",
        }
    }
}

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

/// How an object of each kind is read by its controller.
fn readers() -> BTreeMap<&'static str, fn(&Sample)> {
    fn reader<T: FromObject + Debug + PartialEq>() -> (&'static str, fn(&Sample)) {
        (T::kind().name, Sample::read::<T>)
    }
    BTreeMap::from([
        reader::<EtcdCluster>(),
        reader::<EtcdMember>(),
        reader::<EtcdBackup>(),
        reader::<EtcdRestore>(),
        reader::<ExampleApp>(),
    ])
}

fn converted(kind: &Kind, object: &Value, version: &str) -> Value {
    convert(object.clone(), &format!("{}/{version}", kind.group)).unwrap()
}

/// The schema of each version, by kind and version.
fn schemas() -> BTreeMap<(String, String), Value> {
    let mut schemas = BTreeMap::new();
    for crd in crd::all() {
        for version in crd.spec.versions {
            let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
            let key = (crd.spec.names.kind.clone(), version.name);
            schemas.insert(key, serde_json::to_value(schema).unwrap());
        }
    }
    schemas
}

#[test]
fn every_sample_survives_every_version() {
    for sample in samples() {
        for other in sample.kind.versions() {
            let out = sample.to(other.name);
            let back = converted(sample.kind, &out, sample.version);
            assert_eq!(back, sample.object, "{} through {}", sample.file, other.name);
            for further in sample.kind.versions() {
                let round = converted(sample.kind, &out, further.name);
                let back = converted(sample.kind, &round, sample.version);
                let path = format!("{} through {} and {}", sample.file, other.name, further.name);
                assert_eq!(back, sample.object, "{path}");
            }
        }
    }
}

#[test]
fn every_sample_is_valid() {
    for sample in samples() {
        let result = sample.validate(FeatureSet::ALL);
        let errors: Vec<String> = result.violations.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{}:\n{}", sample.file, errors.join("\n"));
    }
}

#[test]
fn every_sample_can_be_read_by_its_controller() {
    let readers = readers();
    for sample in samples() {
        let reader = readers.get(sample.kind.name);
        reader.unwrap_or_else(|| panic!("{} has no reader", sample.kind.name))(&sample);
    }
}

#[test]
fn every_sample_satisfies_all_cel_rules() {
    let schemas = schemas();
    for sample in samples() {
        // In its own version, and in every version that the API server may request.
        for version in sample.kind.versions() {
            let schema = &schemas[&(sample.kind.name.to_owned(), version.name.to_owned())];
            let object = sample.to(version.name);
            let result = kube::core::cel::Validator::new().validate(schema, &object, None);
            let errors = result.err().map(kube::core::cel::ValidationErrors::into_vec);
            let messages: Vec<String> =
                errors.into_iter().flatten().map(|error| error.message).collect();
            assert!(messages.is_empty(), "{} in {}: {messages:?}", sample.file, version.name);
        }
    }
}

#[test]
fn table_lists_every_sample_with_its_outcome() {
    let page = fs::read_to_string(directory().join("README.md")).unwrap();
    let mut table = BTreeMap::new();
    for row in FOLDERS.iter().flat_map(|name| tables::rows_below(&page, &format!("## {name}"))) {
        let [file, _, outcome] = row.as_slice() else { panic!("not three cells: {row:?}") };
        let name = tables::code(file).remove(0);
        assert!(table.insert(name.clone(), outcome.clone()).is_none(), "{name} is listed twice");
    }
    let found: BTreeMap<String, String> =
        samples().iter().map(|sample| (sample.file.clone(), sample.outcome().to_owned())).collect();
    assert_eq!(table, found, "left: deploy/samples/README.md, right: the files and validation");
}

#[test]
fn every_sample_is_in_the_folder_of_its_state_and_version() {
    for sample in samples() {
        let (folder, _) = sample.file.split_once('/').unwrap();
        assert!(FOLDERS.contains(&folder), "{}: unknown folder", sample.file);
        let is_unsupported = sample.outcome() != "accepted";
        assert_eq!(folder == "not-yet", is_unsupported, "{}: {}", sample.file, sample.outcome());
        let is_compat = sample.version != sample.kind.hub().name;
        assert!(is_unsupported || is_compat == (folder == "compat"), "{}", sample.file);
    }
}

#[test]
fn sample_names_are_unique() {
    let mut names = BTreeMap::new();
    for sample in samples() {
        let name = sample.object["metadata"]["name"].as_str().unwrap().to_owned();
        let other = names.insert(name.clone(), sample.file.clone());
        assert!(other.is_none(), "{name} is in {} and {other:?}", sample.file);
    }
}

#[test]
fn every_kind_has_a_sample_in_each_of_its_versions() {
    let samples = samples();
    for kind in kinds::ALL {
        for version in kind.versions() {
            let exists = samples
                .iter()
                .any(|sample| sample.kind.name == kind.name && sample.version == version.name);
            assert!(exists, "there is no sample of {} {}", kind.name, version.name);
        }
    }
}

#[test]
fn samples_contain_every_field() {
    let schemas = schemas();
    let (mut known, mut used) = (BTreeMap::new(), BTreeSet::new());
    for ((kind, version), schema) in &schemas {
        let spec = &schema["properties"]["spec"];
        fields(spec, &format!("{kind} {version}: spec"), &mut known);
    }
    for sample in samples() {
        let schema = &schemas[&(sample.kind.name.to_owned(), sample.version.to_owned())];
        used_fields(&schema["properties"]["spec"], &sample.object["spec"], &mut used);
    }
    let missing: Vec<&String> =
        known.iter().filter(|(field, _)| !used.contains(*field)).map(|(_, path)| path).collect();
    assert!(missing.is_empty(), "no sample has {missing:#?}");
    assert!(known.len() > 150, "only {} fields were found", known.len());
}

/// A field: the schema of its object, and its name. An object type that is used at several paths
/// needs a sample at one of them.
type Field = (String, String);

/// All fields below a schema, with a path.
fn fields(schema: &Value, at: &str, found: &mut BTreeMap<Field, String>) {
    if let Some(items) = schema.get("items") {
        return fields(items, at, found);
    }
    for (name, below) in properties(schema) {
        let path = format!("{at}.{name}");
        fields(below, &path, found);
        found.entry((object_type(schema), name.clone())).or_insert(path);
    }
}

/// All fields of a value.
fn used_fields(schema: &Value, value: &Value, used: &mut BTreeSet<Field>) {
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        return values.iter().for_each(|value| used_fields(items, value, used));
    }
    for (name, below) in properties(schema) {
        if let Some(value) = value.get(name) {
            used.insert((object_type(schema), name.clone()));
            used_fields(below, value, used);
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Identity of an object type: its schema without the description, which depends on the path.
fn object_type(schema: &Value) -> String {
    let mut bare: Map<String, Value> = schema.as_object().unwrap().clone();
    bare.remove("description");
    Value::Object(bare).to_string()
}
