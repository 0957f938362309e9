//! The validating webhook: validates the object that is about to be stored, after every mutating
//! webhook.
//!
//! Only this webhook returns warnings, so that none appears twice. A status can only arrive through
//! the preserved-fields annotation of an older version, and only the operator may write it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde_json::Value;

use super::{AdmissionCase, STATUS, non_null};
use crate::api::convert::PRESERVED_FIELDS_ANNOTATION;
use crate::api::validation::{ErrorType, ValidationResult, Violation, validate};
use crate::webhook::review::response::{AdmissionDecision, Denial};

/// Denies the object, or allows it with warnings.
pub(super) fn decide(
    case: &AdmissionCase<'_>,
    now: Timestamp,
) -> Result<AdmissionDecision, Denial> {
    if case.is_being_deleted() {
        return Ok(AdmissionDecision::ALLOWED);
    }
    let unexpected = unexpected_status(case);
    let mut result = if case.is_unchanged(&case.new) {
        ValidationResult::default()
    } else {
        validate(case.kind, case.old.as_ref(), &case.new, &case.validation_context(now))
    };
    result.violations.extend(unexpected);
    if result.is_valid() {
        return Ok(AdmissionDecision::with_warnings(result.warnings));
    }
    Err(Denial::invalid(case.kind, case.display_name(), &result.violations))
}

/// A status that the operator did not write.
fn unexpected_status(case: &AdmissionCase<'_>) -> Option<Violation> {
    let new = non_null(case.new.get(STATUS))?;
    let path = match &case.old {
        None => first_added_field(new, None, STATUS)?,
        // In the hub version the API server ignores the status of such a write.
        Some(_) if case.request_version.name == case.kind.hub().name => return None,
        Some(old) => first_added_field(new, non_null(old.get(STATUS)), STATUS)?,
    };
    let hub = case.kind.hub().name;
    let detail = format!(
        "may only be written by the operator, and `{path}` of {hub} differs from the stored \
         status: remove the status and the annotation {PRESERVED_FIELDS_ANNOTATION}"
    );
    Some(Violation {
        path: STATUS.to_owned(),
        error_type: ErrorType::Forbidden,
        value: None,
        detail,
    })
}

/// The first field of `new` that `old` does not have. Missing fields are fine: they may not have
/// fit into the preserved-fields annotation.
fn first_added_field(new: &Value, old: Option<&Value>, path: &str) -> Option<String> {
    match (new, old) {
        (Value::Null, _) => None,
        (Value::Object(new), old) => new.iter().find_map(|(key, new)| {
            first_added_field(new, old.and_then(|old| old.get(key)), &format!("{path}.{key}"))
        }),
        // An older version may list the same entries in another order and with fewer fields.
        (Value::Array(new), Some(Value::Array(old))) => {
            let is_known =
                |new: &Value| old.iter().any(|old| first_added_field(new, Some(old), "").is_none());
            (!new.iter().all(is_known)).then(|| path.to_owned())
        }
        (new, old) => (old != Some(new)).then(|| path.to_owned()),
    }
}
