//! The reference pages of flags, metrics, condition reasons and Events, compared with the code.
//!
//! Lists that the library exports are read from there; the others are string literals of their
//! modules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use quorate::etcd_cluster::plan::Step;
use quorate::etcd_cluster::reason::{
    CLUSTER_CONDITIONS, CONDITION_REASONS, MEMBER_CONDITIONS, Reason,
};

use super::tables::{code, rows_below};
use super::{ROOT, page};

type Names = BTreeSet<String>;

fn names<I: IntoIterator<Item = S>, S: Into<String>>(names: I) -> Names {
    names.into_iter().map(Into::into).collect()
}

/// The first code of the first cell of each row below a heading.
fn first_column(page: &str, heading: &str) -> Names {
    names(rows_below(page, heading).iter().map(|row| code(&row[0]).remove(0)))
}

/// The product code below a path of `src`: without test modules and test files.
fn product_code(path: &str) -> String {
    fn collect(path: &Path, text: &mut String) {
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            let mut entries: Vec<PathBuf> = entries.collect();
            entries.sort();
            for entry in &entries {
                collect(entry, text);
            }
        } else if path.file_stem().is_some_and(|stem| stem != "tests") {
            let file = fs::read_to_string(path).unwrap();
            text.push_str(file.split("#[cfg(test)]").next().unwrap());
        }
    }
    let mut text = String::new();
    collect(&Path::new(ROOT).join("src").join(path), &mut text);
    assert!(!text.is_empty(), "src/{path} is empty");
    text
}

/// String literals in code, without comments.
fn literals(code: &str) -> Vec<&str> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

fn is_camel_case(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric())
}

fn help(subcommand: &str) -> String {
    let program = env!("CARGO_BIN_EXE_quorate");
    let output = Command::new(program).args([subcommand, "--help"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn flags(text: &str) -> Names {
    let is_end = |mark: char| !(mark.is_ascii_lowercase() || mark == '-');
    let flags = text.split(is_end).filter(|flag| flag.starts_with("--") && flag.len() > 3);
    names(flags.filter(|flag| *flag != "--help"))
}

#[test]
fn every_flag_is_in_the_reference() {
    let reference = page("flags.md");
    for subcommand in ["run", "crds", "manifests", "migrate", "version", "completion"] {
        let help = help(subcommand);
        // A flag may be mentioned in the help of another one, at the start of no line.
        let lines = help.lines().filter(|line| line.trim_start().starts_with('-'));
        let expected = flags(&lines.collect::<Vec<_>>().join("\n"));
        let heading = format!("## quorate {subcommand}");
        if expected.is_empty() {
            assert!(reference.contains(&heading), "docs/flags.md: no {heading}");
            continue;
        }
        assert_eq!(first_column(&reference, &heading), expected, "left: docs/flags.md, {heading}");
    }
    let help = help("run");
    for row in rows_below(&reference, "## quorate run") {
        let variable = &code(&row[1])[0];
        assert!(help.contains(&format!("[env: {variable}=")), "{variable} is not read");
        let default = code(&row[2]).first().cloned().unwrap_or_default();
        let is_literal = row[2] == format!("`{default}`");
        assert!(!is_literal || help.contains(&format!("[default: {default}]")), "{row:?}");
    }
}

#[test]
fn every_subcommand_is_in_the_reference() {
    let reference = page("flags.md");
    let program = env!("CARGO_BIN_EXE_quorate");
    let output = Command::new(program).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    let commands: Vec<&str> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"run"), "{help}");
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(reference.contains(&format!("## quorate {command}\n")), "docs/flags.md: {command}");
    }
}

