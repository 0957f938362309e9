//! What the pages state about features and webhooks, compared with `FeatureSet::CURRENT` and with
//! the manifests.

use std::fs;
use std::path::Path;

use quorate::api::validation::features::{Feature, FeatureSet};
use serde_json::Value;

use super::tables::{code, rows_below};
use super::{ROOT, page, pages};

/// Phrases that deny a feature.
const DENIALS: [&str; 18] = [
    "not in this release",
    "not supported in this release",
    "not supported yet",
    "not yet supported",
    "not implemented",
    "does not exist yet",
    "exists yet",
    "no controller exists",
    "no controller acts on an object",
    "no controller yet",
    "no controllers yet",
    "has no controller",
    "only stored",
    "to come",
    "this release cannot",
    "this release does not support",
    "this release rejects",
    "this release takes no",
];

const NUMBERS: [&str; 10] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/// Words that a text about a feature contains, in lower case.
const fn keywords(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Cluster => &["etcdcluster"],
        Feature::Upgrade | Feature::MultiStepUpgrade => &["upgrade", "version change"],
        Feature::Downgrade => &["downgrade"],
        Feature::Backup => &["backup", "snapshotfirst", "snapshotthendelete"],
        Feature::Restore => &["restore"],
        Feature::CertManager => &["cert-manager", "certmanager"],
        Feature::SecretCertificates => &["secret"],
        Feature::Plaintext => &["plaintext"],
        Feature::Auth => &["authentication"],
        Feature::Defragment => &["defragment"],
        Feature::Application => &["exampleapp", "example application"],
    }
}

#[test]
fn feature_table_matches_the_feature_set() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let rows = rows_below(&readme, "## Features");
    for feature in Feature::ALL {
        let marker = format!("<!-- {feature:?} -->");
        let found: Vec<_> = rows.iter().filter(|row| row[0].contains(&marker)).collect();
        assert_eq!(found.len(), 1, "README.md, ## Features: rows with {marker}");
        let is_supported = FeatureSet::CURRENT.contains(*feature);
        let expected = if is_supported { "supported" } else { "not supported yet" };
        assert_eq!(found[0][1], expected, "README.md, ## Features: state of {feature:?}");
    }
}

#[test]
fn no_page_denies_a_supported_feature() {
    let missing: Vec<&str> = Feature::ALL
        .iter()
        .filter(|feature| !FeatureSet::CURRENT.contains(**feature))
        .flat_map(|feature| keywords(*feature))
        .copied()
        .collect();
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        for paragraph in paragraphs(&text) {
            let lower = paragraph.to_lowercase();
            let denial = DENIALS.iter().find(|phrase| lower.contains(*phrase));
            let Some(denial) = denial else { continue };
            if !missing.iter().any(|word| lower.contains(word)) {
                wrong.push(format!("{}: {denial:?} in {paragraph:?}", path.display()));
            }
        }
    }
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "no unsupported feature is named:\n{wrong}");
}

/// Paragraphs, list items and table rows. A heading that denies something covers its whole section.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_section = false;
    let mut is_new = true;
    for line in text.lines() {
        let is_heading = line.starts_with('#');
        if is_heading {
            let lower = line.to_lowercase();
            is_section = DENIALS.iter().any(|phrase| lower.contains(phrase));
        }
        let starts = is_heading || !is_section && (is_new || line.starts_with(['|', '-']));
        is_new = is_heading && !is_section || line.trim().is_empty();
        match found.last_mut() {
            Some(last) if !starts => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => found.push(line.trim().to_owned()),
        }
    }
    found
}

#[test]
fn webhooks_on_the_pages_are_those_of_the_manifests() {
    let manifests = fs::read_to_string(Path::new(ROOT).join("deploy/base/webhooks.yaml")).unwrap();
    let mut installed = Vec::new();
    for document in manifests.split("\n---") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        let webhooks = object["webhooks"].as_array().into_iter().flatten();
        installed.extend(webhooks.map(|webhook| webhook["name"].as_str().unwrap().to_owned()));
    }
    let number = NUMBERS[installed.len()];
    let rows = rows_below(&page("webhooks.md"), &format!("## The {number} webhooks"));
    let listed: Vec<String> = rows.iter().map(|row| code(&row[0]).remove(0)).collect();
    assert_eq!(listed, installed, "left: docs/webhooks.md, right: deploy/base/webhooks.yaml");
    for (path, text) in pages() {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        for pair in words.windows(2).filter(|pair| pair[1].starts_with("webhooks")) {
            let is_number = NUMBERS.contains(&pair[0].as_str());
            let is_right = !is_number || pair[0] == number;
            assert!(is_right, "{}: {} webhooks; there are {number}", path.display(), pair[0]);
        }
    }
}
