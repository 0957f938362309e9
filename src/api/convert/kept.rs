//! What a version could not say, kept in one annotation until an object is back in the version
//! that said it.
//! Comes in: the annotation, which anybody may have written, and what conversion could not carry.
//! Goes out: values to put back, and the annotation anew. May touch: `difference`.
//! Only what does not contradict the version at hand is put back, so an edit made through that
//! version wins, and a forged annotation changes nothing that is written.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::difference::{Difference, apply, difference, leaves};
use super::turn::Part;

/// The annotation's key.
pub const ANNOTATION: &str = "quorate.appdelivery.cncf.io/kept";
/// The most bytes it may have. The apiserver fails a conversion whose annotations are too long.
pub const MOST_BYTES: usize = 112 * 1024;
/// What all annotations of an object may have, keys and values, for the apiserver.
const MOST_OF_ALL: usize = 256 * 1024;
/// Deeper than any schema of ours: no pointer of ours has more steps.
const MOST_STEPS: usize = 24;

/// How well a candidate goes with what was said.
pub(super) struct Fits<'a, Back> {
    /// What was said, in the version that the object comes from.
    pub(super) said: &'a Value,
    /// How a candidate sounds in that version.
    pub(super) back: Back,
}

impl<Back: Fn(&Value) -> Value> Fits<'_, Back> {
    /// A candidate, with how it sounds.
    fn sounded(&self, candidate: Value) -> Sounded {
        Sounded { back: (self.back)(&candidate), heard: candidate }
    }

    /// Whether every leaf of the one sounds as it was said, or no other than in the other.
    fn no_worse(&self, one: &Sounded, other: &Sounded) -> bool {
        if one.back == other.back {
            return true;
        }
        let (said, one, other) = (leaves(self.said), leaves(&one.back), leaves(&other.back));
        let all = said.keys().chain(one.keys()).chain(other.keys());
        all.into_iter().all(|leaf| {
            let (said, one, other) = (said.get(leaf), one.get(leaf), other.get(leaf));
            one == said || one == other
        })
    }
}

/// A part in the wanted version, and how it sounds in the version it came from.
pub(super) struct Sounded {
    pub(super) heard: Value,
    pub(super) back: Value,
}

/// More than any object of ours loses. Each block that is put back costs a conversion, and whoever
/// may annotate an object must not be able to buy many with one annotation.
const MOST_ENTRIES: usize = 128;
/// As many blocks as a part of ours has, and more.
const MOST_BLOCKS: usize = 32;

/// What was kept, by the version that said it.
#[derive(Debug, Default)]
pub(super) struct Kept(BTreeMap<String, Difference>);

impl Kept {
    /// Takes the annotation off the object. What is not of our making is as good as none.
    pub(super) fn taken_from(object: &mut Map<String, Value>) -> Self {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { return Self::default() };
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let Some(annotations) = annotations else { return Self::default() };
        let Some(taken) = annotations.remove(ANNOTATION) else { return Self::default() };
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        taken.as_str().map(Self::read).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        if text.len() > MOST_BYTES {
            return Self::default();
        }
        let sections: BTreeMap<String, Map<String, Value>> =
            serde_json::from_str(text).unwrap_or_default();
        if sections.values().map(Map::len).fold(0, usize::saturating_add) > MOST_ENTRIES {
            return Self::default();
        }
        let section = |(version, section): (String, Map<String, Value>)| {
            (version, section.iter().filter_map(entry).collect())
        };
        Self(sections.into_iter().map(section).collect())
    }

    /// What `version` says: `heard`, with as much of what was kept as does not contradict `said`.
    pub(super) fn restore(
        &mut self,
        version: &str,
        part: Part,
        heard: Value,
        fits: &Fits<'_, impl Fn(&Value) -> Value>,
    ) -> Sounded {
        let mine = self.take(version, part);
        if mine.is_empty() {
            return fits.sounded(heard);
        }
        let whole = fits.sounded(with(&heard, part, mine.iter()));
        if whole.back == *fits.said {
            return whole;
        }
        let mut restored = fits.sounded(heard);
        if fits.no_worse(&whole, &restored) {
            return whole;
        }
        // Block by block: half a block would be a setting that nobody made.
        for block in blocks(mine).into_iter().take(MOST_BLOCKS) {
            let candidate = fits.sounded(with(&restored.heard, part, block.iter()));
            if fits.no_worse(&candidate, &restored) {
                restored = candidate;
            }
        }
        restored
    }

