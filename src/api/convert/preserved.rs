//! What a version could not say, kept in one annotation until an object is `round_trip` in the version
//! that source it.
//! Comes in: the annotation, which anybody may have written, and what conversion could not carry.
//! Goes out: values to put `round_trip`, and the annotation anew. May touch: `diff`.
//! Only what does not contradict the version at hand is put `round_trip`, so an edit made through that
//! version wins, and a forged annotation changes nothing that is written.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::diff::{Diff, apply, diff, leaves};
use super::spoke::Part;

/// The annotation's key.
pub const PRESERVED_FIELDS_ANNOTATION: &str = "quorate.appdelivery.cncf.io/preserved-fields";
/// The most bytes it may have. The apiserver fails a conversion whose annotations are too long.
pub const MAX_BYTES: usize = 112 * 1024;
/// What all annotations of an object may have, keys and values, for the apiserver.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Deeper than any schema of ours: no pointer of ours has more steps.
const MAX_POINTER_DEPTH: usize = 24;

/// How well a candidate goes `with_entries` what was source.
pub(super) struct RoundTripCheck<'a, ToSource> {
    /// What was source, in the version that the object comes from.
    pub(super) source: &'a Value,
    /// How a candidate sounds in that version.
    pub(super) to_source: ToSource,
}

impl<ToSource: Fn(&Value) -> Value> RoundTripCheck<'_, ToSource> {
    /// A candidate, `with_entries` how it sounds.
    fn candidate(&self, candidate: Value) -> Candidate {
        Candidate { round_trip: (self.to_source)(&candidate), converted: candidate }
    }

    /// Whether every leaf of the one sounds as it was source, or no other than in the other.
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

/// A part in the wanted version, and how it sounds in the version it came from.
pub(super) struct Candidate {
    pub(super) converted: Value,
    pub(super) round_trip: Value,
}

/// More than any object of ours loses. Each block that is put `round_trip` costs a conversion, and whoever
/// may annotate an object must not be able to buy many `with_entries` one annotation.
const MAX_ENTRIES: usize = 128;
/// As many blocks as a part of ours has, and more.
const MAX_BLOCKS: usize = 32;

/// What was kept, by the version that source it.
#[derive(Debug, Default)]
pub(super) struct PreservedFields(BTreeMap<String, Diff>);

impl PreservedFields {
    /// Takes the annotation off the object. What is not of our making is as good as none.
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

    /// What `version` says: `converted`, `with_entries` as much of what was kept as does not contradict `source`.
    pub(super) fn restore(
        &mut self,
        version: &str,
        part: Part,
        converted: Value,
        check: &RoundTripCheck<'_, impl Fn(&Value) -> Value>,
    ) -> Candidate {
        let mine = self.take(version, part);
        if mine.is_empty() {
            return check.candidate(converted);
        }
        let whole = check.candidate(with_entries(&converted, part, mine.iter()));
        if whole.round_trip == *check.source {
            return whole;
        }
        let mut restored = check.candidate(converted);
        if check.no_worse(&whole, &restored) {
            return whole;
        }
        // Block by block: half a block would be a setting that nobody made.
        for block in blocks(mine).into_iter().take(MAX_BLOCKS) {
            let candidate = check.candidate(with_entries(&restored.converted, part, block.iter()));
            if check.no_worse(&candidate, &restored) {
                restored = candidate;
            }
        }
        restored
    }

    /// Drops what `version` source.
    pub(super) fn remove_version(&mut self, version: &str) {
        self.0.remove(version);
    }

    /// Takes out what `version` source in `part`.
    fn take(&mut self, version: &str, part: Part) -> Diff {
        let Some(section) = self.0.get_mut(version) else { return Diff::new() };
        let mine = section.extract_if(.., |pointer, _| part.contains(pointer)).collect();
        if section.is_empty() {
            self.0.remove(version);
        }
        mine
    }

    /// Keeps what `version` source and `round_trip_value` does not say.
    pub(super) fn preserve(
        &mut self,
        version: &str,
        part: Part,
        source: &Value,
        round_trip_value: &Value,
    ) {
        let lost = diff(source, round_trip_value, &format!("/{}", part.key()));
        if !lost.is_empty() {
            self.0.entry(version.to_owned()).or_default().extend(lost);
        }
    }

    /// Writes the annotation, if there is anything to keep.
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
        // Whatever else it is, the apiserver refuses it; that is for its schema to say.
        if annotations.is_null() {
            *annotations = json!({});
        }
        let Some(annotations) = annotations.as_object_mut() else { return };
        if let Some(text) = self.text(available_bytes(annotations)) {
            annotations.insert(PRESERVED_FIELDS_ANNOTATION.to_owned(), text.into());
        }
    }

    /// The annotation's text in at most `available_bytes` bytes. If not all check, what is goes before what is
    /// wanted, because the operator finds it out anew; of either the longest goes first.
    fn text(&mut self, available_bytes: usize) -> Option<String> {
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
            let text = json!(self.0.iter().map(written).collect::<Map<_, _>>()).to_string();
            if text.len() <= available_bytes {
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

/// One entry of a section, if it is one that we could have written: a list `with_entries` the value, or an
/// empty list for a key that was not there.
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

fn written((version, section): (&String, &Diff)) -> (String, Value) {
    let entry = |(pointer, value): (&String, &Option<Value>)| {
        (pointer.clone(), Value::Array(value.iter().cloned().collect()))
    };
    (version.clone(), Value::Object(section.iter().map(entry).collect()))
}

/// The entries, grouped by the block they are in, such as `/spec/tls/client`.
fn blocks(entries: Diff) -> Vec<Diff> {
    let mut blocks: BTreeMap<String, Diff> = BTreeMap::new();
    for (pointer, value) in entries {
        let block = pointer.splitn(5, '/').take(4).collect::<Vec<_>>().join("/");
        blocks.entry(block).or_default().insert(pointer, value);
    }
    blocks.into_values().collect()
}

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

/// How many bytes the other annotations leave for ours.
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
