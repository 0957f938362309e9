//! The architecture as a test: reads the sources as text and checks what no lint can.
//! Comes in: `src`, and the sources of the test tools. Goes out: every broken rule, each with its
//! file and what to do. A new wing is one entry in `WINGS`; a new room is one entry in `ROOMS`.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Which modules of ours a room may use, besides itself.
const ROOMS: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("cli", &["api"]),
    ("manifests", &["api"]),
    ("ports", &["api"]),
    ("settings", &["api", "cli", "leadership", "telemetry"]),
    ("telemetry", &["api"]),
];
/// A wing looks, decides, does and tells. It uses these, and never another wing.
const WINGS: &[&str] = &["leadership"];
const WING_MAY_USE: &[&str] = &["api", "ports", "telemetry"];
/// The only room that wires; only `main` may use it.
const WIRES: &str = "app";

/// What decides and renders: files, or whole folders with the file beside them. No I/O, no clock,
/// no waiting.
const PURE: &[&str] = &[
    "api",
    "leadership/decide",
    "leadership/render",
    "leadership/seen",
    "leadership/settle",
    "manifests",
    "settings/check",
];
const FENCE: &str = "#![deny(clippy::disallowed_types, clippy::disallowed_methods)]";
const IMPURE: &[&str] = &[
    "async fn",
    "async move",
    "async {",
    ".await",
    "tokio::",
    "tracing::",
    "crate::ports",
    "std::fs",
    "std::env",
    "std::net::Tcp",
    "std::thread",
];

const NO_NAMES: &[&str] = &[
    "utils", "util", "helpers", "helper", "common", "misc", "manager", "managers",
];
const MOST_LINES: usize = 400;
const FEWEST_DOOR_LINES: usize = 3;

struct Source {
    /// Relative to the folder that was read, with `/` between the parts.
    path: String,
    text: String,
}

impl Source {
    /// The path without `.rs`: the module, as the tables above spell it.
    fn module(&self) -> &str {
        self.path.trim_end_matches(".rs")
    }

    fn room(&self) -> &str {
        self.module().split('/').next().unwrap()
    }

    fn name(&self) -> &str {
        self.module().rsplit('/').next().unwrap()
    }

    fn is_test(&self) -> bool {
        self.module()
            .split('/')
            .any(|part| part == "tests" || part == "walk")
    }

    fn is_pure(&self) -> bool {
        let inside = |room: &str| {
            let rest = self.module().strip_prefix(room);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        PURE.iter().any(|room| inside(room)) && !self.is_test()
    }

    /// The lines that are not comments, with their numbers, up to the unit tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self
            .text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line));
        lines
            .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let parts = path.strip_prefix(&root).unwrap().iter();
                let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source {
                    path: parts.join("/"),
                    text,
                });
            }
        }
    }
    assert!(
        !found.is_empty(),
        "{folder} holds no sources; is its name spelled right?"
    );
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn everywhere() -> impl Iterator<Item = (String, Source)> {
    ["src", "tests/cluster/src", "tests/harness/src"]
        .into_iter()
        .flat_map(|folder| {
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
    let plate = |source: &Source| {
        source
            .text
            .lines()
            .take_while(|it| it.starts_with("//!"))
            .count()
    };
    let broken: Vec<String> = sources("src")
        .into_iter()
        .filter(|source| !source.is_test() && plate(source) < FEWEST_DOOR_LINES)
        .map(|source| {
            format!(
                "src/{}: at least {FEWEST_DOOR_LINES} lines of `//!`",
                source.path
            )
        })
        .collect();
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
    for source in sources.iter().filter(|source| source.is_pure()) {
        let path = &source.path;
        let first = source
            .code()
            .map(|(_, line)| line.trim())
            .find(|line| !line.is_empty());
        if first != Some(FENCE) {
            broken.push(format!("src/{path}: a pure room begins with {FENCE}"));
        }
        for (at, line) in source.code() {
            for word in IMPURE.iter().filter(|word| line.contains(**word)) {
                broken.push(format!("src/{path}:{at}: `{word}` in a pure room"));
            }
        }
    }
    nothing_is_broken(&broken);
}

#[test]
fn every_room_uses_only_what_it_may() {
    let mut broken = Vec::new();
    for source in sources("src") {
        let room = source.room();
        let allowed: &[&str] = match ROOMS.iter().find(|(name, _)| *name == room) {
            Some((_, allowed)) => allowed,
            None if WINGS.contains(&room) => WING_MAY_USE,
            None if room == WIRES || room == "lib" || room == "main" => continue,
            None => {
                broken.push(format!(
                    "src/{}: say in ROOMS or WINGS what it may use",
                    source.path
                ));
                continue;
            }
        };
        for (at, line) in source.code() {
            for used in imports(line).filter(|used| *used != room && !allowed.contains(used)) {
                let path = &source.path;
                broken.push(format!(
                    "src/{path}:{at}: {room} may not use `crate::{used}`"
                ));
            }
        }
    }
    nothing_is_broken(&broken);
}

/// The modules of ours that a line names, as in `crate::api::names`. `use crate::{…}` would hide
/// them from this reader, so it counts as a module called `{`.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        match end {
            Some(0) => "{",
            Some(end) => &rest[..end],
            None => rest,
        }
    })
}

#[test]
fn only_app_wires_and_only_main_uses_it() {
    let main = sources("src")
        .into_iter()
        .find(|source| source.path == "main.rs")
        .unwrap();
    assert!(
        main.text.lines().count() <= 30,
        "main.rs is a door and not a room"
    );
    let broken: Vec<String> = sources("src")
        .iter()
        .filter(|source| source.room() != WIRES && !source.is_test())
        .flat_map(|source| source.code().map(move |(at, line)| (source, at, line)))
        .filter(|(_, _, line)| line.contains("tokio::spawn") || line.contains("Builder::new_multi"))
        // The probe port starts one task for each connection it accepts.
        .filter(|(source, _, _)| source.path != "telemetry/serve.rs")
        .map(|(source, at, _)| format!("src/{}:{at}: only {WIRES} starts tasks", source.path))
        .collect();
    nothing_is_broken(&broken);
}

#[test]
fn the_reader_of_imports_reads() {
    let line = "use crate::api::names; use crate::{app}; use quorate::app;";
    assert_eq!(imports(line).collect::<Vec<_>>(), ["api", "{"]);
    assert!(
        sources("src")
            .iter()
            .any(|source| source.is_pure() && source.name() == "decide")
    );
}
