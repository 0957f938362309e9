//! The mutating webhook: drops fields released by server-side apply, restores hub-only fields,
//! validates, and sets defaults.
//!
//! It validates before the API server checks its own schema, because a schema error names the rule
//! but not the remedy. Only spec and status are ever patched.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{AdmissionCase, OBJECT, SPEC, STATUS};
use crate::api::convert::ConvertError;
use crate::api::validation::validate;
use crate::webhook::review::response::{AdmissionDecision, Denial};

/// Denies the object, or patches it to the effective object.
pub(super) fn decide(
    mut case: AdmissionCase<'_>,
    now: Timestamp,
) -> Result<AdmissionDecision, Denial> {
    let before = patchable_fields(&case.new);
    if let (Some(pruned), Some(new)) = (case.without_released_fields(), case.new.as_object_mut()) {
        new.insert(SPEC.to_owned(), pruned);
    }
    let after = patchable_fields(&effective_object(&case, now)?);
    if !case.is_hub_version {
        return Ok(AdmissionDecision::ALLOWED);
    }
    Ok(AdmissionDecision::with_patch(json_patch::diff(&before, &after)))
}

/// The object as the user means it: with hub-only fields and defaults.
fn effective_object(case: &AdmissionCase<'_>, now: Timestamp) -> Result<Value, Denial> {
    let Some(old) = &case.old else {
        let mut new = case.new.clone();
        // The API server drops a status on create, but the preserved-fields annotation can bring
        // one.
        new.as_object_mut().map(|new| new.remove(STATUS));
        validate_object(case, &new, now)?;
        return Ok(case.kind.with_defaults(&new, None));
    };
    let Some(update) = case.spoke_update() else {
        if case.is_being_deleted() || case.is_unchanged(&case.new) {
            return Ok(case.new.clone());
        }
        validate_object(case, &case.new, now)?;
        return Ok(case.kind.with_defaults(&case.new, Some(old)));
    };
    let unreadable = |error: ConvertError| Denial::unreadable(OBJECT, &error.to_string());
    let merged = update.with_hub_only_fields(&case.new).map_err(unreadable)?;
    if case.is_being_deleted() || case.is_unchanged(&merged) {
        return Ok(merged);
    }
    let effective = update.with_hub_only_fields_and_defaults(&merged).map_err(unreadable)?;
    validate_object(case, &effective, now)?;
    Ok(effective)
}

fn validate_object(case: &AdmissionCase<'_>, object: &Value, now: Timestamp) -> Result<(), Denial> {
    let result = validate(case.kind, case.old.as_ref(), object, &case.validation_context(now));
    if result.is_valid() {
        return Ok(());
    }
    Err(Denial::invalid(case.kind, case.display_name(), &result.violations))
}

/// The fields that may be patched.
fn patchable_fields(object: &Value) -> Value {
    let part = |key: &str| object.get(key).map(|part| (key.to_owned(), part.clone()));
    Value::Object([SPEC, STATUS].into_iter().filter_map(part).collect::<Map<_, _>>())
}
