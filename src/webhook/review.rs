//! Decodes `AdmissionReview` and `ConversionReview`. The objects in a review stay raw JSON until
//! they are needed.
//!
//! A field of an unexpected type counts as missing: the uid must be found in any review, because
//! without it the API server drops the response and its message.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod objects;
pub(crate) mod response;

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

pub(crate) use objects::{ObjectError, ObjectName, parse, split_list};

/// `AdmissionReview`, in the version that is supported.
pub(crate) const ADMISSION: ReviewKind =
    ReviewKind { kind: "AdmissionReview", version: "admission.k8s.io/v1" };
/// `ConversionReview`, in the version that is supported.
pub(crate) const CONVERSION: ReviewKind =
    ReviewKind { kind: "ConversionReview", version: "apiextensions.k8s.io/v1" };
/// The maximum number of characters of a request that a message repeats.
const MAX_ECHOED_CHARS: usize = 64;

/// A kind of review and its API version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReviewKind {
    pub(crate) kind: &'static str,
    pub(crate) version: &'static str,
}

impl fmt::Display for ReviewKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, version } = self;
        write!(f, "{kind} of {version}")
    }
}

/// Why a request is not a review. Without a uid there is no review to respond with, so the response
/// is plain text.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum DecodeError {
    #[error("expected one {expected} as JSON; this cannot be read: {error}")]
    NotJson { expected: ReviewKind, error: String },
    #[error("expected one {expected}; this is {kind:?} of {version:?}")]
    Other { expected: ReviewKind, kind: String, version: String },
    #[error("expected one {expected} with a `request` in it; there is none")]
    NoRequest { expected: ReviewKind },
    #[error("expected one {expected} with a `request.uid`; there is none")]
    NoUid { expected: ReviewKind },
}

/// The request of an `AdmissionReview`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Admission<'a> {
    #[serde(deserialize_with = "lenient")]
    pub(crate) uid: String,
    /// The kind of the object in the review.
    #[serde(deserialize_with = "lenient")]
    pub(crate) kind: KindName,
    /// The kind in which the user wrote it, if the API server converted the object.
    #[serde(deserialize_with = "lenient")]
    pub(crate) request_kind: Option<KindName>,
    /// The resource of the object in the review.
    #[serde(deserialize_with = "lenient")]
    pub(crate) resource: ResourceName,
    /// The resource of the user's request, if the API server converted the object.
    #[serde(deserialize_with = "lenient")]
    pub(crate) request_resource: Option<ResourceName>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) sub_resource: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) operation: Operation,
    /// Empty if the API server has yet to generate the name.
    #[serde(deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) user_info: UserInfo,
    /// The options of the request.
    #[serde(deserialize_with = "lenient")]
    pub(crate) options: RequestOptions,
    #[serde(borrow)]
    pub(crate) object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) old_object: Option<&'a RawValue>,
}

/// A group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct KindName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// A group, version and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ResourceName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
}

/// The user or service account that sent the request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UserInfo {
    pub(crate) username: String,
}

/// The options of a create or update request.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequestOptions {
    /// The field manager.
    #[serde(deserialize_with = "lenient")]
    pub(crate) field_manager: String,
}

/// The operation of an admission request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// Any operation that is not reviewed here.
    #[default]
    Other,
}

/// The request of a `ConversionReview`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conversion<'a> {
    #[serde(deserialize_with = "lenient")]
    pub(crate) uid: String,
    #[serde(rename = "desiredAPIVersion", deserialize_with = "lenient")]
    pub(crate) desired_api_version: String,
    #[serde(borrow)]
    pub(crate) objects: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "Request: Deserialize<'de>"))]
struct Envelope<Request> {
    #[serde(default, deserialize_with = "lenient")]
    api_version: String,
    #[serde(default, deserialize_with = "lenient")]
    kind: String,
    #[serde(default = "Option::default")]
    request: Option<Request>,
}

/// Decodes the request of an `AdmissionReview`.
pub(crate) fn admission(body: &[u8]) -> Result<Admission<'_>, DecodeError> {
    let request: Admission<'_> = decode(body, ADMISSION)?;
    if request.uid.is_empty() {
        Err(DecodeError::NoUid { expected: ADMISSION })
    } else {
        Ok(request)
    }
}

/// Decodes the request of a `ConversionReview`.
pub(crate) fn conversion(body: &[u8]) -> Result<Conversion<'_>, DecodeError> {
    let request: Conversion<'_> = decode(body, CONVERSION)?;
    if request.uid.is_empty() {
        Err(DecodeError::NoUid { expected: CONVERSION })
    } else {
        Ok(request)
    }
}

fn decode<'a, Request: Deserialize<'a>>(
    body: &'a [u8],
    expected: ReviewKind,
) -> Result<Request, DecodeError> {
    let envelope: Envelope<Request> = serde_json::from_slice(body).map_err(|error| {
        DecodeError::NotJson { expected, error: truncated_echo(&error.to_string()) }
    })?;
    let Envelope { api_version, kind, request } = envelope;
    if kind != expected.kind || api_version != expected.version {
        let (kind, version) = (truncated_echo(&kind), truncated_echo(&api_version));
        return Err(DecodeError::Other { expected, kind, version });
    }
    request.ok_or(DecodeError::NoRequest { expected })
}

/// The start of a value from the request, short enough to repeat in a message.
pub(crate) fn truncated_echo(text: &str) -> String {
    text.chars().take(MAX_ECHOED_CHARS).collect()
}

/// The value, or the default if it has another type.
fn lenient<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// The string at a JSON pointer; empty if there is none.
pub(crate) fn string_at<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
