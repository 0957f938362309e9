//! Where a path of the hub is in the version that the user wrote.
//! Comes in: findings with places in v1. Goes out: the same in the words of the other version.
//! May touch: conversion. There is no table to keep in step: a mark is laid at the path in v1, and
//! conversion shows where it comes out.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value, json};

use super::path::{FieldPath, Segment};
use super::result::Located;
use super::{ErrorType, Finding, schema};
use crate::api::convert::{ConvertFn, Part};
use crate::api::kinds::{Kind, Version};

/// What no user writes. It fits no schema, so conversion carries it as it is.
const MARK: &str = "\u{1}mark\u{1}";

/// The version that a user wrote, and the object in the hub and as it was written.
pub(super) struct PathTranslator<'a> {
    pub(super) kind: &'a Kind,
    pub(super) version: &'static Version,
    pub(super) hub: &'a Value,
    pub(super) written: &'a Value,
}

/// Where the mark came out.
struct Found {
    path: FieldPath,
    /// Whether it is all that stands there, and not a part of a text such as a URL.
    whole: bool,
}

impl PathTranslator<'_> {
    /// A finding of the user's own version.
    pub(super) fn in_request_version(&self, finding: &Finding) -> Located {
        let Finding { path, error_type, detail } = finding.clone();
        let value = path.find_in(self.written).cloned();
        Located { path, covers_value: true, part_of_value: false, error_type, value, detail }
    }

    /// A finding of the hub, in the words of the user's version.
    pub(super) fn translate(&self, finding: &Finding) -> Located {
        let detail = self.words(&finding.detail);
        let said = |path: FieldPath, detail: String| {
            self.in_request_version(&Finding { path, error_type: finding.error_type, detail })
        };
        let hub = &finding.path;
        match (self.exactly(hub), hub.0.last()) {
            (Some(Found { path, whole: false }), Some(Segment::Field(part))) => {
                let detail = match finding.error_type {
                    ErrorType::Invalid | ErrorType::Unsupported => format!("the {part} {detail}"),
                    ErrorType::Required | ErrorType::Forbidden => detail,
                };
                Located { part_of_value: true, ..said(path, detail) }
            }
            (Some(Found { path, whole: _ }), _) => said(path, detail),
            (None, _) => match self.first_child(hub).or_else(|| self.nearest_parent(hub)) {
                Some(path) => said(path, detail),
                None => self.hub_only(finding, &detail),
            },
        }
    }

    /// A finding that only the hub has a name for: it is about the object as a whole.
    fn hub_only(&self, finding: &Finding, detail: &str) -> Located {
        let Finding { path, error_type, detail: _ } = finding;
        let start = FieldPath(path.0.iter().take(1).cloned().collect());
        let value = path.find_in(self.hub).cloned();
        let detail = format!("{}: {detail}", self.in_hub(&path.to_dotted()));
        Located {
            path: start,
            covers_value: false,
            part_of_value: false,
            error_type: *error_type,
            value,
            detail,
        }
    }

    /// The path of the first thing in the block that the user's version has a name for.
    fn first_child(&self, hub: &FieldPath) -> Option<FieldPath> {
        let said = hub.find_in(self.hub).and_then(Value::as_object);
        let could = schema::schema_of(self.kind, self.kind.hub())
            .and_then(|schema| schema::at(schema, hub)?.get("properties")?.as_object());
        let keys = said.into_iter().chain(could).flat_map(Map::keys);
        let mut parts = keys.map(|key| hub.child(Segment::Field(key.clone())));
        parts.find_map(|part| self.exactly(&part)).map(|found| found.path)
    }

    /// The nearest block `nearest_parent` the path that the user's version has, if it is not everything.
    fn nearest_parent(&self, hub: &FieldPath) -> Option<FieldPath> {
        let mut nearest_parent = hub.parent();
        while let Some(path) = nearest_parent.filter(|path| path.0.len() > 1) {
            if let Some(found) = self.exactly(&path) {
                return Some(found.path);
            }
            nearest_parent = path.parent();
        }
        None
    }

    fn exactly(&self, hub: &FieldPath) -> Option<Found> {
        let same = || Some(Found { path: hub.clone(), whole: true });
        let Some(part) = part_of(hub).filter(|_| hub.0.len() > 1) else { return same() };
        let Some((_, from_hub)) = self.version.conversions(part) else { return same() };
        let found = convert_marked(self.hub, hub, part, from_hub)?;
        let Some(Segment::Key(key)) = hub.0.last() else { return Some(found) };
        // The user's own key: an entry of a map, or an item of a list.
        let parent = found.path.parent()?;
        let items = parent.find_in(self.written).and_then(Value::as_array);
        let index = items.and_then(|items| items.iter().position(|item| item == key));
        let step = index.map_or_else(|| Segment::Key(key.clone()), Segment::Index);
        Some(Found { path: parent.child(step), whole: true })
    }

    /// The sentence with each `spec.field` in backquotes named as the user's version names it.
    pub(super) fn words(&self, sentence: &str) -> String {
        let mut words = String::new();
        let mut rest = sentence;
        while let Some((before, path, after)) = quoted(rest) {
            words.push_str(before);
            let is_place = path.starts_with("spec.") && !path.contains(' ');
            if is_place {
                words.push_str(&self.named(path));
            } else {
                words.extend(["`", path, "`"]);
            }
            rest = after;
        }
        words + rest
    }

    fn named(&self, dotted: &str) -> String {
        let hub = FieldPath::from(dotted);
        let found = self.exactly(&hub).map(|found| found.path);
        let found = found.or_else(|| self.nearest_parent(&hub).filter(|path| !self.is_block(path)));
        found.map_or_else(|| self.in_hub(dotted), |path| format!("`{}`", path.to_dotted()))
    }

    /// Whether the user's version has a block there: a sentence about a field in a block that has
    /// no such field must not sound as if it were about the block.
    fn is_block(&self, path: &FieldPath) -> bool {
        let found =
            schema::schema_of(self.kind, self.version).and_then(|schema| schema::at(schema, path));
        found.is_some_and(|schema| schema.get("properties").is_some())
    }

    fn in_hub(&self, dotted: &str) -> String {
        format!("`{dotted}` of {}", self.kind.hub().name)
    }
}

