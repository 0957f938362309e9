//! Conversion reviews: any of our objects, from any version to the one that is wanted.
//! Comes in: a conversion as it was read. Goes out: all objects in their order, or every object that
//! could not be converted by its name. May touch: `review`, conversion.
//! One tree at a time: texts come in, and what goes out is text again before the next is looked at.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::contain::contained;
use super::review::answer::BUG;
use super::review::{CONVERSION, Conversion, Label, listed, repeated, text_at, tree};
use crate::api::convert::Unconvertible;

/// The most objects that are named when they fail. One is enough to fail the review.
const MOST_NAMED: usize = 10;

/// Turns one object into the wanted version.
pub(crate) type Turn = fn(Value, &str) -> Result<Value, Unconvertible>;

/// How a conversion went.
#[derive(Debug, PartialEq)]
pub(crate) enum Turned {
    /// As a list, the text of it, with as many objects as came in.
    All { list: Vec<u8>, objects: usize },
    /// With everything that is wrong, and whether any of it is a bug of ours.
    Failed { message: String, bug: bool },
}

/// Why one object is not converted.
struct Failure {
    why: String,
    bug: bool,
}

impl Failure {
    fn of(why: String) -> Self {
        Self { why, bug: false }
    }
}

/// Converts all objects of a review, or says which cannot be converted.
pub(crate) fn turned(asked: &Conversion<'_>, turn: Turn) -> Turned {
    let texts = match listed(asked.objects) {
        Ok(texts) => texts,
        Err(why) => return Turned::Failed { message: format!("objects: {why}"), bug: false },
    };
    if asked.wanted.is_empty() && !texts.is_empty() {
        let message = "desiredAPIVersion: expected a version of a kind of ours; there is none";
        return Turned::Failed { message: message.to_owned(), bug: false };
    }
    let mut list = vec![b'['];
    let mut failures = Failures::default();
    for (index, text) in texts.iter().enumerate() {
        let bug = || Err(Failure { why: BUG.to_owned(), bug: true });
        match contained(|| one(text, &asked.wanted, turn)).unwrap_or_else(bug) {
            // One failure fails them all: from then on the others are only tried.
            Ok(object) if failures.count == 0 => {
                if index > 0 {
                    list.push(b',');
                }
                list.extend(object);
            }
            Ok(_) => {}
            Err(failure) => failures.add(index, text, failure),
        }
    }
    list.push(b']');
    match failures.told() {
        Some(message) => Turned::Failed { message, bug: failures.bug },
        None => Turned::All { list, objects: texts.len() },
    }
}

/// The text of one object in the wanted version.
fn one(text: &RawValue, wanted: &str, turn: Turn) -> Result<Vec<u8>, Failure> {
    let object = tree(text).map_err(|why| Failure::of(why.to_string()))?;
    let is_wanted = text_at(&object, "/apiVersion") == wanted;
    let is_whole = object.get("metadata").is_some_and(Value::is_object);
    let turned = turn(object, wanted).map_err(|why| Failure::of(shown(&why)))?;
    // Nothing had to be done, so nothing is: not even to the order of its keys.
    if is_wanted && is_whole {
        return Ok(text.get().as_bytes().to_vec());
    }
    serde_json::to_vec(&turned).map_err(|why| Failure::of(why.to_string()))
}

/// The reason, without more of a stranger's words than are repeated.
fn shown(why: &Unconvertible) -> String {
    match why {
        Unconvertible::Stranger(what) => Unconvertible::Stranger(repeated(what)).to_string(),
        Unconvertible::NoSuchVersion { kind, wanted } => {
            Unconvertible::NoSuchVersion { kind, wanted: repeated(wanted) }.to_string()
        }
    }
}

/// What failed, as far as it is told.
#[derive(Default)]
struct Failures {
    named: Vec<String>,
    count: usize,
    bug: bool,
}

impl Failures {
    fn add(&mut self, index: usize, text: &RawValue, failure: Failure) {
        let Failure { why, bug } = failure;
        self.count = self.count.saturating_add(1);
        self.bug |= bug;
        if self.named.len() < MOST_NAMED {
            self.named.push(format!("objects[{index}] {}: {why}", Label::of(text)));
        }
    }

    fn told(&self) -> Option<String> {
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

/// The review that answers a conversion. The objects go into it as the text that they are.
pub(crate) fn written(uid: &str, turned: &Turned) -> Result<Vec<u8>, serde_json::Error> {
    let (list, result) = match turned {
        Turned::All { list, objects: _ } => {
            (list.as_slice(), Status { status: "Success", message: "" })
        }
        Turned::Failed { message, bug: _ } => {
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
