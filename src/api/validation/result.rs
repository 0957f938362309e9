//! Result of validation in the form of Kubernetes' own errors: field, error type, value, detail.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use serde_json::Value;

use super::Findings;
use super::path::FieldPath;

/// Maximum number of characters of a value that a message repeats.
const MAX_ECHOED_VALUE: usize = 120;
/// Maximum number of characters of a warning: clients truncate longer ones.
pub const MAX_WARNING_LENGTH: usize = 120;

/// Error type, as in Kubernetes' `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The value is invalid.
    Invalid,
    /// The value is not one of the supported ones.
    Unsupported,
    /// The value is missing.
    Required,
    /// The value may not be set or not be changed.
    Forbidden,
}

impl ErrorType {
    /// The name in messages, as in Kubernetes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid value",
            Self::Unsupported => "Unsupported value",
            Self::Required => "Required value",
            Self::Forbidden => "Forbidden",
        }
    }

    /// The reason in the causes of a `Status`.
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

/// A violation.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Field path in the request version, such as `spec.size`.
    pub path: String,
    /// Error type.
    pub error_type: ErrorType,
    /// Value of the field.
    pub value: Option<Value>,
    /// What is allowed, and the remedy.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, error_type, value, detail } = self;
        write!(f, "{path}: {}", error_type.as_str())?;
        if let Some(value) = value.as_ref().filter(|_| error_type.shows_value()) {
            write!(f, ": {}", truncate(&redact_password(&value.to_string()), MAX_ECHOED_VALUE))?;
        }
        write!(f, ": {detail}")
    }
}

impl Violation {
    /// The violation as a warning, if the stored object already has it.
    pub(super) fn as_warning(&self) -> String {
        let Self { path, error_type: _, value: _, detail } = self;
        format!("still invalid: {path}: {detail}")
    }
}

/// Result of validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationResult {
    /// All violations.
    pub violations: Vec<Violation>,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl ValidationResult {
    /// Whether there are no violations.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// The result for an object in the hub version.
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

    pub(super) fn warn(&mut self, message: &str) {
        let message = truncate(message, MAX_WARNING_LENGTH);
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }
}

/// A finding with its path in the request version.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) path: FieldPath,
    /// Whether the finding covers the whole value at the path, and not only a field in it that the
    /// request version does not have.
    pub(super) covers_value: bool,
    /// Whether the finding is about a part of the string, such as the bucket in a URL.
    pub(super) part_of_value: bool,
    pub(super) error_type: ErrorType,
    pub(super) value: Option<Value>,
    pub(super) detail: String,
}

/// Collects violations, one for each path.
#[derive(Default)]
pub(super) struct Collector {
    violations: Vec<Violation>,
    covered: Vec<String>,
}

impl Collector {
    /// Adds a finding, unless the path is already covered: an invalid object needs no errors about
    /// its fields, and a value that exists and is invalid is not missing.
    pub(super) fn add(&mut self, located: Located) {
        let Located { path, covers_value, part_of_value: _, error_type, value, detail } = located;
        let path = path.to_dotted();
        let violation = Violation { path: path.clone(), error_type, value, detail };
        let reported = if covers_value {
            let missing = error_type == ErrorType::Required;
            let overlaps = |covered: &String| {
                contains_path(covered, &path) || (missing && contains_path(&path, covered))
            };
            self.covered.iter().any(overlaps)
        } else {
            self.violations.contains(&violation)
        };
        if !reported {
            self.covered.extend(covers_value.then_some(path));
            self.violations.push(violation);
        }
    }

    pub(super) fn finish(self) -> Vec<Violation> {
        self.violations
    }
}

/// Whether `inner` equals `outer` or is below it.
fn contains_path(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The string, truncated to `max` characters.
fn truncate(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let start: String = text.chars().take(max.saturating_sub(3)).collect();
    format!("{start}...")
}

/// The string without the credentials in a URL: responses are logged, passwords must not be.
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
