//! Reviews as they arrive: the envelope is opened, what is in it stays text until somebody needs it.
//! Comes in: the bytes of a request. Goes out: an admission or a conversion to be answered, or one
//! sentence about what was expected. May touch: `weight`.
//! A field of another type than expected is as good as none: the uid must be found whatever else
//! there is, because without it no word of the answer reaches the user.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod answer;
mod objects;

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

pub(crate) use objects::{Label, TooMuch, listed, tree};

/// What an admission review says it is.
pub(crate) const ADMISSION: Form = Form { kind: "AdmissionReview", version: "admission.k8s.io/v1" };
/// What a conversion review says it is.
pub(crate) const CONVERSION: Form =
    Form { kind: "ConversionReview", version: "apiextensions.k8s.io/v1" };
/// The most characters of a stranger's words that are repeated to them.
const MOST_REPEATED: usize = 64;

/// A kind of review, in the version that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) kind: &'static str,
    pub(crate) version: &'static str,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, version } = self;
        write!(f, "{kind} of {version}")
    }
}

/// Why a request is not a review. There is no uid yet, so it is answered in plain words.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Unread {
    #[error("expected one {form} as JSON; this cannot be read: {why}")]
    NotJson { form: Form, why: String },
    #[error("expected one {form}; this is {kind:?} of {version:?}")]
    Other { form: Form, kind: String, version: String },
    #[error("expected one {form} with a `request` in it; there is none")]
    NoRequest { form: Form },
    #[error("expected one {form} with a `request.uid`; there is none")]
    NoUid { form: Form },
}

/// What somebody wants to do with an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Admission<'a> {
    #[serde(deserialize_with = "leniently")]
    pub(crate) uid: String,
    /// What the object is.
    #[serde(deserialize_with = "leniently")]
    pub(crate) kind: KindName,
    /// What the user wrote, if the apiserver converted it for us.
    #[serde(deserialize_with = "leniently")]
    pub(crate) request_kind: Option<KindName>,
    /// What the object is stored under.
    #[serde(deserialize_with = "leniently")]
    pub(crate) resource: ResourceName,
    /// What the user asked for, if the apiserver converted it for us.
    #[serde(deserialize_with = "leniently")]
    pub(crate) request_resource: Option<ResourceName>,
    #[serde(deserialize_with = "leniently")]
    pub(crate) sub_resource: String,
    #[serde(deserialize_with = "leniently")]
    pub(crate) operation: Operation,
    /// Empty if the apiserver has yet to make one.
    #[serde(deserialize_with = "leniently")]
    pub(crate) name: String,
    #[serde(deserialize_with = "leniently")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "leniently")]
    pub(crate) user_info: UserInfo,
    /// What was asked for besides.
    #[serde(deserialize_with = "leniently")]
    pub(crate) options: Options,
    #[serde(borrow)]
    pub(crate) object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) old_object: Option<&'a RawValue>,
}

/// A kind, as a review names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct KindName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// A resource, as a review names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ResourceName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UserInfo {
    pub(crate) username: String,
}

/// What a request asks for besides.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Options {
    /// By which name the sender owns what they write.
    #[serde(deserialize_with = "leniently")]
    pub(crate) field_manager: String,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// Nothing that is judged here.
    #[default]
    Else,
}

/// Objects that are wanted in another version.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conversion<'a> {
    #[serde(deserialize_with = "leniently")]
    pub(crate) uid: String,
    #[serde(rename = "desiredAPIVersion", deserialize_with = "leniently")]
    pub(crate) wanted: String,
    #[serde(borrow)]
    pub(crate) objects: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "Request: Deserialize<'de>"))]
struct Envelope<Request> {
    #[serde(default, deserialize_with = "leniently")]
    api_version: String,
    #[serde(default, deserialize_with = "leniently")]
    kind: String,
    #[serde(default = "Option::default")]
    request: Option<Request>,
}

/// The admission in a review.
pub(crate) fn admission(body: &[u8]) -> Result<Admission<'_>, Unread> {
    let request: Admission<'_> = opened(body, ADMISSION)?;
    if request.uid.is_empty() { Err(Unread::NoUid { form: ADMISSION }) } else { Ok(request) }
}

/// The conversion in a review.
pub(crate) fn conversion(body: &[u8]) -> Result<Conversion<'_>, Unread> {
    let request: Conversion<'_> = opened(body, CONVERSION)?;
    if request.uid.is_empty() { Err(Unread::NoUid { form: CONVERSION }) } else { Ok(request) }
}

fn opened<'a, Request: Deserialize<'a>>(body: &'a [u8], form: Form) -> Result<Request, Unread> {
    let envelope: Envelope<Request> = serde_json::from_slice(body)
        .map_err(|error| Unread::NotJson { form, why: repeated(&error.to_string()) })?;
    let Envelope { api_version, kind, request } = envelope;
    if kind != form.kind || api_version != form.version {
        let (kind, version) = (repeated(&kind), repeated(&api_version));
        return Err(Unread::Other { form, kind, version });
    }
    request.ok_or(Unread::NoRequest { form })
}

/// As much of a text as is repeated to whoever sent it.
pub(crate) fn repeated(text: &str) -> String {
    text.chars().take(MOST_REPEATED).collect()
}

/// What is there, or the default if it is something else.
fn leniently<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(text.get()).unwrap_or_default())
}

/// A text in an object, or an empty one.
pub(crate) fn text_at<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
