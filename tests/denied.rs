//! Denials and warnings with their complete messages: the manifests in `denied/` and `warnings/`
//! are the cases. All differing cases are reported at once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use quorate::api::convert::convert;
use quorate::api::kinds::{self, Kind};
use quorate::api::validation::features::{Feature, FeatureSet};
use quorate::api::validation::{ErrorType, ValidationContext, ValidationResult, validate};
use serde::Deserialize;
use serde_json::{Value, json};

/// Time of validation; schedules have a next run from here.
const NOW: &str = "2026-11-16T06:00:00Z";
const MAX_WARNING_LENGTH: usize = 120;

/// A manifest and the expected result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Name of the case.
    #[serde(rename = "case")]
    name: String,
    /// The stored object before an update, with its status if relevant.
    running: Option<Value>,
    /// The requested object.
    manifest: Value,
    /// `current` for the features of this release; otherwise all features of the API.
    features: Option<String>,
    /// One feature that is not supported.
    without: Option<String>,
    /// Expected violations.
    #[serde(default)]
    denied: Vec<String>,
    /// Expected warnings; compared only if set.
    warnings: Option<Vec<String>>,
}

impl Case {
    fn kind(&self) -> &'static Kind {
        kinds::by_name(self.manifest["kind"].as_str().unwrap()).unwrap()
    }

    fn version(&self) -> &str {
        self.manifest["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap()
    }

    fn feature_set(&self) -> FeatureSet {
        if let Some(features) = &self.features {
            assert_eq!(features, "current", "{}", self.name);
            return FeatureSet::CURRENT;
        }
        let Some(without) = &self.without else { return FeatureSet::ALL };
        let rest =
            Feature::ALL.iter().copied().filter(|feature| format!("{feature:?}") != *without);
        let rest: &'static [Feature] = rest.collect::<Vec<_>>().leak();
        assert_eq!(rest.len() + 1, Feature::ALL.len(), "{}: unknown feature", self.name);
        FeatureSet::only(rest)
    }

    fn validate(&self) -> ValidationResult {
        let kind = self.kind();
        let context = ValidationContext {
            now: NOW.parse().unwrap(),
            features: self.feature_set(),
            request_version: self.version(),
        };
        let hub = |object: &Value| convert(object.clone(), &kind.api_version(kind.hub())).unwrap();
        let running = self.running.as_ref().map(hub);
        let mut desired = hub(&self.manifest);
        // The API server ignores the status of such a write.
        if let Some(status) = running.as_ref().and_then(|running| running.get("status")) {
            desired["status"] = status.clone();
        }
        validate(kind, running.as_ref(), &desired, &context)
    }
}

/// The cases of every file in a directory.
fn cases(directory: &str) -> BTreeMap<String, Vec<Case>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let read: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        files.insert(name, read);
    }
    files
}

fn all_cases() -> Vec<(String, Case)> {
    let named = |(file, cases): (String, Vec<Case>)| {
        cases.into_iter().map(move |case| (file.clone(), case))
    };
    cases("denied").into_iter().chain(cases("warnings")).flat_map(named).collect()
}

/// The lines of a list that differ: `-` is expected, `+` is actual.
fn difference(expected: &[String], actual: &[String]) -> String {
    let mut text = String::new();
    for line in expected.iter().filter(|line| !actual.contains(line)) {
        writeln!(text, "    - {line}").unwrap();
    }
    for line in actual.iter().filter(|line| !expected.contains(line)) {
        writeln!(text, "    + {line}").unwrap();
    }
    if text.is_empty() && expected != actual {
        writeln!(text, "    the same in another order: {actual:#?}").unwrap();
    }
    text
}

