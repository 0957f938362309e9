//! What is refused and what is warned about, word for word: the manifests in `refused/` and `warned/`
//! are the cases, and each says what its user is told.
//! Comes in: those manifests, in any version. Goes out: every case that is answered otherwise, all
//! at once.
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

/// When all this is tried: schedules have a next run from here.
const NOW: &str = "2026-11-16T06:00:00Z";
const MOST_OF_A_WARNING: usize = 120;

/// One manifest and the answer to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What the user did.
    #[serde(rename = "case")]
    did: String,
    /// The object before the change, with its status if that matters.
    running: Option<Value>,
    /// What the user wrote.
    manifest: Value,
    /// `none` for what this release does by itself; else everything that the API has words for.
    abilities: Option<String>,
    /// One ability that is taken away.
    without: Option<String>,
    /// The refusals.
    #[serde(default)]
    refused: Vec<String>,
    /// The warnings. Only compared where they are given.
    warned: Option<Vec<String>>,
}

impl Case {
    fn kind(&self) -> &'static Kind {
        kinds::by_name(self.manifest["kind"].as_str().unwrap()).unwrap()
    }

    fn version(&self) -> &str {
        self.manifest["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap()
    }

    fn can(&self) -> FeatureSet {
        if let Some(word) = &self.abilities {
            assert_eq!(word, "none", "{}", self.did);
            return FeatureSet::CURRENT;
        }
        let Some(without) = &self.without else { return FeatureSet::ALL };
        let rest = Feature::ALL.iter().copied().filter(|it| format!("{it:?}") != *without);
        let rest: &'static [Feature] = rest.collect::<Vec<_>>().leak();
        assert_eq!(rest.len() + 1, Feature::ALL.len(), "{}: no such ability", self.did);
        FeatureSet::only(rest)
    }

    fn verdict(&self) -> ValidationResult {
        let kind = self.kind();
        let facts = ValidationContext {
            now: NOW.parse().unwrap(),
            features: self.can(),
            request_version: self.version(),
        };
        let hub = |object: &Value| convert(object.clone(), &kind.api_version(kind.hub())).unwrap();
        let running = self.running.as_ref().map(hub);
        let mut wanted = hub(&self.manifest);
        // The apiserver takes no status from such a write.
        if let Some(status) = running.as_ref().and_then(|running| running.get("status")) {
            wanted["status"] = status.clone();
        }
        validate(kind, running.as_ref(), &wanted, &facts)
    }
}

/// The cases of every file in a folder.
fn cases(folder: &str) -> BTreeMap<String, Vec<Case>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let read: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        files.insert(name, read);
    }
    files
}

fn everything() -> Vec<(String, Case)> {
    let named = |(file, cases): (String, Vec<Case>)| {
        cases.into_iter().map(move |case| (file.clone(), case))
    };
    cases("refused").into_iter().chain(cases("warned")).flat_map(named).collect()
}

/// The lines of a list that differ: `-` was expected, `+` was said.
fn difference(expected: &[String], said: &[String]) -> String {
    let mut text = String::new();
    for line in expected.iter().filter(|line| !said.contains(line)) {
        writeln!(text, "    - {line}").unwrap();
    }
    for line in said.iter().filter(|line| !expected.contains(line)) {
        writeln!(text, "    + {line}").unwrap();
    }
    if text.is_empty() && expected != said {
        writeln!(text, "    the same in another order: {said:#?}").unwrap();
    }
    text
}

