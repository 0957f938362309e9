//! Preserved fields: what a version cannot express, kept in one annotation until the object is
//! converted back to the version that has the fields.
//!
//! Guarantees: a field is restored only if it does not contradict the object as it is, so an edit
//! in another version wins. Any client can write the annotation; a forged one cannot change a field
//! that the object has.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::diff::{Diff, apply, diff, leaves};
use super::spoke::Part;

/// Key of the annotation.
pub const PRESERVED_FIELDS_ANNOTATION: &str = "quorate.appdelivery.cncf.io/preserved-fields";
/// Maximum size of the annotation. The API server fails a conversion with larger annotations.
pub const MAX_BYTES: usize = 112 * 1024;
/// The limit of the API server for all annotations of an object, keys and values.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Deeper than any schema of this operator.
const MAX_POINTER_DEPTH: usize = 24;

/// Compares candidates by their conversion back to the source version.
pub(super) struct RoundTripCheck<'a, ToSource> {
    /// The part in the source version.
    pub(super) source: &'a Value,
    /// Converts a candidate back to the source version.
    pub(super) to_source: ToSource,
}

impl<ToSource: Fn(&Value) -> Value> RoundTripCheck<'_, ToSource> {
    /// A candidate with its conversion back.
    fn candidate(&self, converted: Value) -> Candidate {
        Candidate { round_trip: (self.to_source)(&converted), converted }
    }

    /// Whether every leaf of `one` converts back to the source value, or to the same value as that
    /// of `other`.
    fn no_worse(&self, one: &Candidate, other: &Candidate) -> bool {
        if one.round_trip == other.round_trip {
            return true;
        }
        let (source, one, other) =
            (leaves(self.source), leaves(&one.round_trip), leaves(&other.round_trip));
        let all = source.keys().chain(one.keys()).chain(other.keys());
        all.into_iter().all(|leaf| {
            let (source, one, other) = (source.get(leaf), one.get(leaf), other.get(leaf));
            one == source || one == other
        })
    }
}

/// A part in the target version, and its conversion back to the source version.
pub(super) struct Candidate {
    pub(super) converted: Value,
    pub(super) round_trip: Value,
}

/// More than any object of this operator needs. Each restored block costs a conversion, and a
/// client that can annotate an object must not be able to cause many with one annotation.
const MAX_ENTRIES: usize = 128;
/// More blocks than a spec or status has.
const MAX_BLOCKS: usize = 32;

/// Preserved fields by the version that has them.
#[derive(Debug, Default)]
pub(super) struct PreservedFields(BTreeMap<String, Diff>);

impl PreservedFields {
    /// Removes the annotation from the object and reads it. An invalid one counts as empty.
    pub(super) fn take_from(object: &mut Map<String, Value>) -> Self {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { return Self::default() };
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let Some(annotations) = annotations else { return Self::default() };
        let Some(taken) = annotations.remove(PRESERVED_FIELDS_ANNOTATION) else {
            return Self::default();
        };
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        taken.as_str().map(Self::read).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        if text.len() > MAX_BYTES {
            return Self::default();
        }
        let sections: BTreeMap<String, Map<String, Value>> =
            serde_json::from_str(text).unwrap_or_default();
        if sections.values().map(Map::len).fold(0, usize::saturating_add) > MAX_ENTRIES {
            return Self::default();
        }
        let section = |(version, section): (String, Map<String, Value>)| {
            (version, section.iter().filter_map(entry).collect())
        };
        Self(sections.into_iter().map(section).collect())
    }

    /// The part in `version`: `converted`, with all preserved fields that do not contradict the
    /// source.
    pub(super) fn restore(
        &mut self,
        version: &str,
        part: Part,
        converted: Value,
        check: &RoundTripCheck<'_, impl Fn(&Value) -> Value>,
    ) -> Candidate {
        let entries = self.take(version, part);
        if entries.is_empty() {
            return check.candidate(converted);
        }
        let whole = check.candidate(with_entries(&converted, part, entries.iter()));
        if whole.round_trip == *check.source {
            return whole;
        }
        let mut restored = check.candidate(converted);
        if check.no_worse(&whole, &restored) {
            return whole;
        }
        // Block by block: half a block would be a setting that no user wrote.
        for block in blocks(entries).into_iter().take(MAX_BLOCKS) {
            let candidate = check.candidate(with_entries(&restored.converted, part, block.iter()));
            if check.no_worse(&candidate, &restored) {
                restored = candidate;
            }
        }
        restored
    }

    /// Removes the preserved fields of `version`.
    pub(super) fn remove_version(&mut self, version: &str) {
        self.0.remove(version);
    }

