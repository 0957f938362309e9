//! The architecture as a test: reads the sources as text and checks what no lint can.
//! Comes in: `src`, and the sources of the test tools. Goes out: every broken rule, each with its
//! file and what to do. A new wing is one entry in `WINGS`; a new room is one entry in `ROOMS`.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[path = "support/sources.rs"]
mod sources;

use sources::{Source, sources};

/// Which modules of ours a room may use, besides itself.
const ROOMS: &[(&str, &[&str])] = &[
    ("agent", &["api"]),
    ("api", &[]),
    ("cli", &["api"]),
    ("lib", &[]),
    ("manifests", &["api"]),
    ("pki", &[]),
    ("ports", &["api"]),
    (
        "settings",
        &[
            "api",
            "certificates",
            "cli",
            "etcd_cluster",
            "leadership",
            "storage_migration",
            "telemetry",
        ],
    ),
    ("telemetry", &["api"]),
];
/// A wing looks, decides, does and tells. It uses these, and never another wing.
const WINGS: &[&str] =
    &["certificates", "etcd_cluster", "grants", "leadership", "storage_migration", "webhook"];
const WING_MAY_USE: &[&str] = &["api", "pki", "ports", "telemetry"];
/// The only room that wires; only `main` may use it.
const WIRES: &str = "app";