    /// Drops what `version` said.
    pub(super) fn forget(&mut self, version: &str) {
        self.0.remove(version);
    }

    /// Takes out what `version` said in `part`.
    fn take(&mut self, version: &str, part: Part) -> Difference {
        let Some(section) = self.0.get_mut(version) else { return Difference::new() };
        let mine = section.extract_if(.., |pointer, _| part.holds(pointer)).collect();
        if section.is_empty() {
            self.0.remove(version);
        }
        mine
    }

    /// Keeps what `version` said and `understood` does not say.
    pub(super) fn keep(&mut self, version: &str, part: Part, said: &Value, understood: &Value) {
        let lost = difference(said, understood, &format!("/{}", part.key()));
        if !lost.is_empty() {
            self.0.entry(version.to_owned()).or_default().extend(lost);
        }
    }

    /// Writes the annotation, if there is anything to keep.
    pub(super) fn put_into(mut self, object: &mut Map<String, Value>) {
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
        if let Some(text) = self.text(room(annotations)) {
            annotations.insert(ANNOTATION.to_owned(), text.into());
        }
    }

    /// The annotation's text in at most `room` bytes. If not all fits, what is goes before what is
    /// wanted, because the operator finds it out anew; of either the longest goes first.
    fn text(&mut self, room: usize) -> Option<String> {
        let mut longest_last: Vec<(bool, usize, String, String)> = Vec::new();
        for (version, section) in &self.0 {
            for (pointer, value) in section {
                let is_status = Part::Status.holds(pointer);
                let length = value.as_ref().map_or(0, |value| value.to_string().len());
                longest_last.push((is_status, length, version.clone(), pointer.clone()));
            }
        }
        longest_last.sort();
        loop {
            let text = json!(self.0.iter().map(written).collect::<Map<_, _>>()).to_string();
            if text.len() <= room {
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

/// One entry of a section, if it is one that we could have written: a list with the value, or an
/// empty list for a key that was not there.
fn entry((pointer, value): (&String, &Value)) -> Option<(String, Option<Value>)> {
    let steps = pointer.split('/').count();
    let inside = Part::ALL.iter().any(|part| part.holds(pointer));
    if !pointer.starts_with('/') || !inside || !(3..=MOST_STEPS).contains(&steps) {
        return None;
    }
    match value.as_array()?.as_slice() {
        [] => Some((pointer.clone(), None)),
        [value] => Some((pointer.clone(), Some(value.clone()))),
        [_, ..] => None,
    }
}

fn written((version, section): (&String, &Difference)) -> (String, Value) {
    let entry = |(pointer, value): (&String, &Option<Value>)| {
        (pointer.clone(), Value::Array(value.iter().cloned().collect()))
    };
    (version.clone(), Value::Object(section.iter().map(entry).collect()))
}

/// The entries, grouped by the block they are in, such as `/spec/tls/client`.
fn blocks(entries: Difference) -> Vec<Difference> {
    let mut blocks: BTreeMap<String, Difference> = BTreeMap::new();
    for (pointer, value) in entries {
        let block = pointer.splitn(5, '/').take(4).collect::<Vec<_>>().join("/");
        blocks.entry(block).or_default().insert(pointer, value);
    }
    blocks.into_values().collect()
}

fn with<'a>(
    heard: &Value,
    part: Part,
    entries: impl Iterator<Item = (&'a String, &'a Option<Value>)>,
) -> Value {
    let mut object = json!({ part.key(): heard });
    for (pointer, value) in entries {
        apply(&mut object, pointer, value.as_ref());
    }
    object.get_mut(part.key()).map(Value::take).unwrap_or_default()
}

/// How many bytes the other annotations leave for ours.
fn room(annotations: &Map<String, Value>) -> usize {
    let length = |(key, value): (&String, &Value)| {
        key.len().saturating_add(value.as_str().map_or(0, str::len))
    };
    let others: usize = annotations.iter().map(length).fold(0, usize::saturating_add);
    MOST_OF_ALL.saturating_sub(others).saturating_sub(ANNOTATION.len()).min(MOST_BYTES)
}
