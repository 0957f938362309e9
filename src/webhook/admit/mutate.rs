//! The mutator: drops what was withdrawn, carries what could not be said, judges, and fills in what
//! was not said.
//! Comes in: an object of ours that comes to be, or to be another. Goes out: a patch, or a refusal.
//! May touch: the kinds of `api`.
//! It refuses before the apiserver's own schema can: that one knows the rule, not the way out. Of the
//! object only spec and status are ever patched.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Case, OBJECT, SPEC, STATUS};
use crate::api::check::check;
use crate::api::convert::Unconvertible;
use crate::webhook::review::answer::{Refusal, Ruling};

/// Refuses the object, or makes it what it means.
pub(super) fn ruling(mut case: Case<'_>, now: Timestamp) -> Result<Ruling, Refusal> {
    let before = parts(&case.new);
    if let (Some(without), Some(new)) = (case.without_withdrawn(), case.new.as_object_mut()) {
        new.insert(SPEC.to_owned(), without);
    }
    let after = parts(&meant(&case, now)?);
    if !case.in_hub {
        return Ok(Ruling::UNTOUCHED);
    }
    Ok(Ruling::patched(json_patch::diff(&before, &after)))
}

/// The object as it is meant.
fn meant(case: &Case<'_>, now: Timestamp) -> Result<Value, Refusal> {
    let Some(old) = &case.old else {
        let mut new = case.new.clone();
        // Nobody makes an object with a status, but an annotation can bring one.
        new.as_object_mut().map(|new| new.remove(STATUS));
        judge(case, &new, now)?;
        return Ok(case.kind.filled(&new, None));
    };
    let Some(edit) = case.edit() else {
        if case.is_being_deleted() || case.is_unchanged(&case.new) {
            return Ok(case.new.clone());
        }
        judge(case, &case.new, now)?;
        return Ok(case.kind.filled(&case.new, Some(old)));
    };
    let foreign = |why: Unconvertible| Refusal::unreadable(OBJECT, &why.to_string());
    let carried = edit.carried(&case.new).map_err(foreign)?;
    if case.is_being_deleted() || case.is_unchanged(&carried) {
        return Ok(carried);
    }
    let meant = edit.carried_and_filled(&carried).map_err(foreign)?;
    judge(case, &meant, now)?;
    Ok(meant)
}

fn judge(case: &Case<'_>, object: &Value, now: Timestamp) -> Result<(), Refusal> {
    let verdict = check(case.kind, case.old.as_ref(), object, &case.facts(now));
    if verdict.allows() {
        return Ok(());
    }
    Err(Refusal::invalid(case.kind, case.called(), &verdict.violations))
}

/// What may be patched.
fn parts(object: &Value) -> Value {
    let part = |key: &str| object.get(key).map(|part| (key.to_owned(), part.clone()));
    Value::Object([SPEC, STATUS].into_iter().filter_map(part).collect::<Map<_, _>>())
}