/// What decides and renders: files, or whole folders with the file beside them. No I/O, no clock,
/// no waiting.
const PURE: &[&str] = &[
    "agent/decide",
    "api",
    "certificates/carry_out",
    "certificates/decide",
    "certificates/lifetimes",
    "certificates/pair",
    "certificates/render",
    "certificates/renew",
    "certificates/ring",
    "certificates/seen",
    "etcd_cluster/compose",
    "etcd_cluster/decide",
    "etcd_cluster/furnish",
    "etcd_cluster/heard",
    "etcd_cluster/hop",
    "etcd_cluster/identity/authorities",
    "etcd_cluster/identity/binding",
    "etcd_cluster/identity/changeover",
    "etcd_cluster/identity/company",
    "etcd_cluster/identity/footing",
    "etcd_cluster/identity/given",
    "etcd_cluster/identity/issued",
    "etcd_cluster/identity/keys",
    "etcd_cluster/identity/leaves",
    "etcd_cluster/identity/lifetimes",
    "etcd_cluster/identity/offer",
    "etcd_cluster/identity/pick",
    "etcd_cluster/identity/ring",
    "etcd_cluster/identity/roots",
    "etcd_cluster/identity/rotation",
    "etcd_cluster/identity/tidings",
    "etcd_cluster/identity/trust",
    "etcd_cluster/identity/wanted",
    "etcd_cluster/log",
    "etcd_cluster/pace",
    "etcd_cluster/plan",
    "etcd_cluster/render",
    "etcd_cluster/seen",
    "etcd_cluster/status",
    "etcd_cluster/stock",
    "etcd_cluster/undo",
    "etcd_cluster/upkeep",
    "grants/complain",
    "grants/decide",
    "grants/memory",
    "grants/render",
    "grants/seen",
    "grants/shelf",
    "leadership/attempt",
    "leadership/decide",
    "leadership/render",
    "leadership/seen",
    "leadership/settle",
    "leadership/standing",
    "manifests",
    "pki/authority",
    "pki/key",
    "pki/leaf",
    "settings/check",
    "storage_migration/decide",
    "storage_migration/memory",
    "storage_migration/ownership",
    "storage_migration/record",
    "storage_migration/seen",
    "storage_migration/settle",
    "webhook/admit",
    "webhook/carry",
    "webhook/contain",
    "webhook/convert",
    "webhook/desk",
    "webhook/protect",
    "webhook/review",
    "webhook/scale",
    "webhook/serve/activity",
    "webhook/serve/displace",
    "webhook/serve/limits",
    "webhook/weight",
    "webhook/withdraw",
];
const FENCE: &str = "#![deny(clippy::disallowed_types, clippy::disallowed_methods)]";
/// Words of code that do not belong into a pure room.
const IMPURE: &[&str] = &["async fn", "async move", "async {", "async |", ".await", "println!"];
/// Paths that do not belong there, however they are imported.
const IMPURE_PATHS: &[&str] = &[
    "crate::ports",
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
/// What starts a task, a thread or a runtime.
const STARTS: &[&str] =
    &["spawn", "JoinSet", "Runtime::new", "Builder::new_multi", "Builder::new_current"];

const NO_NAMES: &[&str] =
    &["utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"];
const MOST_LINES: usize = 400;
const DOORPLATE: [&str; 3] = ["Comes in: ", "Goes out: ", "May touch: "];

fn is_pure(source: &Source) -> bool {
    let inside = |room: &&str| {
        let rest = source.module().strip_prefix(room);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    PURE.iter().any(inside) && !source.is_test()
}

fn everywhere() -> impl Iterator<Item = (String, Source)> {
    ["src", "tests/cluster/src", "tests/harness/src"].into_iter().flat_map(|folder| {
        let named = move |source: Source| (format!("{folder}/{}", source.path), source);
        sources(folder).into_iter().map(named)
    })
}

fn nothing_is_broken(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn every_file_begins_with_its_doorplate() {
    let broken: Vec<String> = everywhere()
        .filter(|(_, source)| !source.text.starts_with("//!"))
        .map(|(path, _)| format!("{path}: begin with `//!` lines that say what this room is"))
        .collect();
    nothing_is_broken(&broken);
}

#[test]
fn a_doorplate_says_what_comes_in_what_goes_out_and_what_it_may_touch() {
    let mut broken = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        let plate = source.doorplate();
        for words in DOORPLATE.iter().filter(|words| !plate.contains(**words)) {
            broken.push(format!("src/{}: its doorplate lacks `{words}`", source.path));
        }
    }
    nothing_is_broken(&broken);
}

#[test]
fn a_file_is_one_thought() {
    let broken: Vec<String> = everywhere()
        .map(|(path, source)| (path, source.text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines, at most {MOST_LINES}; split it"))
        .collect();
    nothing_is_broken(&broken);
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    let empty = |name: &str| name == "mod" || NO_NAMES.contains(&name);
    let broken: Vec<String> = everywhere()
        .filter(|(_, source)| source.module().split('/').any(empty))
        .map(|(path, _)| format!("{path}: name it for what it holds; `name.rs` beside `name/`"))
        .collect();
    nothing_is_broken(&broken);
}

#[test]
fn pure_rooms_are_fenced_and_neither_wait_nor_touch_the_world() {
    let mut broken = Vec::new();
    let sources = sources("src");
    for room in PURE {
        let file = format!("{room}.rs");
        if !sources.iter().any(|source| source.path == file) {
            broken.push(format!("{file}: named in PURE but not there"));
        }
    }
    for source in sources.iter().filter(|source| is_pure(source)) {
        let path = &source.path;
        let code = source.code();
        let first = code.iter().map(|(_, line)| line.trim()).find(|line| !line.is_empty());
        if first != Some(FENCE) {
            broken.push(format!("src/{path}: a pure room begins with {FENCE}"));
        }
        broken.extend(
            impure(source).map(|(at, word)| format!("src/{path}:{at}: `{word}` in a pure room")),
        );
    }
    nothing_is_broken(&broken);
}

#[test]
fn conversion_takes_everything_apart_by_name() {
    // A new field must not compile until somebody has decided what becomes of it. `..rest` that
    // fills in a value is fine; `..` that swallows fields of a pattern is not.
    let swallows = |line: &str| {
        let rest = line.split("..").skip(1).map(str::trim_start);
        rest.into_iter().any(|after| after.is_empty() || after.starts_with('}'))
    };
    let mut broken = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        let path = &source.path;
        let converts = ["/convert", "destination/", "/place.rs"].iter().any(|it| path.contains(it));
        if !path.starts_with("api/") || !converts {
            continue;
        }
        let lines = source.code().into_iter().filter(|(_, line)| swallows(line));
        broken.extend(lines.map(|(at, line)| format!("src/{path}:{at}: `{}`", line.trim())));
    }
    nothing_is_broken(&broken);
}

/// What a room must not have if it is to be pure, with the line.
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
fn every_room_uses_only_what_it_may() {
    let mut broken = Vec::new();
    for source in sources("src") {
        let (path, room) = (&source.path, source.room());
        let allowed: &[&str] = match ROOMS.iter().find(|(name, _)| *name == room) {
            Some((_, allowed)) => allowed,
            None if WINGS.contains(&room) => WING_MAY_USE,
            None if room == WIRES || room == "main" => continue,
            None => {
                broken.push(format!("src/{path}: say in ROOMS or WINGS what it may use"));
                continue;
            }
        };
        for (at, used) in rooms_used(&source) {
            if used != room && !allowed.contains(&used.as_str()) {
                broken.push(format!("src/{path}:{at}: {room} may not use `crate::{used}`"));
            }
        }
    }
    nothing_is_broken(&broken);
}

/// The rooms of ours that a file names, in imports and in between.
fn rooms_used(source: &Source) -> Vec<(usize, String)> {
    let uses = source.uses();
    let in_uses = uses.iter().flat_map(|(at, used)| {
        source.rooms_in(used).into_iter().map(|room| (*at, room)).collect::<Vec<_>>()
    });
    let in_code = source.code().into_iter().flat_map(|(at, line)| {
        let rooms = source.rooms_in(line).into_iter();
        // A group in an import was taken apart above.
        let is_import = line.trim_start().starts_with("use ") || line.contains(" use ");
        rooms.filter(move |room| !(is_import && room == "{")).map(move |room| (at, room))
    });
    in_uses.chain(in_code.collect::<Vec<_>>()).collect()
}

#[test]
fn only_app_wires_and_only_main_uses_it() {
    let sources = sources("src");
    let main = sources.iter().find(|source| source.path == "main.rs").unwrap();
    assert!(main.text.lines().count() <= 30, "main.rs is a door and not a room");
    let mut broken = Vec::new();
    for source in sources.iter().filter(|it| it.room() != WIRES && !it.is_test()) {
        for (at, line) in source.code() {
            let path = &source.path;
            // The ports start one task for each connection it accepts.
            let may_start = ["telemetry/serve.rs", "webhook/serve.rs"].contains(&path.as_str());
            if !may_start && STARTS.iter().any(|word| line.contains(word)) {
                broken.push(format!("src/{path}:{at}: only {WIRES} starts tasks"));
            }
            let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let path_or_use = line.contains("use ") || line.contains(&format!("{WIRES}::"));
            let uses_app = path_or_use && words.any(|word| word == WIRES);
            if path != "main.rs" && uses_app {
                broken.push(format!("src/{path}:{at}: only main uses {WIRES}"));
            }
        }
    }
    nothing_is_broken(&broken);
}

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn the_reader_skips_tests_and_nothing_else() {
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
fn the_reader_sees_through_groups_and_relative_paths() {
    let text = "\
use std::{env, fs::{self, File}};
pub(crate) use crate::{
    api::names,
    app,
};
use super::super::app as other;
use super::seen;
";
    let source = source("wing/room.rs", text);
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
            "super::seen",
        ]
    );
    let rooms: Vec<String> = rooms_used(&source).into_iter().map(|(_, room)| room).collect();
    assert_eq!(rooms, ["api", "app", "app", "app"]);
    assert_eq!(
        source.rooms_in("crate::ports::kube::client(super::super::telemetry::chain)"),
        ["ports", "telemetry"]
    );
    let found: Vec<&str> = impure(&source).map(|(_, word)| word).collect();
    assert_eq!(found, ["std::env", "std::fs", "std::fs"]);
}

#[test]
fn the_rules_are_about_rooms_that_there_are() {
    let sources = sources("src");
    assert!(sources.iter().any(|source| is_pure(source) && source.name() == "decide"));
    for (room, _) in ROOMS {
        let there = sources.iter().any(|source| source.room() == *room);
        assert!(there, "{room} is named in ROOMS but not there");
    }
}
