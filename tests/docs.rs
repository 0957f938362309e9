//! The pages agree with the code: links and anchors exist, make targets exist, the reference tables
//! of flags, metrics, reasons and Events are complete, no page denies a feature of this release,
//! and the pages about the API have its fields, defaults and messages.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

#[path = "docs/api.rs"]
mod api;
#[path = "docs/features.rs"]
mod features;
#[path = "docs/reference.rs"]
mod reference;
#[path = "support/markdown_tables.rs"]
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PAGES: [&str; 9] = [
    "docs",
    "deploy",
    "benches",
    "tests/cluster",
    "webhook-certs",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];

#[test]
fn every_link_to_a_file_or_heading_exists() {
    let mut broken = Vec::new();
    for (page, text) in pages() {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let has_anchor = || {
                let text = fs::read_to_string(&file).unwrap_or_default();
                anchor.is_empty() || text.lines().filter_map(anchor_of).any(|found| found == anchor)
            };
            if !file.exists() || !has_anchor() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
}

/// The anchor of a line, as GitHub and mdBook derive it, if the line is a heading.
fn anchor_of(line: &str) -> Option<String> {
    let heading = line.trim_start_matches('#');
    if heading.len() == line.len() || !heading.starts_with(' ') {
        return None;
    }
    let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    let anchor: String = heading.trim().chars().filter(kept).collect();
    Some(anchor.to_lowercase().replace(' ', "-"))
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = page("SUMMARY.md");
    let folder = Path::new(ROOT).join("docs");
    for (path, _) in pages() {
        let Ok(name) = path.strip_prefix(&folder) else { continue };
        let name = name.display().to_string();
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn every_make_target_in_the_documents_exists() {
    let makefile = fs::read_to_string(Path::new(ROOT).join("Makefile")).unwrap();
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter(|line| line.contains("## "))
        .filter_map(|line| line.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    let mut unknown = Vec::new();
    for (page, text) in pages() {
        for target in text.lines().flat_map(code).flat_map(make_targets) {
            if !targets.contains(target) {
                unknown.push(format!("{}: make {target}", page.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "make targets that do not exist:\n{}", unknown.join("\n"));
    assert!(targets.contains("test") && targets.contains("demo"), "{targets:?}");
}

/// The code of a line: all of it if it is indented, else what is between backticks.
fn code(line: &str) -> Vec<&str> {
    if line.starts_with("    ") { vec![line] } else { line.split('`').skip(1).step_by(2).collect() }
}

/// The targets after `make`, also in `$(make -s target)`.
fn make_targets(code: &str) -> Vec<&str> {
    let is_mark = |mark: char| !(mark.is_ascii_lowercase() || mark.is_ascii_digit() || mark == '-');
    let words: Vec<&str> =
        code.split(is_mark).filter(|word| !word.is_empty() && *word != "-s").collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs.filter(|(word, _)| **word == "make").map(|(_, target)| *target).collect()
}

/// One page of `docs`.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("docs").join(name)).unwrap()
}

/// Every Markdown file, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for page in PAGES {
        collect(&Path::new(ROOT).join(page), &mut files);
    }
    assert!(files.len() > 10, "only {} pages were found", files.len());
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect()
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), files);
        }
    } else if path.extension().is_some_and(|suffix| suffix == "md") {
        files.push(path.to_owned());
    }
}
