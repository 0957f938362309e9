//! Reads the sources as text, as far as the architecture test needs: files, their code without
//! tests and comments, and the modules that a line or an import names. Relies on rustfmt: an item
//! ends where its indent ends.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Source {
    /// Relative to the folder that was read, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// The path without `.rs`: the module, as the tables of the rules spell it.
    pub(crate) fn module(&self) -> &str {
        self.path.trim_end_matches(".rs")
    }

    pub(crate) fn top_module(&self) -> &str {
        self.module().split('/').next().unwrap()
    }

    pub(crate) fn name(&self) -> &str {
        self.module().rsplit('/').next().unwrap()
    }

    pub(crate) fn is_test(&self) -> bool {
        self.module()
            .split('/')
            .any(|part| part == "tests" || ["walk", "model", "test_rng"].contains(&part))
    }

    /// The lines that are neither comments nor tests, with their numbers.
    pub(crate) fn code(&self) -> Vec<(usize, &str)> {
        let mut lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let mut code = Vec::new();
        while let Some((at, line)) = lines.next() {
            if line.trim() == "#[cfg(test)]" {
                skip_item(&mut lines);
            } else if !line.trim_start().starts_with("//") {
                code.push((at, line));
            }
        }
        code
    }

    /// Every path that the file imports, groups taken apart: `use std::{env, fs}` is two.
    pub(crate) fn uses(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut open: Option<(usize, String)> = None;
        for (at, line) in self.code() {
            let line = line.trim();
            let begins = line.split_once("use ").filter(|(before, _)| {
                before.is_empty() || (before.starts_with("pub") && before.ends_with(' '))
            });
            let (at, text) = match (open.take(), begins) {
                (Some((at, text)), _) => (at, text + line),
                (None, Some((_, rest))) => (at, rest.to_owned()),
                (None, None) => continue,
            };
            match text.strip_suffix(';') {
                Some(tree) => found.extend(branches(tree).into_iter().map(|path| (at, path))),
                None => open = Some((at, text)),
            }
        }
        found
    }

    /// The modules of this crate that a piece of code names: after `crate::`, or after as many
    /// `super::` as lead out of the module. A group right after them would hide what it names, so
    /// it counts as a module called `{`; `uses` has taken the groups of imports apart.
    pub(crate) fn modules_in(&self, code: &str) -> Vec<String> {
        let depth = self.module().split('/').count();
        let mut modules = Vec::new();
        let mut rest = code;
        while let Some(at) = rest.find("::") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            rest = after;
            let word = last_word(before);
            let (mut supers, mut tail) = (usize::from(word == "super"), after);
            while supers > 0
                && let Some(next) = tail.strip_prefix("super::")
            {
                (supers, tail) = (supers + 1, next);
            }
            if word == "crate" || (supers > 0 && supers == depth) {
                modules.push(first_word(tail));
            }
            if supers > 0 {
                rest = tail;
            }
        }
        modules
    }
}

fn skip_item<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) {
    let is_front = |line: &str| line.trim_start().starts_with("#[") || line.trim().is_empty();
    let Some((_, first)) = lines.find(|(_, line)| !is_front(line)) else {
        return;
    };
    if first.ends_with(';') || first.ends_with('}') {
        return;
    }
    let indent = first.len() - first.trim_start().len();
    let ends = |line: &str| {
        line.len() - line.trim_start().len() == indent
            && (line.trim_start().starts_with('}') || line.ends_with(';'))
    };
    lines.find(|(_, line)| ends(line));
}

fn last_word(text: &str) -> &str {
    let is_mark = |letter: char| !letter.is_alphanumeric() && letter != '_';
    text.rsplit(is_mark).next().unwrap_or_default()
}

fn first_word(text: &str) -> String {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    match end {
        Some(0) => "{".to_owned(),
        Some(end) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// The paths of a use tree.
fn branches(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((stem, rest)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0_usize;
    let parts = inner.split(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts
        .filter(|part| !part.trim().is_empty())
        .flat_map(branches)
        .map(|branch| format!("{stem}{branch}"))
        .collect()
}

/// Every source below a folder of the repository.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
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
                found.push(Source { path: parts.join("/"), text });
            }
        }
    }
    assert!(!found.is_empty(), "{folder} contains no sources");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}
