//! The validator: judges what is about to be stored, whoever changed it on the way.
//! Comes in: an object of ours that comes to be, or to be another. Goes out: warnings, or a refusal.
//! May touch: the kinds of `api`. Only the validator warns, so that nothing is said twice.
//! A status can only come in through the annotation of an older version; it is the operator's to
//! write.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde_json::Value;

use super::{Case, STATUS, said};
use crate::api::check::{Fault, Verdict, Violation, check};
use crate::api::convert::ANNOTATION;
use crate::webhook::review::answer::{Refusal, Ruling};

/// Refuses the object, or lets it be with what is worth a word.
pub(super) fn ruling(case: &Case<'_>, now: Timestamp) -> Result<Ruling, Refusal> {
    if case.is_being_deleted() {
        return Ok(Ruling::UNTOUCHED);
    }
    let foreign = foreign_status(case);
    let mut verdict = if case.is_unchanged(&case.new) {
        Verdict::default()
    } else {
        check(case.kind, case.old.as_ref(), &case.new, &case.facts(now))
    };
    verdict.violations.extend(foreign);
    if verdict.allows() {
        return Ok(Ruling::warned(verdict.warnings));
    }
    Err(Refusal::invalid(case.kind, case.called(), &verdict.violations))
}

/// A status that is not the operator's.
fn foreign_status(case: &Case<'_>) -> Option<Violation> {
    let new = said(case.new.get(STATUS))?;
    let place = match &case.old {
        None => beyond(new, None, STATUS)?,
        // In the hub's own version the apiserver takes no status from such a write.
        Some(_) if case.written.name == case.kind.hub().name => return None,
        Some(old) => beyond(new, said(old.get(STATUS)), STATUS)?,
    };
    let hub = case.kind.hub().name;
    let detail = format!(
        "is the operator's to write, and `{place}` of {hub} is not what it wrote: leave out the \
         status, and the annotation {ANNOTATION}"
    );
    Some(Violation { path: STATUS.to_owned(), fault: Fault::Forbidden, value: None, detail })
}

/// The first place in `new` that says something which `old` does not say. Less is fine: what was
/// kept may not have fit its annotation.
fn beyond(new: &Value, old: Option<&Value>, at: &str) -> Option<String> {
    match (new, old) {
        (Value::Null, _) => None,
        (Value::Object(new), old) => new.iter().find_map(|(key, new)| {
            beyond(new, old.and_then(|old| old.get(key)), &format!("{at}.{key}"))
        }),
        // An older version may list the same things in another order, and with less to say of them.
        (Value::Array(new), Some(Value::Array(old))) => {
            let there = |new: &Value| old.iter().any(|old| beyond(new, Some(old), "").is_none());
            (!new.iter().all(there)).then(|| at.to_owned())
        }
        (new, old) => (old != Some(new)).then(|| at.to_owned()),
    }
}