#[test]
fn every_manifest_gets_the_answer_that_is_written_beside_it() {
    let mut wrong = String::new();
    for (file, case) in everything() {
        let verdict = case.verdict();
        let said: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
        let mut differs = difference(&case.refused, &said);
        if let Some(expected) = &case.warned {
            differs += &difference(expected, &verdict.warnings);
        }
        if !differs.is_empty() {
            writeln!(wrong, "{file}: {}\n{differs}", case.did).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n\n(- is written there, + is what was said)\n\n{wrong}");
}

#[test]
fn there_are_many_of_them_and_no_two_are_the_same() {
    let (refused, warned) = (cases("refused"), cases("warned"));
    let count = |files: &BTreeMap<String, Vec<Case>>| files.values().map(Vec::len).sum::<usize>();
    assert!(count(&refused) >= 100, "{} refused", count(&refused));
    assert!(count(&warned) >= 15, "{} warned", count(&warned));
    for (file, case) in
        refused.iter().flat_map(|(file, cases)| cases.iter().map(move |it| (file, it)))
    {
        assert!(!case.refused.is_empty(), "{file}: {} is refused with no word", case.did);
    }
    for (file, case) in
        warned.iter().flat_map(|(file, cases)| cases.iter().map(move |it| (file, it)))
    {
        assert!(case.warned.is_some() && case.refused.is_empty(), "{file}: {}", case.did);
    }
    let all = everything();
    let names: BTreeSet<&str> = all.iter().map(|(_, case)| case.did.as_str()).collect();
    assert_eq!(names.len(), all.len(), "two cases have one name");
}

#[test]
fn every_message_names_the_field_the_kind_of_fault_and_what_to_do() {
    let faults =
        [ErrorType::Invalid, ErrorType::Unsupported, ErrorType::Required, ErrorType::Forbidden];
    for (file, case) in everything() {
        for said in case.verdict().violations.iter().map(ToString::to_string) {
            let mut parts = said.splitn(3, ": ");
            let (path, fault) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            let detail = parts.next().unwrap_or_default();
            let good = (path.starts_with("spec") || path == "metadata.name")
                && !path.split('[').next().unwrap().contains(' ')
                && faults.iter().any(|known| known.words() == fault)
                && detail.len() > 10;
            assert!(good, "{file}: {}: {said}", case.did);
            assert!(!said.contains("should"), "{file}: {}: {said}", case.did);
        }
    }
}

#[test]
fn every_warning_is_short_enough_to_be_shown() {
    for (file, case) in everything() {
        for said in case.verdict().warnings {
            let length = said.chars().count();
            assert!(length <= MOST_OF_A_WARNING, "{file}: {}: {length}: {said}", case.did);
            assert!(!said.contains("should"), "{file}: {}: {said}", case.did);
            // Only what was wrong before may be too long for a warning.
            let whole = said.starts_with("still wrong") || !said.ends_with("...");
            assert!(whole, "{file}: {}: cut off: {said}", case.did);
        }
    }
}

#[test]
fn every_file_tries_more_than_one_version_of_kinds_that_have_several() {
    for (file, cases) in cases("refused") {
        let several = |case: &&Case| case.kind().has_older_versions();
        let versions: BTreeSet<&str> = cases.iter().filter(several).map(Case::version).collect();
        assert_ne!(versions.len(), 1, "{file} is all in {versions:?}");
    }
}

#[test]
fn what_only_v1_can_say_is_called_v1s_to_the_user_of_an_older_version() {
    let group = "etcd.appdelivery.cncf.io";
    let running = json!({
        "apiVersion": format!("{group}/v1"), "kind": "EtcdCluster", "metadata": {"name": "main"},
        "spec": {"version": "3.6.16", "storage": {"medium": "Memory"}, "restore": {"from": {}}},
    });
    let mut edited = convert(running.clone(), &format!("{group}/v1alpha1")).unwrap();
    edited["spec"]["size"] = json!(0);
    let wanted = convert(edited, &format!("{group}/v1")).unwrap();
    let facts = ValidationContext {
        now: NOW.parse().unwrap(),
        features: FeatureSet::ALL,
        request_version: "v1alpha1",
    };
    let verdict = validate(&kinds::ETCD_CLUSTER, Some(&running), &wanted, &facts);
    let said: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["spec.size: Invalid value: 0: must be at least 1 with `spec.storage.medium` of v1 \
             \"Memory\": the data would be gone; delete the EtcdCluster instead"]
    );
    let before = "still wrong, as before: spec: `spec.restore.from` of v1: say `backupRef`";
    assert!(verdict.warnings.iter().any(|said| said.starts_with(before)), "{verdict:#?}");
}
