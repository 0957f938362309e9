//! Translates field paths and messages from the hub to the request version. There is no table to
//! maintain: a marker is set at the path in the hub, the object is converted, and the marker is
//! searched in the result.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value, json};

use super::path::{FieldPath, Segment};
use super::result::Located;
use super::{ErrorType, Finding, schema};
use crate::api::convert::{ConvertFn, Part};
use crate::api::kinds::{Kind, Version};

/// A string that no user writes. It is invalid in every schema, so conversion passes it on
/// unchanged.
const MARKER: &str = "\u{1}mark\u{1}";

/// Translates to the version of a request, given the object in both versions.
pub(super) struct PathTranslator<'a> {
    pub(super) kind: &'a Kind,
    pub(super) version: &'static Version,
    pub(super) hub: &'a Value,
    pub(super) written: &'a Value,
}

/// Where the marker was found.
struct Found {
    path: FieldPath,
    /// Whether it is the whole value, and not a part of a string such as a URL.
    whole: bool,
}

impl PathTranslator<'_> {
    /// A finding in the request version.
    pub(super) fn in_request_version(&self, finding: &Finding) -> Located {
        let Finding { path, error_type, detail } = finding.clone();
        let value = path.find_in(self.written).cloned();
        Located { path, covers_value: true, part_of_value: false, error_type, value, detail }
    }

    /// Translates a finding of the hub to the request version.
    pub(super) fn translate(&self, finding: &Finding) -> Located {
        let detail = self.message(&finding.detail);
        let located = |path: FieldPath, detail: String| {
            self.in_request_version(&Finding { path, error_type: finding.error_type, detail })
        };
        let hub = &finding.path;
        match (self.exactly(hub), hub.0.last()) {
            (Some(Found { path, whole: false }), Some(Segment::Field(part))) => {
                let detail = match finding.error_type {
                    ErrorType::Invalid | ErrorType::Unsupported => format!("the {part} {detail}"),
                    ErrorType::Required | ErrorType::Forbidden => detail,
                };
                Located { part_of_value: true, ..located(path, detail) }
            }
            (Some(Found { path, whole: _ }), _) => located(path, detail),
            (None, _) => match self.first_child(hub).or_else(|| self.nearest_parent(hub)) {
                Some(path) => located(path, detail),
                None => self.hub_only(finding, &detail),
            },
        }
    }

    /// A finding about a field that only the hub has: it is reported for the whole object.
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

    /// The first field of an object that the request version has.
    fn first_child(&self, hub: &FieldPath) -> Option<FieldPath> {
        let set = hub.find_in(self.hub).and_then(Value::as_object);
        let known = schema::schema_of(self.kind, self.kind.hub())
            .and_then(|schema| schema::at(schema, hub)?.get("properties")?.as_object());
        let keys = set.into_iter().chain(known).flat_map(Map::keys);
        let mut parts = keys.map(|key| hub.child(Segment::Field(key.clone())));
        parts.find_map(|part| self.exactly(&part)).map(|found| found.path)
    }

    /// The nearest parent that the request version has, except for the whole spec.
    fn nearest_parent(&self, hub: &FieldPath) -> Option<FieldPath> {
        let mut parent = hub.parent();
        while let Some(path) = parent.filter(|path| path.0.len() > 1) {
            if let Some(found) = self.exactly(&path) {
                return Some(found.path);
            }
            parent = path.parent();
        }
        None
    }

    fn exactly(&self, hub: &FieldPath) -> Option<Found> {
        let same = || Some(Found { path: hub.clone(), whole: true });
        let Some(part) = part_of(hub).filter(|_| hub.0.len() > 1) else { return same() };
        let Some((_, from_hub)) = self.version.conversions(part) else { return same() };
        let found = convert_marked(self.hub, hub, part, from_hub)?;
        let Some(Segment::Key(key)) = hub.0.last() else { return Some(found) };
        // A key that the user chose: an entry of a map, or an item of a list.
        let parent = found.path.parent()?;
        let items = parent.find_in(self.written).and_then(Value::as_array);
        let index = items.and_then(|items| items.iter().position(|item| item == key));
        let segment = index.map_or_else(|| Segment::Key(key.clone()), Segment::Index);
        Some(Found { path: parent.child(segment), whole: true })
    }

    /// Translates every `spec.field` in backquotes in a message to the request version.
    pub(super) fn message(&self, message: &str) -> String {
        let mut translated = String::new();
        let mut rest = message;
        while let Some((before, path, after)) = quoted(rest) {
            translated.push_str(before);
            let is_path = path.starts_with("spec.") && !path.contains(' ');
            if is_path {
                translated.push_str(&self.quoted_path(path));
            } else {
                translated.extend(["`", path, "`"]);
            }
            rest = after;
        }
        translated + rest
    }

    fn quoted_path(&self, dotted: &str) -> String {
        let hub = FieldPath::from(dotted);
        let found = self.exactly(&hub).map(|found| found.path);
        let found =
            found.or_else(|| self.nearest_parent(&hub).filter(|path| !self.is_object(path)));
        found.map_or_else(|| self.in_hub(dotted), |path| format!("`{}`", path.to_dotted()))
    }

    /// Whether the request version has an object at the path: a message about a field that the
    /// object does not have must not read as if it were about the object.
    fn is_object(&self, path: &FieldPath) -> bool {
        let found =
            schema::schema_of(self.kind, self.version).and_then(|schema| schema::at(schema, path));
        found.is_some_and(|schema| schema.get("properties").is_some())
    }

    fn in_hub(&self, dotted: &str) -> String {
        format!("`{dotted}` of {}", self.kind.hub().name)
    }
}

/// Splits a message at its first backquotes: before, between and after them.
fn quoted(message: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = message.split_once('`')?;
    let (between, after) = rest.split_once('`')?;
    Some((before, between, after))
}

/// The path in version `ours` of a field of version `theirs`.
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

/// Sets the marker at `path`, converts, and returns where the marker is.
fn convert_marked(
    object: &Value,
    path: &FieldPath,
    part: Part,
    convert: ConvertFn,
) -> Option<Found> {
    let mut marked = object.clone();
    path.put(&mut marked, MARKER.into());
    search(&convert(marked.get(part.key())?), &FieldPath::from(part.key()))
}

/// Searches for the marker, also as a part of a string.
fn search(value: &Value, at: &FieldPath) -> Option<Found> {
    match value {
        Value::String(text) => {
            text.contains(MARKER).then(|| Found { path: at.clone(), whole: text == MARKER })
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