#[test]
fn every_metric_is_in_the_reference() {
    let code = [product_code("telemetry/metrics.rs"), product_code("telemetry/metrics")].concat();
    let is_metric = |name: &&str| name.starts_with("quorate_") || name.starts_with("process_");
    let registered = names(literals(&code).into_iter().filter(is_metric));
    assert!(registered.len() > 20, "{registered:?}");
    // The encoder adds these to counters and to the build information.
    let without_suffix = |name: &String| {
        let name = name.strip_suffix("_total").or_else(|| name.strip_suffix("_info"));
        name.map(str::to_owned)
    };
    let reference = page("metrics.md");
    let rows = rows_below(&reference, "## Reference");
    let mut listed = Names::new();
    for row in &rows {
        let [name, kind, _, _] = row.as_slice() else { panic!("not four cells: {row:?}") };
        let name = super::tables::code(name).remove(0);
        let has_suffix = without_suffix(&name).is_some();
        assert_eq!(has_suffix, ["counter", "info"].contains(&kind.as_str()), "{name} is {kind}");
        listed.insert(without_suffix(&name).unwrap_or(name));
    }
    assert_eq!(listed, registered, "left: docs/metrics.md, right: src/telemetry/metrics");
}

/// All reasons of conditions.
fn condition_reasons() -> Names {
    let reasons = Reason::ALL.iter().map(|reason| reason.name());
    names(reasons.chain(CONDITION_REASONS.iter().copied()))
}

#[test]
fn every_reason_has_an_entry_with_meaning_check_and_remedy() {
    let reference = page("conditions.md");
    let entries: Vec<&str> = reference.split("\n### ").skip(1).collect();
    let mut listed = Names::new();
    for entry in entries {
        let (name, text) = entry.split_once('\n').unwrap();
        let text = text.split("\n## ").next().unwrap();
        for part in ["- **Meaning:** ", "- **Check:** ", "- **Do:** "] {
            assert!(text.contains(part), "docs/conditions.md, {name}: no {part:?}");
        }
        assert!(listed.insert(name.to_owned()), "docs/conditions.md: {name} is there twice");
    }
    assert_eq!(listed, condition_reasons(), "left: docs/conditions.md, right: the code");
}

#[test]
fn every_condition_type_is_in_the_reference() {
    let types = names(CLUSTER_CONDITIONS.iter().chain(MEMBER_CONDITIONS).copied());
    let listed = first_column(&page("conditions.md"), "## Condition types");
    assert_eq!(listed, types, "left: docs/conditions.md, right: the code");
}

#[test]
fn every_step_and_event_is_in_the_reference() {
    let reference = page("events.md");
    let rows = rows_below(&reference, "## Steps");
    let steps = names(rows.iter().map(|row| code(&row[1]).remove(0)));
    assert_eq!(steps, names(Step::NAMES), "left: docs/events.md, right: Step::NAMES");
    let events = first_column(&reference, "## Steps");
    assert_eq!(events, names(Step::EVENTS), "left: docs/events.md, right: Step::EVENTS");

    let files = ["etcd_cluster/tls/ca_set.rs", "etcd_cluster/tls/trust_state.rs"];
    let tls = files.map(product_code).concat();
    let is_event = |line: &&str| line.contains("=> Some(\"");
    let rotation = names(tls.lines().filter(is_event).flat_map(literals));
    let listed = first_column(&reference, "## Certificates");
    assert_eq!(listed, rotation, "left: docs/events.md, right: src/etcd_cluster/tls");
}

#[test]
fn every_storage_migration_event_is_in_the_reference() {
    let migration = product_code("storage_migration");
    let by_field = migration.lines().filter(|line| line.contains("reason: \""));
    let is_event = |name: &&str| name.starts_with("StorageMigrat") || name.ends_with("Migrated");
    let by_name = literals(&migration).into_iter().filter(|name| is_camel_case(name));
    let by_name = by_name.filter(is_event);
    let migration = names(by_field.flat_map(literals).chain(by_name));
    let listed = first_column(&page("events.md"), "## Storage migration");
    assert_eq!(listed, migration, "left: docs/events.md, right: src/storage_migration");
}
