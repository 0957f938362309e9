//! The verdict on an object: everything that is wrong with it at once, and what is worth a word.
//! Comes in: the object as it was, as it shall be, and what the checks need to know.
//! Goes out: a [`Verdict`] in the words of the version that the user wrote.
//! The words here: a rule makes a *finding* at a *place* of v1; a *tongue* puts it into the user's
//! version, where it is *told* once. May touch: the kinds of `api`. The schema and CEL hold without this; here the same rules, and
//! those that need more than a schema, come with the reason and the way out.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod flags;
pub(crate) mod place;
pub mod release;
pub(crate) mod rules;
mod schema;
pub(crate) mod teach;
mod tongue;
mod unknown;
pub mod verdict;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::convert::convert;
use crate::api::kinds::{Kind, Version};
use place::Place;
use release::Abilities;
use tongue::Tongue;
pub use verdict::{Fault, Verdict, Violation};
use verdict::{Telling, Told};

/// What the checks need to know besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The time, to compute the next run of a schedule.
    pub now: Timestamp,
    /// What this release can do.
    pub can: Abilities,
    /// The version that the user wrote, such as `v1beta1`. Paths are given in it.
    pub written_in: &'a str,
}

/// More than anybody mends at once. Each is put into the words of the user's version, which costs a
/// conversion; nobody shall buy thousands with one object.
pub(crate) const MOST_FINDINGS: usize = 50;

/// What a rule of a kind finds: violations and warnings, with places in the hub.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) wrong: Vec<Finding>,
    pub(crate) warnings: Vec<String>,
}

/// One thing that is wrong, at a place in the hub.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) fault: Fault,
    pub(crate) detail: String,
}

impl Findings {
    pub(crate) fn add(&mut self, place: impl Into<Place>, fault: Fault, detail: impl Into<String>) {
        if self.wrong.len() >= MOST_FINDINGS {
            return;
        }
        self.wrong.push(Finding { place: place.into(), fault, detail: detail.into() });
    }

    pub(crate) fn invalid(&mut self, place: impl Into<Place>, detail: impl Into<String>) {
        self.add(place, Fault::Invalid, detail);
    }

    pub(crate) fn forbidden(&mut self, place: impl Into<Place>, detail: impl Into<String>) {
        self.add(place, Fault::Forbidden, detail);
    }

    pub(crate) fn required(&mut self, place: impl Into<Place>, detail: impl Into<String>) {
        self.add(place, Fault::Required, detail);
    }

    pub(crate) fn warn(&mut self, words: impl Into<String>) {
        self.warnings.push(words.into());
    }
}

/// Judges an object of `kind`. Both objects are in the hub's version.
#[must_use]
pub fn check(kind: &Kind, old: Option<&Value>, new: &Value, facts: &Facts<'_>) -> Verdict {
    let written = kind.versions().find(|version| version.name == facts.written_in);
    let written = written.unwrap_or(kind.hub());
    let mut verdict = Verdict::default();
    let now = judged(kind, written, old, new, facts);
    // What was wrong before and has not been touched is not this request's fault.
    let before = old.map(|old| judged(kind, written, None, old, facts)).unwrap_or_default();
    for violation in now.violations {
        if before.violations.contains(&violation) {
            verdict.warn(&violation.as_warning());
        } else {
            verdict.violations.push(violation);
        }
    }
    now.warnings.iter().for_each(|words| verdict.warn(words));
    verdict
}

fn judged(
    kind: &Kind,
    written: &'static Version,
    old: Option<&Value>,
    new: &Value,
    facts: &Facts<'_>,
) -> Verdict {
    let as_written = convert(new.clone(), &kind.api_version(written)).unwrap_or_default();
    let tongue = Tongue { kind, version: written, hub: new, written: &as_written };
    let mut findings = Findings::default();
    // Judged as it will be: what is not said has a meaning, too, and had one before.
    let was = old.map(|old| kind.filled(old, None));
    let shall = kind.filled(new, was.as_ref());
    (kind.check)(was.as_ref(), &shall, facts, &mut findings);
    let by_rules: Vec<Told> = findings.wrong.iter().map(|finding| tongue.told(finding)).collect();
    let mut telling = Telling::default();
    // First in the user's own words: what does not fit there is named there. But where a rule is
    // about the same place, it knows more than a bound does.
    for finding in schema::walk(kind, written, &as_written) {
        let same = |told: &&Told| told.place == finding.place && !told.of_a_part;
        let better = by_rules.iter().find(same).cloned();
        telling.add(better.unwrap_or_else(|| tongue.as_it_is(&finding)));
    }
    for told in by_rules {
        telling.add(told);
    }
    if written.name != kind.hub().name {
        let by_hub = schema::walk(kind, kind.hub(), new);
        for finding in &by_hub {
            telling.add(tongue.told(finding));
        }
    }
    let mut verdict = Verdict { violations: telling.done(), warnings: Vec::new() };
    findings.warnings.iter().for_each(|words| verdict.warn(&tongue.words(words)));
    verdict
}
