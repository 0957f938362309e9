//! Where a place of the hub is in the version that the user wrote.
//! Comes in: findings with places in v1. Goes out: the same in the words of the other version.
//! May touch: conversion. There is no table to keep in step: a mark is laid at the place in v1, and
//! conversion shows where it comes out.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value, json};

use super::place::{Place, Step};
use super::verdict::Told;
use super::{Fault, Finding, schema};
use crate::api::convert::{Part, Turn};
use crate::api::kinds::{Kind, Version};

/// What no user writes. It fits no schema, so conversion carries it as it is.
const MARK: &str = "\u{1}mark\u{1}";

/// The version that a user wrote, and the object in the hub and as it was written.
pub(super) struct Tongue<'a> {
    pub(super) kind: &'a Kind,
    pub(super) version: &'static Version,
    pub(super) hub: &'a Value,
    pub(super) written: &'a Value,
}

/// Where the mark came out.
struct Found {
    place: Place,
    /// Whether it is all that stands there, and not a part of a text such as a URL.
    whole: bool,
}

impl Tongue<'_> {
    /// A finding of the user's own version.
    pub(super) fn as_it_is(&self, finding: &Finding) -> Told {
        let Finding { place, fault, detail } = finding.clone();
        let value = place.found_in(self.written).cloned();
        Told { place, covers: true, of_a_part: false, fault, value, detail }
    }

    /// A finding of the hub, in the words of the user's version.
    pub(super) fn told(&self, finding: &Finding) -> Told {
        let detail = self.words(&finding.detail);
        let said = |place: Place, detail: String| {
            self.as_it_is(&Finding { place, fault: finding.fault, detail })
        };
        let hub = &finding.place;
        match (self.exactly(hub), hub.0.last()) {
            (Some(Found { place, whole: false }), Some(Step::Field(part))) => {
                let detail = match finding.fault {
                    Fault::Invalid | Fault::Unsupported => format!("the {part} {detail}"),
                    Fault::Required | Fault::Forbidden => detail,
                };
                Told { of_a_part: true, ..said(place, detail) }
            }
            (Some(Found { place, whole: _ }), _) => said(place, detail),
            (None, _) => match self.inside(hub).or_else(|| self.around(hub)) {
                Some(place) => said(place, detail),
                None => self.unsayable(finding, &detail),
            },
        }
    }

    /// A finding that only the hub has a name for: it is about the object as a whole.
    fn unsayable(&self, finding: &Finding, detail: &str) -> Told {
        let Finding { place, fault, detail: _ } = finding;
        let start = Place(place.0.iter().take(1).cloned().collect());
        let value = place.found_in(self.hub).cloned();
        let detail = format!("{}: {detail}", self.hubs(&place.dotted()));
        Told { place: start, covers: false, of_a_part: false, fault: *fault, value, detail }
    }

    /// The place of the first thing in the block that the user's version has a name for.
    fn inside(&self, hub: &Place) -> Option<Place> {
        let said = hub.found_in(self.hub).and_then(Value::as_object);
        let could = schema::of(self.kind, self.kind.hub())
            .and_then(|schema| schema::at(schema, hub)?.get("properties")?.as_object());
        let keys = said.into_iter().chain(could).flat_map(Map::keys);
        let mut parts = keys.map(|key| hub.then(Step::Field(key.clone())));
        parts.find_map(|part| self.exactly(&part)).map(|found| found.place)
    }

    /// The nearest block around the place that the user's version has, if it is not everything.
    fn around(&self, hub: &Place) -> Option<Place> {
        let mut around = hub.parent();
        while let Some(place) = around.filter(|place| place.0.len() > 1) {
            if let Some(found) = self.exactly(&place) {
                return Some(found.place);
            }
            around = place.parent();
        }
        None
    }

    fn exactly(&self, hub: &Place) -> Option<Found> {
        let same = || Some(Found { place: hub.clone(), whole: true });
        let Some(part) = part_of(hub).filter(|_| hub.0.len() > 1) else { return same() };
        let Some((_, down)) = self.version.turns(part) else { return same() };
        let found = carried(self.hub, hub, part, down)?;
        let Some(Step::Key(key)) = hub.0.last() else { return Some(found) };
        // The user's own key: an entry of a map, or an item of a list.
        let parent = found.place.parent()?;
        let items = parent.found_in(self.written).and_then(Value::as_array);
        let index = items.and_then(|items| items.iter().position(|item| item == key));
        let step = index.map_or_else(|| Step::Key(key.clone()), Step::Index);
        Some(Found { place: parent.then(step), whole: true })
    }

    /// The sentence with each `spec.field` in backquotes named as the user's version names it.
    pub(super) fn words(&self, sentence: &str) -> String {
        let mut words = String::new();
        let mut rest = sentence;
        while let Some((before, place, after)) = quoted(rest) {
            words.push_str(before);
            let is_place = place.starts_with("spec.") && !place.contains(' ');
            if is_place {
                words.push_str(&self.named(place));
            } else {
                words.extend(["`", place, "`"]);
            }
            rest = after;
        }
        words + rest
    }

    fn named(&self, dotted: &str) -> String {
        let hub = Place::from(dotted);
        let found = self.exactly(&hub).map(|found| found.place);
        let found = found.or_else(|| self.around(&hub).filter(|place| !self.is_block(place)));
        found.map_or_else(|| self.hubs(dotted), |place| format!("`{}`", place.dotted()))
    }

    /// Whether the user's version has a block there: a sentence about a field in a block that has
    /// no such field must not sound as if it were about the block.
    fn is_block(&self, place: &Place) -> bool {
        let found =
            schema::of(self.kind, self.version).and_then(|schema| schema::at(schema, place));
        found.is_some_and(|schema| schema.get("properties").is_some())
    }

    fn hubs(&self, dotted: &str) -> String {
        format!("`{dotted}` of {}", self.kind.hub().name)
    }
}

/// What is before the first backquotes in a sentence, between them, and after them.
fn quoted(sentence: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = sentence.split_once('`')?;
    let (inside, after) = rest.split_once('`')?;
    Some((before, inside, after))
}

/// What another version of the kind calls `place`, which is a field of `theirs` and not of `ours`.
pub(super) fn translated(place: &Place, theirs: &Version, ours: &Version) -> Option<Place> {
    let part = part_of(place)?;
    let nothing = json!({});
    let hub = match theirs.turns(part) {
        Some((up, _)) => carried(&nothing, place, part, up)?.place,
        None => place.clone(),
    };
    match ours.turns(part) {
        Some((_, down)) => Some(carried(&nothing, &hub, part, down)?.place),
        None => Some(hub),
    }
}

fn part_of(place: &Place) -> Option<Part> {
    match place.0.first() {
        Some(Step::Field(key)) if key == Part::Spec.key() => Some(Part::Spec),
        Some(Step::Field(key)) if key == Part::Status.key() => Some(Part::Status),
        Some(_) | None => None,
    }
}

/// Where a mark at `place` comes out.
fn carried(object: &Value, place: &Place, part: Part, turn: Turn) -> Option<Found> {
    let mut marked = object.clone();
    place.put(&mut marked, MARK.into());
    search(&turn(marked.get(part.key())?), &Place::from(part.key()))
}

/// Where the mark is, or a text that was made with it.
fn search(value: &Value, at: &Place) -> Option<Found> {
    match value {
        Value::String(text) => {
            text.contains(MARK).then(|| Found { place: at.clone(), whole: text == MARK })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| search(item, &at.then(Step::Index(index)))),
        Value::Object(fields) => {
            fields.iter().find_map(|(key, field)| search(field, &at.then(Step::Field(key.clone()))))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
