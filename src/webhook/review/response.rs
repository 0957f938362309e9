//! The response to an admission request: allowed, with a patch or warnings, or denied with a
//! Status.
//!
//! Messages have the form of the API server's own validation errors, so that users read one format.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Serialize;

use super::{ADMISSION, ObjectError};
use crate::api::kinds::Kind;
use crate::api::validation::Violation;

/// The maximum number of warnings in one response. The API server passes on at most 4096
/// characters.
pub(crate) const MAX_WARNINGS: usize = 32;

/// The decision on an admission request.
#[derive(Debug, PartialEq)]
pub(crate) enum AdmissionDecision {
    /// The request is allowed.
    Allowed {
        /// The JSON patch to apply first.
        patch: Option<Patch>,
        /// Warnings for the user.
        warnings: Vec<String>,
    },
    /// The request is denied.
    Denied(Denial),
}

impl AdmissionDecision {
    /// Allowed unchanged, without warnings.
    pub(crate) const ALLOWED: Self = Self::Allowed { patch: None, warnings: Vec::new() };

    /// Allowed, with a patch unless it is empty.
    pub(crate) fn with_patch(patch: Patch) -> Self {
        let patch = (!patch.0.is_empty()).then_some(patch);
        Self::Allowed { patch, warnings: Vec::new() }
    }

    /// Allowed, with at most `MAX_WARNINGS` warnings.
    pub(crate) fn with_warnings(mut warnings: Vec<String>) -> Self {
        warnings.truncate(MAX_WARNINGS);
        Self::Allowed { patch: None, warnings }
    }

    /// The same decision without warnings: the mutating webhook must not repeat the warnings that
    /// the validating webhook returns.
    pub(crate) fn without_warnings(self) -> Self {
        match self {
            Self::Allowed { patch, warnings: _ } => Self::Allowed { patch, warnings: Vec::new() },
            Self::Denied(denial) => Self::Denied(denial),
        }
    }
}

impl From<Denial> for AdmissionDecision {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// Why a request is denied: the `Status` of the Kubernetes API.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Denial {
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

/// One violation. `kubectl` prints the field, a colon and the message.
#[derive(Debug, PartialEq, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Denial {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { status: "Failure", message, reason, details: None, code }
    }

    /// An object that violates rules; the message lists every violation.
    pub(crate) fn invalid(kind: &Kind, name: &str, violations: &[Violation]) -> Self {
        let (kind, group) = (kind.name, kind.group);
        let messages: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let joined = match messages.as_slice() {
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
        let message = format!("{kind}.{group} {name:?} is invalid: {joined}");
        Self { details: Some(Box::new(details)), ..Self::new(422, "Invalid", message) }
    }

    /// A request that is not permitted for this object.
    pub(crate) fn forbidden(kind: &Kind, name: &str, reason: &str) -> Self {
        let (resource, group) = (kind.plural(), kind.group.to_owned());
        let message = format!("{resource}.{group} {name:?} is forbidden: {reason}");
        let details = Details { name: name.to_owned(), group, kind: resource, causes: Vec::new() };
        Self { details: Some(Box::new(details)), ..Self::new(403, "Forbidden", message) }
    }

    /// A review whose object is missing or not of the kind that the review names.
    pub(crate) fn unreadable(field: &str, reason: &str) -> Self {
        Self::new(400, "BadRequest", format!("{field} of the review {reason}"))
    }

    /// An object that cannot be parsed or needs too much memory.
    pub(crate) fn unreadable_object(field: &str, reason: &ObjectError) -> Self {
        let message = format!("{field} of the review {reason}");
        match reason {
            ObjectError::TooLarge { estimate: _, max: _ } => {
                Self::new(413, "RequestEntityTooLarge", message)
            }
            ObjectError::Unreadable(_) => Self::new(400, "BadRequest", message),
        }
    }

    /// A bug in the operator.
    pub(crate) fn internal_error() -> Self {
        Self::new(500, "InternalError", INTERNAL_ERROR.to_owned())
    }
}

/// The message for a panic.
pub(crate) const INTERNAL_ERROR: &str = "the operator failed to process this request: this is a bug, please report it with the \
     operator's log";

fn cause(violation: &Violation) -> Cause {
    let text = violation.to_string();
    let field = violation.path.clone();
    let rest = text.strip_prefix(&field).and_then(|rest| rest.strip_prefix(": "));
    let message = rest.unwrap_or(&text).to_owned();
    Cause { reason: violation.error_type.reason(), message, field }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: AdmissionResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionResponse<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Denial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'a str>,
    /// Base64: the byte array that kube's type serializes to is not the documented form.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// Encodes the `AdmissionReview` response.
pub(crate) fn encode(
    uid: &str,
    decision: &AdmissionDecision,
) -> Result<Vec<u8>, serde_json::Error> {
    let response = match decision {
        AdmissionDecision::Allowed { patch, warnings } => {
            let patch = patch.as_ref().map(serde_json::to_vec).transpose()?;
            let patch_type = patch.as_ref().map(|_| "JSONPatch");
            let patch = patch.map(|patch| STANDARD.encode(patch));
            AdmissionResponse { uid, allowed: true, status: None, patch_type, patch, warnings }
        }
        AdmissionDecision::Denied(denial) => AdmissionResponse {
            uid,
            allowed: false,
            status: Some(denial),
            patch_type: None,
            patch: None,
            warnings: &[],
        },
    };
    let review = AdmissionReview { api_version: ADMISSION.version, kind: ADMISSION.kind, response };
    serde_json::to_vec(&review)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_warnings_is_bounded() {
        let many = (0..100).map(|number| number.to_string()).collect();
        let AdmissionDecision::Allowed { patch: None, warnings } =
            AdmissionDecision::with_warnings(many)
        else {
            panic!()
        };
        assert_eq!(warnings.len(), MAX_WARNINGS);
        assert_eq!(warnings[0], "0");
    }

    #[test]
    fn empty_patch_is_omitted() {
        assert_eq!(AdmissionDecision::with_patch(Patch::default()), AdmissionDecision::ALLOWED);
        let text = String::from_utf8(encode("u", &AdmissionDecision::ALLOWED).unwrap()).unwrap();
        assert!(!text.contains("patch"), "{text}");
    }
}
