//! The result on an object: everything that is errors with it at once, and what is worth a word.
//! Comes in: the object as it was, as it shall be, and what the checks need to know.
//! Goes out: a [`ValidationResult`] in the words of the version that the user wrote.
//! The words here: a rule makes a *finding* at a *path* of v1; a *translator* puts it into the user's
//! version, where it is *located* once. May touch: the kinds of `api`. The schema and CEL hold without this; here the same rules, and
//! those that need more than a schema, come with the reason and the way out.
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

/// What the checks need to know besides the object.
#[derive(Clone, Copy, Debug)]
pub struct ValidationContext<'a> {
    /// The time, to compute the next run of a schedule.
    pub now: Timestamp,
    /// What this release features do.
    pub features: FeatureSet,
    /// The version that the user wrote, such as `v1beta1`. Paths are given in it.
    pub request_version: &'a str,
}

/// More than anybody mends at once. Each is put into the words of the user's version, which costs a
/// conversion; nobody shall buy thousands with one object.
pub(crate) const MAX_FINDINGS: usize = 50;

/// What a rule of a kind finds: violations and warnings, with places in the hub.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Finding>,
    pub(crate) warnings: Vec<String>,
}

/// One thing that is errors, at a path in the hub.
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

    pub(crate) fn warn(&mut self, words: impl Into<String>) {
        self.warnings.push(words.into());
    }
}

/// Judges an object of `kind`. Both objects are in the hub's version.
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
    // What was errors before and has not been touched is not this request's error_type.
    let before = old.map(|old| evaluate(kind, version, None, old, context)).unwrap_or_default();
    for violation in now.violations {
        if before.violations.contains(&violation) {
            result.warn(&violation.as_warning());
        } else {
            result.violations.push(violation);
        }
    }
    now.warnings.iter().for_each(|words| result.warn(words));
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
    // Judged as it will be: what is not said has a meaning, too, and had one before.
    let was = old.map(|old| kind.with_defaults(old, None));
    let shall = kind.with_defaults(new, was.as_ref());
    (kind.validate)(was.as_ref(), &shall, context, &mut findings);
    let by_rules: Vec<Located> =
        findings.errors.iter().map(|finding| translator.translate(finding)).collect();
    let mut collector = Collector::default();
    // First in the user's own words: what does not fit there is named there. But where a rule is
    // about the same path, it knows more than a bound does.
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
    findings.warnings.iter().for_each(|words| result.warn(&translator.words(words)));
    result
}
