//! The architecture as a test: reads the sources as text and checks the rules that no lint checks.
//! A new controller is one entry in `CONTROLLERS`, a new module one entry in `MODULES`; a failure
//! names the file and the remedy.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[path = "support/source_files.rs"]
mod source_files;
#[path = "architecture/vocabulary.rs"]
mod vocabulary;

use source_files::{Source, sources};

/// Which modules of this crate a module may use, besides itself.
const MODULES: &[(&str, &[&str])] = &[
    ("agent", &["api"]),
    ("api", &[]),
    ("cli", &["api"]),
    ("lib", &[]),
    ("manifests", &["api"]),
    ("pki", &[]),
    ("clients", &["api"]),
    (
        "settings",
        &[
            "api",
            "webhook_certs",
            "cli",
            "etcd_cluster",
            "leader_election",
            "storage_migration",
            "telemetry",
        ],
    ),
    ("telemetry", &["api"]),
];
/// A controller uses these modules, and never another controller.
const CONTROLLERS: &[&str] = &[
    "etcd_cluster",
    "leader_election",
    "namespace_access",
    "storage_migration",
    "webhook",
    "webhook_certs",
];
const CONTROLLER_MAY_USE: &[&str] = &["api", "clients", "pki", "telemetry"];
/// The only module that wires the others; only `main` may use it.
const WIRING: &str = "app";

/// Pure modules: files, or whole folders with the file beside them. No I/O, no clock, no async.
const PURE: &[&str] = &[
    "agent/decide",
    "api",
    "etcd_cluster/decide",
    "etcd_cluster/defragmentation",
    "etcd_cluster/drift",
    "etcd_cluster/heartbeat",
    "etcd_cluster/observe/etcd",
    "etcd_cluster/observe/objects",
    "etcd_cluster/plan",
    "etcd_cluster/raft_log",
    "etcd_cluster/render",
    "etcd_cluster/rollback",
    "etcd_cluster/state",
    "etcd_cluster/status",
    "etcd_cluster/tls/ca_pair",
    "etcd_cluster/tls/ca_rotation",
    "etcd_cluster/tls/ca_set",
    "etcd_cluster/tls/cert_manager",
    "etcd_cluster/tls/client_secret",
    "etcd_cluster/tls/external_secret",
    "etcd_cluster/tls/lifetimes",
    "etcd_cluster/tls/member_certs",
    "etcd_cluster/tls/readiness",
    "etcd_cluster/tls/report",
    "etcd_cluster/tls/secret_keys",
    "etcd_cluster/tls/secrets_plan",
    "etcd_cluster/tls/select",
    "etcd_cluster/tls/source",
    "etcd_cluster/tls/trust_bundle",
    "etcd_cluster/tls/trust_change",
    "etcd_cluster/tls/trust_hash",
    "etcd_cluster/tls/trust_state",
    "etcd_cluster/transport",
    "etcd_cluster/version",
    "leader_election/decide",
    "leader_election/lease",
    "leader_election/role",
    "leader_election/state",
    "leader_election/transition",
    "leader_election/write",
    "manifests",
    "namespace_access/backoff",
    "namespace_access/conditions",
    "namespace_access/decide",
    "namespace_access/render",
    "namespace_access/state",
    "namespace_access/store",
    "pki/ca",
    "pki/key",
    "pki/leaf",
    "settings/check",
    "storage_migration/decide",
    "storage_migration/managed_fields",
    "storage_migration/progress_cache",
    "storage_migration/record",
    "storage_migration/state",
    "storage_migration/transition",
    "webhook/admission",
    "webhook/conversion",
    "webhook/deletion_protection",
    "webhook/handler",
    "webhook/json_memory",
    "webhook/panic",
    "webhook/review",
    "webhook/scale",
    "webhook/server/activity",
    "webhook/server/eviction",
    "webhook/server/limits",
    "webhook/spoke_update",
    "webhook/ssa_release",
    "webhook_certs/apply",
    "webhook_certs/ca_set",
    "webhook_certs/decide",
    "webhook_certs/key_pair",
    "webhook_certs/leaf",
    "webhook_certs/lifetimes",
    "webhook_certs/secret",
    "webhook_certs/state",
];
const FENCE: &str = "#![deny(clippy::disallowed_types, clippy::disallowed_methods)]";
/// Code that a pure module must not contain.
const IMPURE: &[&str] = &["async fn", "async move", "async {", "async |", ".await", "println!"];
/// Paths that a pure module must not use, however they are imported.
const IMPURE_PATHS: &[&str] = &[
    "crate::clients",
    "std::env",
    "std::fs",
    "std::io",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "tokio",
    "tracing",
];
/// Calls that start a task, a thread or a runtime.
const SPAWNS: &[&str] =
    &["spawn", "JoinSet", "Runtime::new", "Builder::new_multi", "Builder::new_current"];

