//! Protection from deletion, for whoever asked for it.
//! Comes in: a request to delete an object of ours. Goes out: a ruling.
//! May touch: `review`, names. A namespace that goes takes everything with it, and so does an owner:
//! protection that stops those would leave a cluster with ruins that nobody can clear away.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::admit::{OLD_OBJECT, object};
use super::review::answer::{Refusal, Ruling};
use super::review::{Admission, text_at};
use crate::api::kinds::Kind;
use crate::api::names::{CLEANERS, PROTECTED_ANNOTATION};

/// Refuses to delete what is protected.
pub(crate) fn ruling(asked: &Admission<'_>, kind: &Kind) -> Result<Ruling, Refusal> {
    // Without the object there is nothing that could be protected.
    if asked.old_object.is_none() || CLEANERS.contains(&asked.user_info.username.as_str()) {
        return Ok(Ruling::UNTOUCHED);
    }
    let object = object(asked.old_object, OLD_OBJECT)?;
    let annotations = object.pointer("/metadata/annotations");
    let value = annotations.and_then(|notes| notes.get(PROTECTED_ANNOTATION));
    if value.and_then(serde_json::Value::as_str) != Some("true") {
        return Ok(Ruling::UNTOUCHED);
    }
    let named = text_at(&object, "/metadata/name");
    let name = if asked.name.is_empty() { named } else { &asked.name };
    let why = format!(
        "it is protected from deletion; to take the protection away: kubectl annotate --namespace \
         {} {}.{} {name} {PROTECTED_ANNOTATION}-",
        asked.namespace,
        kind.plural(),
        kind.group,
    );
    Err(Refusal::forbidden(kind, name, &why))
}

#[cfg(test)]
mod tests;
