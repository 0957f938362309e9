//! A verdict, in the form that users of Kubernetes know: field, kind of fault, value, what to do.
//! Comes in: findings with their places. Goes out: violations, warnings, and their sentences.
//! May touch: `place`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use serde_json::Value;

use super::Findings;
use super::place::Place;

/// The most characters of a value that is repeated to its user.
const MOST_OF_A_VALUE: usize = 120;
/// The most characters of a warning: clients cut off what is longer.
pub const MOST_OF_A_WARNING: usize = 120;

/// What kind of fault it is, in the words of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The value is wrong.
    Invalid,
    /// The value is not one of those that are offered.
    Unsupported,
    /// The value is missing.
    Required,
    /// The value may not be given, or not be changed.
    Forbidden,
}

impl Fault {
    /// The words that `kubectl` users know.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid value",
            Self::Unsupported => "Unsupported value",
            Self::Required => "Required value",
            Self::Forbidden => "Forbidden",
        }
    }

    /// The reason in a cause of a Kubernetes `Status`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Unsupported => "FieldValueNotSupported",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    const fn shows_value(self) -> bool {
        match self {
            Self::Invalid | Self::Unsupported => true,
            Self::Required | Self::Forbidden => false,
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Where, in the version that the user wrote, such as `spec.size`.
    pub path: String,
    /// What kind of fault.
    pub fault: Fault,
    /// What stands there.
    pub value: Option<Value>,
    /// What is allowed, and what to do.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, fault, value, detail } = self;
        write!(f, "{path}: {}", fault.words())?;
        if let Some(value) = value.as_ref().filter(|_| fault.shows_value()) {
            write!(f, ": {}", shortened(&without_password(&value.to_string()), MOST_OF_A_VALUE))?;
        }
        write!(f, ": {detail}")
    }
}

impl Violation {
    /// The same as a warning, for what was wrong before and has not been touched.
    pub(super) fn as_warning(&self) -> String {
        let Self { path, fault: _, value: _, detail } = self;
        format!("still wrong, as before: {path}: {detail}")
    }
}

/// What the checks say about an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Everything that is wrong with it.
    pub violations: Vec<Violation>,
    /// What is worth a word.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// Whether the object may be.
    #[must_use]
    pub const fn allows(&self) -> bool {
        self.violations.is_empty()
    }

    /// A verdict on an object in the hub's version.
    pub(crate) fn of(findings: Findings, object: &Value) -> Self {
        let mut telling = Telling::default();
        for finding in findings.wrong {
            let value = finding.place.found_in(object).cloned();
            let (place, fault, detail) = (finding.place, finding.fault, finding.detail);
            telling.add(Told { place, covers: true, of_a_part: false, fault, value, detail });
        }
        Self { violations: telling.done(), warnings: findings.warnings }
    }

    pub(super) fn warn(&mut self, words: &str) {
        let words = shortened(words, MOST_OF_A_WARNING);
        if !self.warnings.contains(&words) {
            self.warnings.push(words);
        }
    }
}

/// A finding in the words of the user's version.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) place: Place,
    /// Whether it is about all that is at the place, and not only about something in there that the
    /// user's version has no name for.
    pub(super) covers: bool,
    /// Whether it is about a part of the text there, such as the bucket in a URL.
    pub(super) of_a_part: bool,
    pub(super) fault: Fault,
    pub(super) value: Option<Value>,
    pub(super) detail: String,
}

/// Collects what is told, one sentence for a place.
#[derive(Default)]
pub(super) struct Telling {
    violations: Vec<Violation>,
    covered: Vec<String>,
}

impl Telling {
    /// Adds what is told, unless something was already said about that place: a block that is wrong
    /// as a whole needs no word about its parts, and what is there but wrong is not missing.
    pub(super) fn add(&mut self, told: Told) {
        let Told { place, covers, of_a_part: _, fault, value, detail } = told;
        let path = place.dotted();
        let violation = Violation { path: path.clone(), fault, value, detail };
        let said = if covers {
            let missing = fault == Fault::Required;
            let said = |covered: &String| {
                is_around(covered, &path) || (missing && is_around(&path, covered))
            };
            self.covered.iter().any(said)
        } else {
            self.violations.contains(&violation)
        };
        if !said {
            self.covered.extend(covers.then_some(path));
            self.violations.push(violation);
        }
    }

    pub(super) fn done(self) -> Vec<Violation> {
        self.violations
    }
}

/// Whether `inner` is `outer`, or a part of it.
fn is_around(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The text, or as much of its beginning as fits into `most` characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}

/// The text without what stands before the host of a URL: answers are logged, passwords are not.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let server = rest.split(['/', '"']).next().unwrap_or_default();
    match server.rsplit_once('@') {
        None => text.to_owned(),
        Some((secret, _)) => {
            let after = rest.strip_prefix(secret).unwrap_or_default();
            format!("{scheme}://...{after}")
        }
    }
}