    /// Removes and returns the preserved fields of `version` in `part`.
    fn take(&mut self, version: &str, part: Part) -> Diff {
        let Some(section) = self.0.get_mut(version) else { return Diff::new() };
        let entries = section.extract_if(.., |pointer, _| part.contains(pointer)).collect();
        if section.is_empty() {
            self.0.remove(version);
        }
        entries
    }

    /// Preserves the fields of `source`, in `version`, that its round trip has lost.
    pub(super) fn preserve(
        &mut self,
        version: &str,
        part: Part,
        source: &Value,
        round_trip: &Value,
    ) {
        let lost = diff(source, round_trip, &format!("/{}", part.key()));
        if !lost.is_empty() {
            self.0.entry(version.to_owned()).or_default().extend(lost);
        }
    }

    /// Writes the annotation, if there are preserved fields.
    pub(super) fn write_to(mut self, object: &mut Map<String, Value>) {
        if self.0.is_empty() {
            return;
        }
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if !metadata.is_object() {
            *metadata = json!({});
        }
        let Some(metadata) = metadata.as_object_mut() else { return };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        // The API server rejects annotations of any other type.
        if annotations.is_null() {
            *annotations = json!({});
        }
        let Some(annotations) = annotations.as_object_mut() else { return };
        if let Some(text) = self.encode(available_bytes(annotations)) {
            annotations.insert(PRESERVED_FIELDS_ANNOTATION.to_owned(), text.into());
        }
    }

    /// The value of the annotation in at most `max_bytes`. If not all entries fit, those of the
    /// status are dropped before those of the spec, because the operator observes them again, and
    /// the longest first.
    fn encode(&mut self, max_bytes: usize) -> Option<String> {
        let mut longest_last: Vec<(bool, usize, String, String)> = Vec::new();
        for (version, section) in &self.0 {
            for (pointer, value) in section {
                let is_status = Part::Status.contains(pointer);
                let length = value.as_ref().map_or(0, |value| value.to_string().len());
                longest_last.push((is_status, length, version.clone(), pointer.clone()));
            }
        }
        longest_last.sort();
        loop {
            let text = json!(self.0.iter().map(encode_section).collect::<Map<_, _>>()).to_string();
            if text.len() <= max_bytes {
                return (!self.0.is_empty()).then_some(text);
            }
            let (_, _, version, pointer) = longest_last.pop()?;
            let section = self.0.get_mut(&version)?;
            section.remove(&pointer);
            if section.is_empty() {
                self.0.remove(&version);
            }
        }
    }
}

/// Decodes an entry, if it is one that `encode_section` could have written: a list with the value,
/// or an empty list for a missing key.
fn entry((pointer, value): (&String, &Value)) -> Option<(String, Option<Value>)> {
    let steps = pointer.split('/').count();
    let inside = Part::ALL.iter().any(|part| part.contains(pointer));
    if !pointer.starts_with('/') || !inside || !(3..=MAX_POINTER_DEPTH).contains(&steps) {
        return None;
    }
    match value.as_array()?.as_slice() {
        [] => Some((pointer.clone(), None)),
        [value] => Some((pointer.clone(), Some(value.clone()))),
        [_, ..] => None,
    }
}

fn encode_section((version, section): (&String, &Diff)) -> (String, Value) {
    let entry = |(pointer, value): (&String, &Option<Value>)| {
        (pointer.clone(), Value::Array(value.iter().cloned().collect()))
    };
    (version.clone(), Value::Object(section.iter().map(entry).collect()))
}

/// The entries grouped by block, such as `/spec/tls/client`.
fn blocks(entries: Diff) -> Vec<Diff> {
    let mut blocks: BTreeMap<String, Diff> = BTreeMap::new();
    for (pointer, value) in entries {
        let block = pointer.splitn(5, '/').take(4).collect::<Vec<_>>().join("/");
        blocks.entry(block).or_default().insert(pointer, value);
    }
    blocks.into_values().collect()
}

/// The part with these entries applied.
fn with_entries<'a>(
    converted: &Value,
    part: Part,
    entries: impl Iterator<Item = (&'a String, &'a Option<Value>)>,
) -> Value {
    let mut object = json!({ part.key(): converted });
    for (pointer, value) in entries {
        apply(&mut object, pointer, value.as_ref());
    }
    object.get_mut(part.key()).map(Value::take).unwrap_or_default()
}

/// Bytes that the other annotations leave for this one.
fn available_bytes(annotations: &Map<String, Value>) -> usize {
    let length = |(key, value): (&String, &Value)| {
        key.len().saturating_add(value.as_str().map_or(0, str::len))
    };
    let others: usize = annotations.iter().map(length).fold(0, usize::saturating_add);
    MAX_ANNOTATIONS_BYTES
        .saturating_sub(others)
        .saturating_sub(PRESERVED_FIELDS_ANNOTATION.len())
        .min(MAX_BYTES)
}