#[test]
fn every_manifest_gets_the_expected_messages() {
    let mut wrong = String::new();
    for (file, case) in all_cases() {
        let result = case.validate();
        let actual: Vec<String> = result.violations.iter().map(ToString::to_string).collect();
        let mut differs = difference(&case.denied, &actual);
        if let Some(expected) = &case.warnings {
            differs += &difference(expected, &result.warnings);
        }
        if !differs.is_empty() {
            writeln!(wrong, "{file}: {}\n{differs}", case.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n\n(- is expected, + is actual)\n\n{wrong}");
}

#[test]
fn cases_are_numerous_and_have_unique_names() {
    let (denied, warnings) = (cases("denied"), cases("warnings"));
    let count = |files: &BTreeMap<String, Vec<Case>>| files.values().map(Vec::len).sum::<usize>();
    assert!(count(&denied) >= 100, "{} denied", count(&denied));
    assert!(count(&warnings) >= 15, "{} warnings", count(&warnings));
    for (file, case) in
        denied.iter().flat_map(|(file, cases)| cases.iter().map(move |case| (file, case)))
    {
        assert!(!case.denied.is_empty(), "{file}: {} is denied without a message", case.name);
    }
    for (file, case) in
        warnings.iter().flat_map(|(file, cases)| cases.iter().map(move |case| (file, case)))
    {
        assert!(case.warnings.is_some() && case.denied.is_empty(), "{file}: {}", case.name);
    }
    let all = all_cases();
    let names: BTreeSet<&str> = all.iter().map(|(_, case)| case.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "two cases have one name");
}

#[test]
fn every_message_names_the_field_the_error_type_and_the_remedy() {
    let error_types =
        [ErrorType::Invalid, ErrorType::Unsupported, ErrorType::Required, ErrorType::Forbidden];
    for (file, case) in all_cases() {
        for message in case.validate().violations.iter().map(ToString::to_string) {
            let mut parts = message.splitn(3, ": ");
            let (path, error_type) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            let detail = parts.next().unwrap_or_default();
            let good = (path.starts_with("spec") || path == "metadata.name")
                && !path.split('[').next().unwrap().contains(' ')
                && error_types.iter().any(|known| known.as_str() == error_type)
                && detail.len() > 10;
            assert!(good, "{file}: {}: {message}", case.name);
            assert!(!message.contains("should"), "{file}: {}: {message}", case.name);
        }
    }
}

#[test]
fn every_warning_is_short_enough_for_clients() {
    for (file, case) in all_cases() {
        for warning in case.validate().warnings {
            let length = warning.chars().count();
            assert!(length <= MAX_WARNING_LENGTH, "{file}: {}: {length}: {warning}", case.name);
            assert!(!warning.contains("should"), "{file}: {}: {warning}", case.name);
            // Only the error of a stored object may be too long for a warning.
            let complete = warning.starts_with("still invalid") || !warning.ends_with("...");
            assert!(complete, "{file}: {}: truncated: {warning}", case.name);
        }
    }
}

#[test]
fn every_file_covers_more_than_one_version_of_kinds_that_have_several() {
    for (file, cases) in cases("denied") {
        let several = |case: &&Case| case.kind().has_older_versions();
        let versions: BTreeSet<&str> = cases.iter().filter(several).map(Case::version).collect();
        assert_ne!(versions.len(), 1, "{file} has only {versions:?}");
    }
}

#[test]
fn hub_only_fields_are_named_as_fields_of_v1_in_older_versions() {
    let group = "etcd.appdelivery.cncf.io";
    let running = json!({
        "apiVersion": format!("{group}/v1"), "kind": "EtcdCluster", "metadata": {"name": "main"},
        "spec": {"version": "3.6.16", "storage": {"medium": "Memory"}, "restore": {"from": {}}},
    });
    let mut edited = convert(running.clone(), &format!("{group}/v1alpha1")).unwrap();
    edited["spec"]["size"] = json!(0);
    let desired = convert(edited, &format!("{group}/v1")).unwrap();
    let context = ValidationContext {
        now: NOW.parse().unwrap(),
        features: FeatureSet::ALL,
        request_version: "v1alpha1",
    };
    let result = validate(&kinds::ETCD_CLUSTER, Some(&running), &desired, &context);
    let actual: Vec<String> = result.violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        actual,
        ["spec.size: Invalid value: 0: must be at least 1 with `spec.storage.medium` of v1 \
             \"Memory\": the data would be lost; delete the EtcdCluster instead"]
    );
    let expected = "still invalid: spec: `spec.restore.from` of v1: set `backupRef`";
    assert!(result.warnings.iter().any(|warning| warning.starts_with(expected)), "{result:#?}");
}
