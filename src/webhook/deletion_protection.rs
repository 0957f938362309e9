//! Denies deletion of objects with the deletion-protection annotation.
//!
//! The namespace controller and the garbage collector are exempt: denying their requests would
//! leave namespaces and dependents that cannot be deleted.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::admission::{OLD_OBJECT, read_object};
use super::review::response::{AdmissionDecision, Denial};
use super::review::{Admission, string_at};
use crate::api::kinds::Kind;
use crate::api::names::{DELETION_PROTECTION_ANNOTATION, GARBAGE_COLLECTION_USERS};

/// Denies deletion of a protected object.
pub(crate) fn decide(request: &Admission<'_>, kind: &Kind) -> Result<AdmissionDecision, Denial> {
    // Without the object there is no annotation to read.
    if request.old_object.is_none()
        || GARBAGE_COLLECTION_USERS.contains(&request.user_info.username.as_str())
    {
        return Ok(AdmissionDecision::ALLOWED);
    }
    let object = read_object(request.old_object, OLD_OBJECT)?;
    let annotations = object.pointer("/metadata/annotations");
    let value = annotations.and_then(|annotations| annotations.get(DELETION_PROTECTION_ANNOTATION));
    if value.and_then(serde_json::Value::as_str) != Some("true") {
        return Ok(AdmissionDecision::ALLOWED);
    }
    let named = string_at(&object, "/metadata/name");
    let name = if request.name.is_empty() { named } else { &request.name };
    let reason = format!(
        "deletion protection is enabled; to disable it: kubectl annotate --namespace {} {}.{} {name} \
         {DELETION_PROTECTION_ANNOTATION}-",
        request.namespace,
        kind.plural(),
        kind.group,
    );
    Err(Denial::forbidden(kind, name, &reason))
}

#[cfg(test)]
mod tests;
