//! Handles one review: decodes the request, runs admission or conversion, encodes the response.
//!
//! It has a response for any bytes, and a panic fails only the review in which it happens.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::admission;
use super::conversion::{self, ConvertFn, Converted};
use super::panic::catch_panic;
use super::review::response::{self, AdmissionDecision, Denial};
use super::review::{self, Admission};
use crate::api;

/// The type of a review, given by the path of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReviewType {
    /// Set defaults and restore hub-only fields.
    Mutate,
    /// Allow or deny a request.
    Validate,
    /// Convert objects to another version.
    Convert,
}

/// The outcome of a review, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Allowed unchanged.
    Allowed,
    /// Allowed, with a patch.
    Patched,
    /// Denied with reasons.
    Denied,
    /// All objects converted.
    Converted,
    /// At least one object could not be converted.
    Unconverted,
    /// The body is not a review.
    Unreadable,
    /// A panic, caught in this review.
    Panicked,
}

/// The response to one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewResponse {
    /// The HTTP status code. It is 200 for every review that could be decoded: the API server drops
    /// the message of any other response.
    pub status: u16,
    /// JSON, or a plain text message if the status is not 200.
    pub body: Vec<u8>,
    /// The outcome, for the metrics.
    pub outcome: Outcome,
    /// The number of converted objects.
    pub objects: usize,
}

/// Handles one review.
#[must_use]
pub fn handle(review_type: ReviewType, body: &[u8], now: Timestamp) -> ReviewResponse {
    match review_type {
        ReviewType::Mutate => admission(body, now, admission::mutate),
        ReviewType::Validate => admission(body, now, admission::validate),
        ReviewType::Convert => conversion(body, api::convert::convert),
    }
}

/// Mutates or validates one admission request.
type AdmissionFn = fn(&Admission<'_>, Timestamp) -> AdmissionDecision;

fn admission(body: &[u8], now: Timestamp, admit: AdmissionFn) -> ReviewResponse {
    let request = match review::admission(body) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    let response = catch_panic(|| {
        let decision = admit(&request, now);
        let outcome = match &decision {
            AdmissionDecision::Allowed { patch: Some(_), warnings: _ } => Outcome::Patched,
            AdmissionDecision::Allowed { patch: None, warnings: _ } => Outcome::Allowed,
            AdmissionDecision::Denied(_) => Outcome::Denied,
        };
        response::encode(&request.uid, &decision).ok().map(|body| (body, outcome))
    });
    let (body, outcome) = response.flatten().unwrap_or_else(|| {
        let bug =
            response::encode(&request.uid, &AdmissionDecision::Denied(Denial::internal_error()));
        (bug.unwrap_or_default(), Outcome::Panicked)
    });
    ReviewResponse { status: 200, body, outcome, objects: 0 }
}

fn conversion(body: &[u8], convert: ConvertFn) -> ReviewResponse {
    let request = match review::conversion(body) {
        Ok(request) => request,
        Err(error) => return unreadable(&error),
    };
    let converted = conversion::convert_all(&request, convert);
    let (outcome, objects) = match &converted {
        Converted::All { list: _, objects } => (Outcome::Converted, *objects),
        Converted::Failed { message: _, bug: false } => (Outcome::Unconverted, 0),
        Converted::Failed { message: _, bug: true } => (Outcome::Panicked, 0),
    };
    let body = conversion::encode_response(&request.uid, &converted).unwrap_or_default();
    ReviewResponse { status: 200, body, outcome, objects }
}

fn unreadable(error: &review::DecodeError) -> ReviewResponse {
    let body = format!("{error}\n").into_bytes();
    ReviewResponse { status: 400, body, outcome: Outcome::Unreadable, objects: 0 }
}

#[cfg(test)]
mod tests;
