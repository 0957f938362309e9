//! The samples are what they say: each is an object of ours, survives every version, is taken or refused by this
//! release as their table says, and can be read by its controller. Together they show every field of v1.
//! Comes in: `deploy/samples`, its README.md, the definitions. Goes out: each sample that misleads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/tables.rs"]
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

/// The words with which this release refuses what no controller does yet.
const NOT_YET: &str = "not in this release: ";

/// The folders of `deploy/samples`, in the order of its README.
const FOLDERS: [&str; 6] = ["quickstart", "production", "tls", "day2", "compat", "not-yet"];

/// A sample, and which kind and version it is of.
struct Sample {
    file: String,
    object: Value,
    kind: &'static Kind,
    version: &'static str,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/samples")
}

/// The files below `deploy/samples`, one level of folders deep.
fn files() -> Vec<PathBuf> {
    let entries = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(folder()).filter(|path| path.is_dir());
    folders.flat_map(entries).collect()
}

fn samples() -> Vec<Sample> {
    let yaml = files().into_iter().filter(|path| path.extension().is_some_and(|it| it == "yaml"));
    let mut samples: Vec<Sample> = yaml.map(|path| sample(&path)).collect();
    samples.sort_by(|one, other| one.file.cmp(&other.file));
    assert!(samples.len() > 20, "only {} samples were found", samples.len());
    samples
}

fn sample(path: &Path) -> Sample {
    let file = path.strip_prefix(folder()).unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# "), "{file}: say on the first line what it shows");
    let object: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let kind = object["kind"].as_str().and_then(kinds::by_name);
    let kind = kind.unwrap_or_else(|| panic!("{file}: {} is no kind of ours", object["kind"]));
    let version = object["apiVersion"].as_str().and_then(|it| kind.version_of(it));
    let version = version.unwrap_or_else(|| panic!("{file}: {}", object["apiVersion"])).name;
    Sample { file, object, kind, version }
}

impl Sample {
    fn to(&self, version: &str) -> Value {
        turned(self.kind, &self.object, version)
    }

    fn judged(&self, can: FeatureSet) -> ValidationResult {
        let facts = ValidationContext { now: now(), features: can, request_version: self.version };
        validate(self.kind, None, &self.to(self.kind.hub().name), &facts)
    }

    /// What the kind's controller makes of it. What the webhook would have filled in makes no difference.
    fn read<T: FromObject + Debug + PartialEq>(&self) {
        let hub = self.kind.hub().name;
        let facts =
            ValidationContext { now: now(), features: FeatureSet::ALL, request_version: hub };
        let read = |object: &Value| {
            let read = Validated::<T>::read(object, &facts);
            read.unwrap_or_else(|verdict| panic!("{}: {:#?}", self.file, verdict.violations))
        };
        let as_it_is = self.to(hub);
        let filled = self.kind.with_defaults(&as_it_is, None);
        assert_eq!(read(&as_it_is), read(&filled), "{}", self.file);
    }

