//! A verdict, in the form that users of Kubernetes know: field, kind of `error_type`, value, what to do.
//! Comes in: findings with their places. Goes out: violations, warnings, and their sentences.
//! May touch: `path`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use serde_json::Value;

use super::Findings;
use super::path::FieldPath;

/// The most characters of a value that is repeated to its user.
const MAX_ECHOED_VALUE: usize = 120;
/// The most characters of a warning: clients cut off what is longer.
pub const MAX_WARNING_LENGTH: usize = 120;

/// What kind of `error_type` it is, in the words of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The value is errors.
    Invalid,
    /// The value is not one of those that are offered.
    Unsupported,
    /// The value is missing.
    Required,
    /// The value may not be given, or not be changed.
    Forbidden,
}

impl ErrorType {
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

/// One thing that is errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Where, in the version that the user wrote, such as `spec.size`.
    pub path: String,
    /// What kind of `error_type`.
    pub error_type: ErrorType,
    /// What stands there.
    pub value: Option<Value>,
    /// What is allowed, and what to do.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, error_type, value, detail } = self;
        write!(f, "{path}: {}", error_type.words())?;
        if let Some(value) = value.as_ref().filter(|_| error_type.shows_value()) {
            write!(f, ": {}", truncate(&redact_password(&value.to_string()), MAX_ECHOED_VALUE))?;
        }
        write!(f, ": {detail}")
    }
}

impl Violation {
    /// The same as a warning, for what was errors before and has not been touched.
    pub(super) fn as_warning(&self) -> String {
        let Self { path, error_type: _, value: _, detail } = self;
        format!("still errors, as before: {path}: {detail}")
    }
}

/// What the checks say about an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationResult {
    /// Everything that is errors with it.
    pub violations: Vec<Violation>,
    /// What is worth a word.
    pub warnings: Vec<String>,
}

impl ValidationResult {
    /// Whether the object may be.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// A verdict on an object in the hub's version.
    pub(crate) fn from_findings(findings: Findings, object: &Value) -> Self {
        let mut collector = Collector::default();
        for finding in findings.errors {
            let value = finding.path.find_in(object).cloned();
            let (path, error_type, detail) = (finding.path, finding.error_type, finding.detail);
            collector.add(Located {
                path,
                covers_value: true,
                part_of_value: false,
                error_type,
                value,
                detail,
            });
        }
        Self { violations: collector.finish(), warnings: findings.warnings }
    }

    pub(super) fn warn(&mut self, words: &str) {
        let words = truncate(words, MAX_WARNING_LENGTH);
        if !self.warnings.contains(&words) {
            self.warnings.push(words);
        }
    }
}

/// A finding in the words of the user's version.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) path: FieldPath,
    /// Whether it is about all that is at the path, and not only about something in there that the
    /// user's version has no name for.
    pub(super) covers_value: bool,
    /// Whether it is about a part of the text there, such as the bucket in a URL.
    pub(super) part_of_value: bool,
    pub(super) error_type: ErrorType,
    pub(super) value: Option<Value>,
    pub(super) detail: String,
}

/// Collects what is located, one sentence for a path.
#[derive(Default)]
pub(super) struct Collector {
    violations: Vec<Violation>,
    covered: Vec<String>,
}

impl Collector {
    /// Adds what is located, unless something was already said about that path: a block that is errors
    /// as a whole needs no word about its parts, and what is there but errors is not missing.
    pub(super) fn add(&mut self, located: Located) {
        let Located { path, covers_value, part_of_value: _, error_type, value, detail } = located;
        let path = path.to_dotted();
        let violation = Violation { path: path.clone(), error_type, value, detail };
        let said = if covers_value {
            let missing = error_type == ErrorType::Required;
            let said = |covered: &String| {
                contains_path(covered, &path) || (missing && contains_path(&path, covered))
            };
            self.covered.iter().any(said)
        } else {
            self.violations.contains(&violation)
        };
        if !said {
            self.covered.extend(covers_value.then_some(path));
            self.violations.push(violation);
        }
    }

    pub(super) fn finish(self) -> Vec<Violation> {
        self.violations
    }
}

/// Whether `inner` is `outer`, or a part of it.
fn contains_path(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The text, or as much of its beginning as fits into `most` characters.
fn truncate(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}

/// The text without what stands before the host of a URL: answers are logged, passwords are not.
fn redact_password(text: &str) -> String {
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