/// What is before the first backquotes in a sentence, between them, and after them.
fn quoted(sentence: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = sentence.split_once('`')?;
    let (first_child, after) = rest.split_once('`')?;
    Some((before, first_child, after))
}

/// What another version of the kind calls `path`, which is a field of `theirs` and not of `ours`.
pub(super) fn translate_between(
    path: &FieldPath,
    theirs: &Version,
    ours: &Version,
) -> Option<FieldPath> {
    let part = part_of(path)?;
    let nothing = json!({});
    let hub = match theirs.conversions(part) {
        Some((to_hub, _)) => convert_marked(&nothing, path, part, to_hub)?.path,
        None => path.clone(),
    };
    match ours.conversions(part) {
        Some((_, from_hub)) => Some(convert_marked(&nothing, &hub, part, from_hub)?.path),
        None => Some(hub),
    }
}

fn part_of(path: &FieldPath) -> Option<Part> {
    match path.0.first() {
        Some(Segment::Field(key)) if key == Part::Spec.key() => Some(Part::Spec),
        Some(Segment::Field(key)) if key == Part::Status.key() => Some(Part::Status),
        Some(_) | None => None,
    }
}

/// Where a mark at `path` comes out.
fn convert_marked(
    object: &Value,
    path: &FieldPath,
    part: Part,
    convert: ConvertFn,
) -> Option<Found> {
    let mut marked = object.clone();
    path.put(&mut marked, MARK.into());
    search(&convert(marked.get(part.key())?), &FieldPath::from(part.key()))
}

/// Where the mark is, or a text that was made with it.
fn search(value: &Value, at: &FieldPath) -> Option<Found> {
    match value {
        Value::String(text) => {
            text.contains(MARK).then(|| Found { path: at.clone(), whole: text == MARK })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| search(item, &at.child(Segment::Index(index)))),
        Value::Object(fields) => fields
            .iter()
            .find_map(|(key, field)| search(field, &at.child(Segment::Field(key.clone())))),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
