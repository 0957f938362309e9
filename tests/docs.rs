//! The documents tell the truth where a machine can check it: links lead somewhere, make targets exist, the
//! table of settings is that of the program, and the pages about the API say what its code does.
//! Comes in: every Markdown file of the project, the Makefile, the program's help. Goes out: each untruth.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

#[path = "docs/api.rs"]
mod api;
#[path = "support/markdown_tables.rs"]
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PAGES: [&str; 6] =
    ["docs", "deploy", "tests/cluster", "webhook-certs", "README.md", "CONTRIBUTING.md"];

#[test]
fn every_link_to_a_file_leads_somewhere() {
    let mut broken = Vec::new();
    for (page, text) in pages() {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            let is_ours = !file.is_empty() && !file.contains("://");
            if is_ours && !page.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
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
    assert!(unknown.is_empty(), "targets that do not exist:\n{}", unknown.join("\n"));
    assert!(targets.contains("test") && targets.contains("demo"), "{targets:?}");
}

#[test]
fn the_table_of_settings_is_that_of_the_program() {
    let help =
        Command::new(env!("CARGO_BIN_EXE_quorate")).args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let of_program: BTreeSet<&str> = words_that_start_with_dashes(&help).collect();
    let page = fs::read_to_string(Path::new(ROOT).join("docs/install.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `--"));
    let of_page: BTreeSet<&str> = rows.flat_map(words_that_start_with_dashes).collect();
    assert!(!of_page.is_empty(), "there is no table of settings in docs/install.md");
    let missing: Vec<_> =
        of_program.difference(&of_page).filter(|flag| **flag != "--help").collect();
    assert!(missing.is_empty(), "docs/install.md does not tell of {missing:?}");
    let invented: Vec<_> = of_page.difference(&of_program).collect();
    assert!(invented.is_empty(), "docs/install.md tells of {invented:?}, which do not exist");
    for row in page.lines().filter(|line| line.starts_with("| `--")) {
        let variable = row.split('`').find(|word| word.starts_with("QUORATE_")).unwrap();
        assert!(
            help.contains(&format!("[env: {variable}=")),
            "{variable} is not read by the program"
        );
    }
}

/// The pieces of a line that are code: all of it if it is indented, else what stands between backticks.
fn code(line: &str) -> Vec<&str> {
    if line.starts_with("    ") { vec![line] } else { line.split('`').skip(1).step_by(2).collect() }
}

/// What follows the word `make`, also in `$(make -s target)`.
fn make_targets(code: &str) -> Vec<&str> {
    let is_mark = |it: char| !(it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-');
    let words: Vec<&str> =
        code.split(is_mark).filter(|word| !word.is_empty() && *word != "-s").collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs.filter(|(word, _)| **word == "make").map(|(_, target)| *target).collect()
}

fn words_that_start_with_dashes(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |it: char| !(it.is_ascii_lowercase() || it == '-');
    text.split(is_end).filter(|word| word.starts_with("--") && word.len() > 3)
}

/// One page of the book.
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