const MEANINGLESS_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc"];
const MAX_LINES: usize = 400;

fn is_pure(source: &Source) -> bool {
    let inside = |module: &&str| {
        let rest = source.module().strip_prefix(module);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    PURE.iter().any(inside) && !source.is_test()
}

fn all_sources() -> impl Iterator<Item = (String, Source)> {
    ["src", "tests/cluster/src", "tests/harness/src"].into_iter().flat_map(|folder| {
        let named = move |source: Source| (format!("{folder}/{}", source.path), source);
        sources(folder).into_iter().map(named)
    })
}

fn assert_no_violations(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn every_file_starts_with_a_module_doc() {
    let violations: Vec<String> = all_sources()
        .filter(|(_, source)| !source.text.starts_with("//!"))
        .map(|(path, _)| format!("{path}: start with a `//!` module doc: what it is for and why"))
        .collect();
    assert_no_violations(&violations);
}

#[test]
fn files_stay_short() {
    let violations: Vec<String> = all_sources()
        .map(|(path, source)| (path, source.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines, at most {MAX_LINES}; split it"))
        .collect();
    assert_no_violations(&violations);
}

#[test]
fn module_names_are_meaningful() {
    let empty = |name: &str| name == "mod" || MEANINGLESS_NAMES.contains(&name);
    let violations: Vec<String> = all_sources()
        .filter(|(_, source)| source.module().split('/').any(empty))
        .map(|(path, _)| format!("{path}: name it for what it holds; `name.rs` beside `name/`"))
        .collect();
    assert_no_violations(&violations);
}

#[test]
fn pure_modules_are_fenced_and_do_no_io() {
    let mut violations = Vec::new();
    let sources = sources("src");
    for module in PURE {
        let file = format!("{module}.rs");
        if !sources.iter().any(|source| source.path == file) {
            violations.push(format!("{file}: in PURE but does not exist"));
        }
    }
    for source in sources.iter().filter(|source| is_pure(source)) {
        let path = &source.path;
        let code = source.code();
        let first = code.iter().map(|(_, line)| line.trim()).find(|line| !line.is_empty());
        if first != Some(FENCE) {
            violations.push(format!("src/{path}: a pure module starts with {FENCE}"));
        }
        violations.extend(
            impure(source).map(|(at, word)| format!("src/{path}:{at}: `{word}` in a pure module")),
        );
    }
    assert_no_violations(&violations);
}

#[test]
fn conversion_destructures_every_field_by_name() {
    // A new field must not compile until its conversion is written. `..rest` that
    // fills in a value is fine; `..` that swallows fields of a pattern is not.
    let swallows = |line: &str| {
        let rest = line.split("..").skip(1).map(str::trim_start);
        rest.into_iter().any(|after| after.is_empty() || after.starts_with('}'))
    };
    let mut violations = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        let path = &source.path;
        let converts =
            ["/convert", "destination/", "/backup_store.rs"].iter().any(|name| path.contains(name));
        if !path.starts_with("api/") || !converts {
            continue;
        }
        let lines = source.code().into_iter().filter(|(_, line)| swallows(line));
        violations.extend(lines.map(|(at, line)| format!("src/{path}:{at}: `{}`", line.trim())));
    }
    assert_no_violations(&violations);
}

/// Code that keeps a module from being pure, with the line.
fn impure(source: &Source) -> impl Iterator<Item = (usize, &'static str)> {
    let mut found = Vec::new();
    for (at, line) in source.code() {
        let names = |path: &&&str| line.contains(&format!("{path}::"));
        found.extend(IMPURE.iter().filter(|word| line.contains(**word)).map(|word| (at, *word)));
        found.extend(IMPURE_PATHS.iter().filter(names).map(|path| (at, *path)));
    }
    for (at, used) in source.uses() {
        let names = |path: &&&str| used.starts_with(**path);
        found.extend(IMPURE_PATHS.iter().filter(names).map(|path| (at, *path)));
    }
    found.into_iter()
}

#[test]
fn modules_use_only_what_they_may() {
    let mut violations = Vec::new();
    for source in sources("src") {
        let (path, module) = (&source.path, source.top_module());
        let allowed: &[&str] = match MODULES.iter().find(|(name, _)| *name == module) {
            Some((_, allowed)) => allowed,
            None if CONTROLLERS.contains(&module) => CONTROLLER_MAY_USE,
            None if module == WIRING || module == "main" => continue,
            None => {
                violations.push(format!("src/{path}: add it to MODULES or CONTROLLERS"));
                continue;
            }
        };
        for (at, used) in modules_used(&source) {
            if used != module && !allowed.contains(&used.as_str()) {
                violations.push(format!("src/{path}:{at}: {module} may not use `crate::{used}`"));
            }
        }
    }
    assert_no_violations(&violations);
}

/// The modules of this crate that a file names, in imports and in code.
fn modules_used(source: &Source) -> Vec<(usize, String)> {
    let uses = source.uses();
    let in_uses = uses.iter().flat_map(|(at, used)| {
        source.modules_in(used).into_iter().map(|module| (*at, module)).collect::<Vec<_>>()
    });
    let in_code = source.code().into_iter().flat_map(|(at, line)| {
        let modules = source.modules_in(line).into_iter();
        // Groups in imports are resolved above.
        let is_import = line.trim_start().starts_with("use ") || line.contains(" use ");
        modules.filter(move |module| !(is_import && module == "{")).map(move |module| (at, module))
    });
    in_uses.chain(in_code.collect::<Vec<_>>()).collect()
}

#[test]
fn only_app_wires_and_only_main_uses_it() {
    let sources = sources("src");
    let main = sources.iter().find(|source| source.path == "main.rs").unwrap();
    assert!(main.text.lines().count() <= 30, "main.rs only starts the program");
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| source.top_module() != WIRING && !source.is_test())
    {
        for (at, line) in source.code() {
            let path = &source.path;
            // The servers start one task per accepted connection.
            let may_start = ["telemetry/serve.rs", "webhook/server.rs"].contains(&path.as_str());
            if !may_start && SPAWNS.iter().any(|word| line.contains(word)) {
                violations.push(format!("src/{path}:{at}: only {WIRING} starts tasks"));
            }
            let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let path_or_use = line.trim_start().starts_with("use ")
                || line.contains(") use ")
                || line.contains(&format!("{WIRING}::"));
            let uses_app = path_or_use && words.any(|word| word == WIRING);
            if path != "main.rs" && uses_app {
                violations.push(format!("src/{path}:{at}: only main uses {WIRING}"));
            }
        }
    }
    assert_no_violations(&violations);
}

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn reader_skips_tests_only() {
    let text = "\
fn one() {}
#[cfg(test)]
use crate::two;
#[cfg(test)]
#[expect(dead_code)]
mod tests {
    fn three() {
    }
}
    #[cfg(test)]
    fn inner() {
        if true {
        }
    }
// a comment
fn four() {}
";
    let source = source("a.rs", text);
    let code: Vec<&str> = source.code().into_iter().map(|(_, line)| line).collect();
    assert_eq!(code, ["fn one() {}", "fn four() {}"]);
}

#[test]
fn reader_resolves_groups_and_relative_paths() {
    let text = "\
use std::{env, fs::{self, File}};
pub(crate) use crate::{
    api::names,
    app,
};
use super::super::app as other;
use super::state;
";
    let source = source("controller/module.rs", text);
    let uses: Vec<String> = source.uses().into_iter().map(|(_, used)| used).collect();
    assert_eq!(
        uses,
        [
            "std::env",
            "std::fs::self",
            "std::fs::File",
            "crate::api::names",
            "crate::app",
            "super::super::app as other",
            "super::state",
        ]
    );
    let modules: Vec<String> =
        modules_used(&source).into_iter().map(|(_, module)| module).collect();
    assert_eq!(modules, ["api", "app", "app", "app"]);
    assert_eq!(
        source.modules_in("crate::clients::kube::client(super::super::telemetry::error_chain)"),
        ["clients", "telemetry"]
    );
    let found: Vec<&str> = impure(&source).map(|(_, word)| word).collect();
    assert_eq!(found, ["std::env", "std::fs", "std::fs"]);
}

#[test]
fn rules_name_existing_modules() {
    let sources = sources("src");
    assert!(sources.iter().any(|source| is_pure(source) && source.name() == "decide"));
    for (module, _) in MODULES {
        let exists = sources.iter().any(|source| source.top_module() == *module);
        assert!(exists, "{module} is in MODULES but does not exist");
    }
}