    /// What the checks of this release make of it, in the word of the table.
    fn fate(&self) -> &'static str {
        let verdict = self.judged(FeatureSet::CURRENT);
        for violation in &verdict.violations {
            assert!(violation.detail.contains(NOT_YET), "{}: {violation}", self.file);
        }
        let has_controller =
            self.kind.name != "ExampleApp" || FeatureSet::CURRENT.contains(Feature::Application);
        match (verdict.is_valid(), has_controller) {
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

fn turned(kind: &Kind, object: &Value, version: &str) -> Value {
    convert(object.clone(), &format!("{}/{version}", kind.group)).unwrap()
}

/// The schema of each version, by kind and version.
fn schemas() -> BTreeMap<(String, String), Value> {
    let mut schemas = BTreeMap::new();
    for definition in crd::all() {
        for version in definition.spec.versions {
            let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
            let key = (definition.spec.names.kind.clone(), version.name);
            schemas.insert(key, serde_json::to_value(schema).unwrap());
        }
    }
    schemas
}

#[test]
fn every_sample_survives_every_version() {
    for sample in samples() {
        for there in sample.kind.versions() {
            let out = sample.to(there.name);
            let back = turned(sample.kind, &out, sample.version);
            assert_eq!(back, sample.object, "{} by way of {}", sample.file, there.name);
            for further in sample.kind.versions() {
                let round = turned(sample.kind, &out, further.name);
                let back = turned(sample.kind, &round, sample.version);
                let way = format!("{} by way of {} and {}", sample.file, there.name, further.name);
                assert_eq!(back, sample.object, "{way}");
            }
        }
    }
}

#[test]
fn nothing_is_wrong_with_any_sample() {
    for sample in samples() {
        let verdict = sample.judged(FeatureSet::ALL);
        let said: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
        assert!(said.is_empty(), "{}:\n{}", sample.file, said.join("\n"));
    }
}

#[test]
fn every_sample_can_be_read_by_its_controller() {
    let readers = readers();
    for sample in samples() {
        let reader = readers.get(sample.kind.name);
        reader.unwrap_or_else(|| panic!("nobody reads {}", sample.kind.name))(&sample);
    }
}

#[test]
fn no_rule_of_a_definition_is_broken_by_any_sample() {
    let schemas = schemas();
    for sample in samples() {
        // In its own version, and in every version that the apiserver may ask for it in.
        for version in sample.kind.versions() {
            let schema = &schemas[&(sample.kind.name.to_owned(), version.name.to_owned())];
            let object = sample.to(version.name);
            let judged = kube::core::cel::Validator::new().validate(schema, &object, None);
            let errors = judged.err().map(kube::core::cel::ValidationErrors::into_vec);
            let said: Vec<String> = errors.into_iter().flatten().map(|it| it.message).collect();
            assert!(said.is_empty(), "{} in {}: {said:?}", sample.file, version.name);
        }
    }
}

#[test]
fn the_table_names_every_sample_and_says_what_becomes_of_it() {
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    let mut table = BTreeMap::new();
    for row in FOLDERS.iter().flat_map(|name| tables::rows_below(&page, &format!("## {name}"))) {
        let [file, _, fate] = row.as_slice() else { panic!("not three cells: {row:?}") };
        let name = tables::code(file).remove(0);
        assert!(table.insert(name.clone(), fate.clone()).is_none(), "{name} is there twice");
    }
    let found: BTreeMap<String, String> =
        samples().iter().map(|it| (it.file.clone(), it.fate().to_owned())).collect();
    assert_eq!(table, found, "left: deploy/samples/README.md, right: the files and the checks");
}

#[test]
fn every_sample_is_in_the_folder_of_its_state_and_version() {
    for sample in samples() {
        let (folder, _) = sample.file.split_once('/').unwrap();
        assert!(FOLDERS.contains(&folder), "{}: unknown folder", sample.file);
        let is_unsupported = sample.fate() != "accepted";
        assert_eq!(folder == "not-yet", is_unsupported, "{}: {}", sample.file, sample.fate());
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
            let there =
                samples.iter().any(|it| it.kind.name == kind.name && it.version == version.name);
            assert!(there, "there is no sample of {} {}", kind.name, version.name);
        }
    }
}

#[test]
fn together_the_samples_show_every_field() {
    let schemas = schemas();
    let (mut there, mut shown) = (BTreeMap::new(), BTreeSet::new());
    for ((kind, version), schema) in &schemas {
        let spec = &schema["properties"]["spec"];
        fields(spec, &format!("{kind} {version}: spec"), &mut there);
    }
    for sample in samples() {
        let schema = &schemas[&(sample.kind.name.to_owned(), sample.version.to_owned())];
        shows(&schema["properties"]["spec"], &sample.object["spec"], &mut shown);
    }
    let missing: Vec<&String> =
        there.iter().filter(|(field, _)| !shown.contains(*field)).map(|(_, path)| path).collect();
    assert!(missing.is_empty(), "no sample shows {missing:#?}");
    assert!(there.len() > 150, "only {} fields were found", there.len());
}

/// A field: the block it is in, and its name. A block that stands in several places is the same block, and need be
/// shown in one of them.
type Field = (String, String);

/// Every field below a schema, with a place where it is.
fn fields(schema: &Value, at: &str, found: &mut BTreeMap<Field, String>) {
    if let Some(items) = schema.get("items") {
        return fields(items, at, found);
    }
    for (name, below) in properties(schema) {
        let path = format!("{at}.{name}");
        fields(below, &path, found);
        found.entry((block(schema), name.clone())).or_insert(path);
    }
}

/// Every field that a value gives.
fn shows(schema: &Value, value: &Value, shown: &mut BTreeSet<Field>) {
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        return values.iter().for_each(|value| shows(items, value, shown));
    }
    for (name, below) in properties(schema) {
        if let Some(value) = value.get(name) {
            shown.insert((block(schema), name.clone()));
            shows(below, value, shown);
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// What makes a block the one it is: its schema, but for what is said about it where it stands.
fn block(schema: &Value) -> String {
    let mut bare: Map<String, Value> = schema.as_object().unwrap().clone();
    bare.remove("description");
    Value::Object(bare).to_string()
}
