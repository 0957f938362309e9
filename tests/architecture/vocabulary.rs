//! The vocabulary as a test: retired words fail in identifiers, strings, comments, headings and
//! file names, a type name stands once per module, and comments have at most 100 columns.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::assert_no_violations;
use super::source_files::{Source, sources};

/// Words and phrases that are replaced in docs/glossary.md, also in the plural.
const RETIRED: &[&str] = &[
    "a person is needed",
    "anew",
    "corridor",
    "diary",
    "doorkeeper",
    "doorplate",
    "errand",
    "footing",
    "heir",
    "keyring",
    "made anew",
    "mandate",
    "nobody",
    "put right",
    "shelf",
    "shelves",
    "somebody",
    "spokesman",
    "steward",
    "stranger",
    "taken back",
    "tidings",
    "told",
    "unwell",
    "upkeep",
    "whoever",
    "wing",
    "written down",
];
/// A retired type name; the conjunction is fine in documents.
const RETIRED_TYPE: &str = "Because";
const CHECKED: &[&str] = &[
    "src",
    "tests",
    "benches",
    "docs",
    "crds",
    "deploy",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
];
/// The list above, and the list with the replacements.
const EXEMPT: &[&str] = &["tests/architecture/vocabulary.rs", "docs/glossary.md"];
const MAX_COLUMNS: usize = 100;

/// A word of a text in lower case; an identifier consists of several words.
struct Word {
    line: usize,
    text: String,
    /// Whether only spaces, comment marks, `_` or `-` stand between the previous word and this one.
    follows: bool,
}

fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let (mut line, mut follows, mut previous) = (1, false, ' ');
    for letter in text.chars() {
        let is_hump = letter.is_uppercase() && !previous.is_uppercase();
        match found.last_mut() {
            Some(word) if letter.is_alphanumeric() && previous.is_alphanumeric() && !is_hump => {
                word.text.extend(letter.to_lowercase());
            }
            _ if letter.is_alphanumeric() => {
                found.push(Word { line, text: letter.to_lowercase().collect(), follows });
                follows = true;
            }
            _ => follows &= letter.is_whitespace() || "/!#*>_-".contains(letter),
        }
        line += usize::from(letter == '\n');
        previous = letter;
    }
    found
}

/// The retired words and phrases in a text, with their lines.
fn retired(text: &str) -> Vec<(usize, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    for phrase in RETIRED {
        let parts: Vec<&str> = phrase.split(' ').collect();
        let is_phrase = |window: &[Word]| {
            let is_same = |(word, part): (&Word, &&str)| {
                word.text == **part || word.text.strip_suffix('s') == Some(part)
            };
            window.iter().skip(1).all(|word| word.follows) && window.iter().zip(&parts).all(is_same)
        };
        let windows = words.windows(parts.len()).filter(|window| is_phrase(window));
        found.extend(windows.filter_map(|window| Some((window.first()?.line, *phrase))));
    }
    found
}

/// The text files at or below a path of the repository, with their relative paths. Checksums are no
/// text.
fn texts(path: &str) -> Vec<(String, String)> {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if full.is_dir() {
        let mut names: Vec<String> = fs::read_dir(&full)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        return names.iter().flat_map(|name| texts(&format!("{path}/{name}"))).collect();
    }
    if path.ends_with("/go.sum") {
        return Vec::new();
    }
    fs::read_to_string(full).into_iter().map(|text| (path.to_owned(), text)).collect()
}

#[test]
fn retired_words_are_not_used() {
    let mut violations = Vec::new();
    let checked = CHECKED.iter().flat_map(|path| texts(path));
    for (path, text) in checked.filter(|(path, _)| !EXEMPT.contains(&path.as_str())) {
        let mut found = retired(&text);
        found.extend(retired(&path).into_iter().map(|(_, word)| (0, word)));
        if Path::new(&path).extension().is_some_and(|extension| extension == "rs") {
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let lines = text.lines().zip(1..).filter(|(line, _)| {
                line.split(|letter| !is_word(letter)).any(|word| word == RETIRED_TYPE)
            });
            found.extend(lines.map(|(_, at)| (at, RETIRED_TYPE)));
        }
        let remedy = "is retired, see docs/glossary.md";
        violations
            .extend(found.into_iter().map(|(at, word)| format!("{path}:{at}: `{word}` {remedy}")));
    }
    assert_no_violations(&violations);
}

#[test]
fn type_names_are_unique_within_a_module() {
    let mut declared: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        for (at, line) in source.code() {
            if let Some(name) = declared_type(line) {
                let key = (scope(source), name.to_owned());
                declared.entry(key).or_default().push(format!("src/{}:{at}", source.path));
            }
        }
    }
    let violations: Vec<String> = declared
        .into_iter()
        .filter(|(_, paths)| paths.len() > 1)
        .map(|((scope, name), paths)| format!("{scope}: several `{name}`: {}", paths.join(", ")))
        .collect();
    assert_no_violations(&violations);
}

/// The name of the struct, enum or trait that a line declares.
fn declared_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let line = line.trim_start();
    let declared =
        ["struct ", "enum ", "trait "].iter().find_map(|keyword| line.strip_prefix(keyword))?;
    // A name in a macro starts with `$`.
    declared.split(|letter: char| !letter.is_alphanumeric()).next().filter(|name| !name.is_empty())
}

/// Where a type name stands once: a top-level module, or one version of an API kind.
fn scope(source: &Source) -> String {
    let mut parts = source.module().split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("api"), Some(kind), Some(version))
            if version == "validated" || version.starts_with("v1") =>
        {
            format!("api/{kind}/{version}")
        }
        _ => source.top_module().to_owned(),
    }
}

#[test]
fn comments_have_at_most_100_columns() {
    let mut violations = Vec::new();
    for folder in ["src", "tests"] {
        for source in sources(folder) {
            let is_long = |line: &str| {
                line.trim_start().starts_with("//") && line.chars().count() > MAX_COLUMNS
            };
            let lines = source.text.lines().zip(1..).filter(|(line, _)| is_long(line));
            let path = format!("{folder}/{}", source.path);
            violations.extend(lines.map(|(_, at)| format!("{path}:{at}: wrap the comment")));
        }
    }
    assert_no_violations(&violations);
}

#[test]
fn retired_words_are_found_in_identifiers_and_across_lines() {
    let found = |text: &str| retired(text).into_iter().map(|(_, word)| word).collect::<Vec<_>>();
    assert_eq!(found("fn told_late()"), ["told"]);
    assert_eq!(found("struct TidingsSource"), ["tidings"]);
    assert_eq!(found("Strangers' wings"), ["stranger", "wing"]);
    assert_eq!(found("/// is put\n    /// right"), ["put right"]);
    assert_eq!(found("map.put(right)"), [""; 0]);
    assert_eq!(found("following mandatory sheltered"), [""; 0]);
    assert_eq!(retired("one\n  // nobody").first(), Some(&(2, "nobody")));
}

#[test]
fn declared_types_are_recognized() {
    assert_eq!(declared_type("    pub(crate) struct Plan<'a> {"), Some("Plan"));
    assert_eq!(declared_type("enum Step {"), Some("Step"));
    assert_eq!(declared_type("pub trait Spoke: Sized {"), Some("Spoke"));
    assert_eq!(declared_type("let structure = 1;"), None);
}
