//! The answer to an admission: allowed, with a patch or warnings, or refused with reasons.
//! Comes in: a ruling. Goes out: the review that the apiserver reads, and the Status that `kubectl`
//! prints. May touch: verdicts of `api`.
//! The words have the form that the apiserver gives its own: whoever reads them need not learn a
//! second one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Serialize;

use super::{ADMISSION, TooMuch};
use crate::api::check::Violation;
use crate::api::kinds::Kind;

/// The most warnings in one answer. The apiserver passes on 4096 characters of them at most.
pub(crate) const MOST_WARNINGS: usize = 32;

/// What becomes of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Ruling {
    /// It goes on.
    Allowed {
        /// What is changed before.
        patch: Option<Patch>,
        /// What is worth a word.
        warnings: Vec<String>,
    },
    /// It does not.
    Denied(Refusal),
}

impl Ruling {
    /// Allowed as it is, without a word.
    pub(crate) const UNTOUCHED: Self = Self::Allowed { patch: None, warnings: Vec::new() };

    /// Allowed, with a patch if there is anything to change.
    pub(crate) fn patched(patch: Patch) -> Self {
        let patch = (!patch.0.is_empty()).then_some(patch);
        Self::Allowed { patch, warnings: Vec::new() }
    }

    /// Allowed, with as many warnings as are passed on.
    pub(crate) fn warned(mut warnings: Vec<String>) -> Self {
        warnings.truncate(MOST_WARNINGS);
        Self::Allowed { patch: None, warnings }
    }

    /// The same without a word: who is asked first must not say what who is asked last says again.
    pub(crate) fn without_warnings(self) -> Self {
        match self {
            Self::Allowed { patch, warnings: _ } => Self::Allowed { patch, warnings: Vec::new() },
            Self::Denied(refusal) => Self::Denied(refusal),
        }
    }
}

impl From<Refusal> for Ruling {
    fn from(refusal: Refusal) -> Self {
        Self::Denied(refusal)
    }
}

/// Why a request does not go on: a Status as Kubernetes knows it.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Refusal {
    status: &'static str,
    message: String,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<Details>>,
    code: u16,
}

#[derive(Debug, PartialEq, Serialize)]
struct Details {
    name: String,
    group: String,
    kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
}

/// One fault. `kubectl` prints the field, a colon and the message.
#[derive(Debug, PartialEq, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { status: "Failure", message, reason, details: None, code }
    }

    /// An object that breaks rules: all of them are named.
    pub(crate) fn invalid(kind: &Kind, name: &str, violations: &[Violation]) -> Self {
        let (kind, group) = (kind.name, kind.group);
        let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let all = match said.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let causes = violations.iter().map(cause).collect();
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
        };
        let message = format!("{kind}.{group} {name:?} is invalid: {all}");
        Self { details: Some(Box::new(details)), ..Self::new(422, "Invalid", message) }
    }

    /// Something that may not be done to an object.
    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let (resource, group) = (kind.plural(), kind.group.to_owned());
        let message = format!("{resource}.{group} {name:?} is forbidden: {why}");
        let details = Details { name: name.to_owned(), group, kind: resource, causes: Vec::new() };
        Self { details: Some(Box::new(details)), ..Self::new(403, "Forbidden", message) }
    }

    /// An object that is not what the review says it is.
    pub(crate) fn unreadable(field: &str, why: &str) -> Self {
        Self::new(400, "BadRequest", format!("{field} of the review {why}"))
    }

    /// An object that is not looked into.
    pub(crate) fn too_much(field: &str, why: &TooMuch) -> Self {
        let message = format!("{field} of the review {why}");
        match why {
            TooMuch::Heavy { weight: _, most: _ } => {
                Self::new(413, "RequestEntityTooLarge", message)
            }
            TooMuch::Unreadable(_) => Self::new(400, "BadRequest", message),
        }
    }

    /// Nobody's fault but ours.
    pub(crate) fn bug() -> Self {
        Self::new(500, "InternalError", BUG.to_owned())
    }
}

/// What is said when an answer could not be made.
pub(crate) const BUG: &str =
    "the operator failed to judge this: a bug of ours, please report it with the operator's log";

fn cause(violation: &Violation) -> Cause {
    let whole = violation.to_string();
    let field = violation.path.clone();
    let rest = whole.strip_prefix(&field).and_then(|rest| rest.strip_prefix(": "));
    let message = rest.unwrap_or(&whole).to_owned();
    Cause { reason: violation.fault.reason(), message, field }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'a str>,
    /// In base64: an array of bytes, as kube writes it, is not the documented form.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// The review that answers an admission.
pub(crate) fn written(uid: &str, ruling: &Ruling) -> Result<Vec<u8>, serde_json::Error> {
    let response = match ruling {
        Ruling::Allowed { patch, warnings } => {
            let patch = patch.as_ref().map(serde_json::to_vec).transpose()?;
            let patch_type = patch.as_ref().map(|_| "JSONPatch");
            let patch = patch.map(|patch| STANDARD.encode(patch));
            Response { uid, allowed: true, status: None, patch_type, patch, warnings }
        }
        Ruling::Denied(refusal) => Response {
            uid,
            allowed: false,
            status: Some(refusal),
            patch_type: None,
            patch: None,
            warnings: &[],
        },
    };
    let review = Review { api_version: ADMISSION.version, kind: ADMISSION.kind, response };
    serde_json::to_vec(&review)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_warnings_are_sent_than_are_passed_on() {
        let many = (0..100).map(|number| number.to_string()).collect();
        let Ruling::Allowed { patch: None, warnings } = Ruling::warned(many) else { panic!() };
        assert_eq!(warnings.len(), MOST_WARNINGS);
        assert_eq!(warnings[0], "0");
    }

    #[test]
    fn an_empty_patch_is_no_patch() {
        assert_eq!(Ruling::patched(Patch::default()), Ruling::UNTOUCHED);
        let text = String::from_utf8(written("u", &Ruling::UNTOUCHED).unwrap()).unwrap();
        assert!(!text.contains("patch"), "{text}");
    }
}
