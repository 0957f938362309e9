//! Conversion reviews: converts objects of any served version to the desired version.
//!
//! Objects are parsed, converted and serialized one at a time, so that only one is in memory as a
//! `Value`. If any object fails, the response names the failed ones.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::panic::catch_panic;
use super::review::response::INTERNAL_ERROR;
use super::review::{
    CONVERSION, Conversion, ObjectName, parse, split_list, string_at, truncated_echo,
};
use crate::api::convert::ConvertError;

/// The maximum number of failed objects that are named. One is enough to fail the review.
const MAX_NAMED_FAILURES: usize = 10;

/// Converts one object to the desired version.
pub(crate) type ConvertFn = fn(Value, &str) -> Result<Value, ConvertError>;

/// The result of a conversion review.
#[derive(Debug, PartialEq)]
pub(crate) enum Converted {
    /// The converted objects as a JSON array, and their number.
    All { list: Vec<u8>, objects: usize },
    /// What failed, and whether a panic was among the failures.
    Failed { message: String, bug: bool },
}

/// Why one object was not converted.
struct Failure {
    error: String,
    bug: bool,
}

impl Failure {
    fn new(error: String) -> Self {
        Self { error, bug: false }
    }
}

/// Converts all objects of a review, or reports those that cannot be converted.
pub(crate) fn convert_all(request: &Conversion<'_>, convert: ConvertFn) -> Converted {
    let raw_objects = match split_list(request.objects) {
        Ok(raw_objects) => raw_objects,
        Err(error) => {
            return Converted::Failed { message: format!("objects: {error}"), bug: false };
        }
    };
    if request.desired_api_version.is_empty() && !raw_objects.is_empty() {
        let message =
            "desiredAPIVersion: expected a version of a kind of this operator; it is empty";
        return Converted::Failed { message: message.to_owned(), bug: false };
    }
    let mut list = vec![b'['];
    let mut failures = Failures::default();
    for (index, raw) in raw_objects.iter().enumerate() {
        let bug = || Err(Failure { error: INTERNAL_ERROR.to_owned(), bug: true });
        match catch_panic(|| convert_one(raw, &request.desired_api_version, convert))
            .unwrap_or_else(bug)
        {
            // One failure fails the review: from then on the other objects are only tried, to
            // report all failures.
            Ok(object) if failures.count == 0 => {
                if index > 0 {
                    list.push(b',');
                }
                list.extend(object);
            }
            Ok(_) => {}
            Err(failure) => failures.add(index, raw, failure),
        }
    }
    list.push(b']');
    match failures.message() {
        Some(message) => Converted::Failed { message, bug: failures.bug },
        None => Converted::All { list, objects: raw_objects.len() },
    }
}

/// One object as JSON in the desired version.
fn convert_one(raw: &RawValue, desired: &str, convert: ConvertFn) -> Result<Vec<u8>, Failure> {
    let object = parse(raw).map_err(|error| Failure::new(error.to_string()))?;
    let is_desired_version = string_at(&object, "/apiVersion") == desired;
    let has_metadata = object.get("metadata").is_some_and(Value::is_object);
    let converted =
        convert(object, desired).map_err(|error| Failure::new(error_message(&error)))?;
    // The object is already in the desired version: it is returned byte for byte, with the order of
    // its keys.
    if is_desired_version && has_metadata {
        return Ok(raw.get().as_bytes().to_vec());
    }
    serde_json::to_vec(&converted).map_err(|error| Failure::new(error.to_string()))
}

/// The error message, with values from the request truncated.
fn error_message(error: &ConvertError) -> String {
    match error {
        ConvertError::UnknownKind(what) => {
            ConvertError::UnknownKind(truncated_echo(what)).to_string()
        }
        ConvertError::UnknownVersion { kind, requested } => {
            ConvertError::UnknownVersion { kind, requested: truncated_echo(requested) }.to_string()
        }
    }
}

/// The failures of one review, the first of them by name.
#[derive(Default)]
struct Failures {
    named: Vec<String>,
    count: usize,
    bug: bool,
}

impl Failures {
    fn add(&mut self, index: usize, raw: &RawValue, failure: Failure) {
        let Failure { error, bug } = failure;
        self.count = self.count.saturating_add(1);
        self.bug |= bug;
        if self.named.len() < MAX_NAMED_FAILURES {
            self.named.push(format!("objects[{index}] {}: {error}", ObjectName::read(raw)));
        }
    }

    fn message(&self) -> Option<String> {
        let more = self.count.saturating_sub(self.named.len());
        let rest = if more == 0 { String::new() } else { format!("; and {more} more") };
        (self.count > 0).then(|| format!("{}{rest}", self.named.join("; ")))
    }
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
}

/// The `ConversionReview` response. The objects are copied into it as they are, without parsing
/// them.
pub(crate) fn encode_response(
    uid: &str,
    converted: &Converted,
) -> Result<Vec<u8>, serde_json::Error> {
    let (list, result) = match converted {
        Converted::All { list, objects: _ } => {
            (list.as_slice(), Status { status: "Success", message: "" })
        }
        Converted::Failed { message, bug: _ } => {
            (b"[]".as_slice(), Status { status: "Failure", message })
        }
    };
    let (version, kind) = (CONVERSION.version, CONVERSION.kind);
    let mut body =
        format!(r#"{{"apiVersion":"{version}","kind":"{kind}","response":{{"uid":"#).into_bytes();
    serde_json::to_writer(&mut body, uid)?;
    body.extend_from_slice(br#","result":"#);
    serde_json::to_writer(&mut body, &result)?;
    body.extend_from_slice(br#","convertedObjects":"#);
    body.extend_from_slice(list);
    body.extend_from_slice(b"}}");
    Ok(body)
}

#[cfg(test)]
mod tests;
