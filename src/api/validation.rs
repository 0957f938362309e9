//! Validation of an object: all errors at once, and warnings, in the version of the request. Schema
//! and CEL enforce most rules without it; here the same rules, and those that need more than a
//! schema, have messages with the reason and the remedy.
//!
//! A rule reports a finding at a field path of v1; the path is then translated to the request
//! version, where each path is reported once.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod etcd_flags;
pub mod features;
pub(crate) mod hints;
pub(crate) mod path;
pub mod result;
pub(crate) mod rules;
mod schema;
mod translate;
mod unknown_field;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::convert::convert;
use crate::api::kinds::{Kind, Version};
use features::FeatureSet;
use path::FieldPath;
use result::{Collector, Located};
pub use result::{ErrorType, ValidationResult, Violation};
use translate::PathTranslator;

/// Input of validation besides the object.
#[derive(Clone, Copy, Debug)]
pub struct ValidationContext<'a> {
    /// Current time, for the next run of a schedule.
    pub now: Timestamp,
    /// Supported features.
    pub features: FeatureSet,
    /// Version of the request, such as `v1beta1`. Errors use its field paths.
    pub request_version: &'a str,
}

/// More than a user fixes at once. Each finding costs a conversion to the request version, so one
/// object must not cause thousands.
pub(crate) const MAX_FINDINGS: usize = 50;

/// Errors and warnings of the rules, with field paths of the hub.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Finding>,
    pub(crate) warnings: Vec<String>,
}

/// An error at a field path of the hub.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) path: FieldPath,
    pub(crate) error_type: ErrorType,
    pub(crate) detail: String,
}

impl Findings {
    pub(crate) fn add(
        &mut self,
        path: impl Into<FieldPath>,
        error_type: ErrorType,
        detail: impl Into<String>,
    ) {
        if self.errors.len() >= MAX_FINDINGS {
            return;
        }
        self.errors.push(Finding { path: path.into(), error_type, detail: detail.into() });
    }

    pub(crate) fn invalid(&mut self, path: impl Into<FieldPath>, detail: impl Into<String>) {
        self.add(path, ErrorType::Invalid, detail);
    }

    pub(crate) fn forbidden(&mut self, path: impl Into<FieldPath>, detail: impl Into<String>) {
        self.add(path, ErrorType::Forbidden, detail);
    }

    pub(crate) fn required(&mut self, path: impl Into<FieldPath>, detail: impl Into<String>) {
        self.add(path, ErrorType::Required, detail);
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.warnings.push(message.into());
    }
}

/// Validates an object of `kind`. Both objects are in the hub version.
#[must_use]
pub fn validate(
    kind: &Kind,
    old: Option<&Value>,
    new: &Value,
    context: &ValidationContext<'_>,
) -> ValidationResult {
    let version = kind.versions().find(|version| version.name == context.request_version);
    let version = version.unwrap_or(kind.hub());
    let mut result = ValidationResult::default();
    let now = evaluate(kind, version, old, new, context);
    // An error that the stored object already has is only a warning: the request did not cause it.
    let before = old.map(|old| evaluate(kind, version, None, old, context)).unwrap_or_default();
    for violation in now.violations {
        if before.violations.contains(&violation) {
            result.warn(&violation.as_warning());
        } else {
            result.violations.push(violation);
        }
    }
    now.warnings.iter().for_each(|message| result.warn(message));
    result
}

fn evaluate(
    kind: &Kind,
    version: &'static Version,
    old: Option<&Value>,
    new: &Value,
    context: &ValidationContext<'_>,
) -> ValidationResult {
    let as_written = convert(new.clone(), &kind.api_version(version)).unwrap_or_default();
    let translator = PathTranslator { kind, version, hub: new, written: &as_written };
    let mut findings = Findings::default();
    // With defaults: an unset field has a meaning, too.
    let previous = old.map(|old| kind.with_defaults(old, None));
    let desired = kind.with_defaults(new, previous.as_ref());
    (kind.validate)(previous.as_ref(), &desired, context, &mut findings);
    let by_rules: Vec<Located> =
        findings.errors.iter().map(|finding| translator.translate(finding)).collect();
    let mut collector = Collector::default();
    // Schema errors of the request version come first. A rule about the same path replaces them,
    // because its message is more specific.
    for finding in schema::walk(kind, version, &as_written) {
        let same = |located: &&Located| located.path == finding.path && !located.part_of_value;
        let better = by_rules.iter().find(same).cloned();
        collector.add(better.unwrap_or_else(|| translator.in_request_version(&finding)));
    }
    for located in by_rules {
        collector.add(located);
    }
    if version.name != kind.hub().name {
        let by_hub = schema::walk(kind, kind.hub(), new);
        for finding in &by_hub {
            collector.add(translator.translate(finding));
        }
    }
    let mut result = ValidationResult { violations: collector.finish(), warnings: Vec::new() };
    let translated = findings.warnings.iter().map(|message| translator.message(message));
    translated.for_each(|message| result.warn(&message));
    result
}
