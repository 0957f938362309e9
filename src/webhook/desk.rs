//! The desk: takes the bytes of one review to whoever can answer it, and always has an answer.
//! Comes in: an errand, a body, the time. Goes out: a status code and a body.
//! May touch: `api`. Pure; a panic while one review is judged is the answer to that review and to
//! nothing else.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::admit;
use super::contain::contained;
use super::convert::{self, Turn, Turned};
use super::review::answer::{self, Refusal, Ruling};
use super::review::{self, Admission};
use crate::api;

/// What a review asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Errand {
    /// Fill in what is not said.
    Mutate,
    /// Say whether an object may be.
    Validate,
    /// Turn objects into another version.
    Convert,
}

/// How an errand ended, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Allowed as it is.
    Allowed,
    /// Allowed, with a patch.
    Patched,
    /// Refused with reasons.
    Denied,
    /// All objects converted.
    Converted,
    /// At least one object could not be converted.
    Unconverted,
    /// Not a review that can be read.
    Unreadable,
    /// A bug of ours, kept inside this review.
    Panicked,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status code. Once a review was read it is 200: with any other the words are lost.
    pub status: u16,
    /// JSON, or a sentence if the status is not 200.
    pub body: Vec<u8>,
    /// How it ended.
    pub outcome: Outcome,
    /// How many objects were converted.
    pub objects: usize,
}

/// Answers one request.
#[must_use]
pub fn answer(errand: Errand, body: &[u8], now: Timestamp) -> Reply {
    match errand {
        Errand::Mutate => admission(body, now, admit::mutate),
        Errand::Validate => admission(body, now, admit::validate),
        Errand::Convert => conversion(body, api::convert::convert),
    }
}

/// Whoever judges an admission.
type Judge = fn(&Admission<'_>, Timestamp) -> Ruling;

fn admission(body: &[u8], now: Timestamp, judge: Judge) -> Reply {
    let asked = match review::admission(body) {
        Ok(asked) => asked,
        Err(why) => return unreadable(&why),
    };
    let answered = contained(|| {
        let ruling = judge(&asked, now);
        let outcome = match &ruling {
            Ruling::Allowed { patch: Some(_), warnings: _ } => Outcome::Patched,
            Ruling::Allowed { patch: None, warnings: _ } => Outcome::Allowed,
            Ruling::Denied(_) => Outcome::Denied,
        };
        answer::written(&asked.uid, &ruling).ok().map(|body| (body, outcome))
    });
    let (body, outcome) = answered.flatten().unwrap_or_else(|| {
        let bug = answer::written(&asked.uid, &Ruling::Denied(Refusal::bug()));
        (bug.unwrap_or_default(), Outcome::Panicked)
    });
    Reply { status: 200, body, outcome, objects: 0 }
}

fn conversion(body: &[u8], turn: Turn) -> Reply {
    let asked = match review::conversion(body) {
        Ok(asked) => asked,
        Err(why) => return unreadable(&why),
    };
    let turned = convert::turned(&asked, turn);
    let (outcome, objects) = match &turned {
        Turned::All { list: _, objects } => (Outcome::Converted, *objects),
        Turned::Failed { message: _, bug: false } => (Outcome::Unconverted, 0),
        Turned::Failed { message: _, bug: true } => (Outcome::Panicked, 0),
    };
    let body = convert::written(&asked.uid, &turned).unwrap_or_default();
    Reply { status: 200, body, outcome, objects }
}

fn unreadable(why: &review::Unread) -> Reply {
    let body = format!("{why}\n").into_bytes();
    Reply { status: 400, body, outcome: Outcome::Unreadable, objects: 0 }
}

#[cfg(test)]
mod tests;
