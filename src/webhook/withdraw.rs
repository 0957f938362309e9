//! What an applier no longer says goes, in whichever version the others speak.
//! Comes in: an object before and after a server-side apply, in the hub's version, and who applied.
//! Goes out: the spec without what they withdrew. May touch: conversion, `owners`.
//!
//! The apiserver does this by itself while all speak one version. When one of the others speaks an
//! older one, it prunes the object in that version, too, where everything that the version cannot say
//! is in one annotation: the annotation stays, and what was withdrawn comes back with it. Who owns
//! what is right nevertheless, and by that the rest is done here.
//!
//! A request does not tell that it is a server-side apply, and any update may rewrite the list of
//! owners. So whatever an apply cannot have done to that list means that nothing was withdrawn: to
//! leave a field is a nuisance, to take one that nobody gave up is a loss.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::convert::convert;
use crate::api::kinds::Kind;
use crate::api::owners::{Fields, Owner, Path, owners, take_away, value_at};

const SPEC: &str = "spec";

/// The spec without what the applier withdrew; nothing if there is nothing to take away. A field is
/// withdrawn if the applier owned it, nobody does now, and it is still what it was.
pub(super) fn without_withdrawn(
    kind: &'static Kind,
    old: &Value,
    new: &Value,
    applier: &str,
) -> Option<Value> {
    let (before, after) = (owners(old)?, owners(new)?);
    let mine = before.of_spec().find(|owner| owner.is_applier(applier))?;
    if !after.come_by_apply(&before, applier) || !after.speak_another_than(mine.api_version) {
        return None;
    }
    // Who speaks the version in which the applier owned the fields, and who another.
    let (alike, others): (Vec<_>, Vec<_>) =
        after.of_spec().partition(|owner| owner.api_version == mine.api_version);
    let is_owned = |path: &[&str]| alike.iter().any(|owner| owner.fields.touch(path));
    let mut paths = mine.fields.paths();
    paths.retain(|path| !is_owned(path));
    if paths.is_empty() {
        return None;
    }
    let (old, new) = (bare(old), bare(new));
    let was = convert(old, mine.api_version).ok()?;
    let is = convert(new.clone(), mine.api_version).ok()?;
    paths.retain(|path| {
        let at = |object: &Value| object.get(SPEC).and_then(|it| value_at(it, path).cloned());
        at(&is).is_some() && at(&is) == at(&was)
    });
    if paths.is_empty() {
        return None;
    }
    let others = Listener::all(&others, &new)?;
    Withdrawal { kind, is, is_owned: &is_owned, others }.of(paths)
}

/// All of an object that matters here; the rest would only be copied from version to version.
fn bare(object: &Value) -> Value {
    let mut bare = Map::new();
    for key in ["apiVersion", "kind", SPEC] {
        bare.extend(object.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    // What is kept for another version.
    let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    bare.insert(
        "metadata".to_owned(),
        Value::Object(Map::from_iter([("annotations".to_owned(), annotations)])),
    );
    Value::Object(bare)
}

/// Those who speak another version than the applier did, all with the same one.
struct Listener<'a> {
    api_version: &'a str,
    fields: Vec<Fields<'a>>,
    /// The object as they know it.
    knows: Value,
}

impl<'a> Listener<'a> {
    fn all(owners: &[Owner<'a>], new: &Value) -> Option<Vec<Self>> {
        let mut by_version: BTreeMap<&str, Vec<Fields<'a>>> = BTreeMap::new();
        for owner in owners {
            by_version.entry(owner.api_version).or_default().push(owner.fields);
        }
        let listener = |(api_version, fields)| {
            let knows = convert(new.clone(), api_version).ok()?;
            Some(Self { api_version, fields, knows })
        };
        by_version.into_iter().map(listener).collect()
    }

    /// Whether all that they own is in this object as they know it.
    fn notices_nothing(&self, without: &Value) -> bool {
        let Ok(after) = convert(without.clone(), self.api_version) else { return false };
        let (Some(before), Some(after)) = (self.knows.get(SPEC), after.get(SPEC)) else {
            return false;
        };
        let mut paths = self.fields.iter().flat_map(|fields| fields.paths());
        paths.all(|path| value_at(before, &path) == value_at(after, &path))
    }
}

/// Taking fields away, and those who must not notice.
struct Withdrawal<'a> {
    kind: &'static Kind,
    /// The object in the version that the applier spoke.
    is: Value,
    /// Whether somebody who speaks it, too, owns a field.
    is_owned: &'a dyn Fn(&[&str]) -> bool,
    others: Vec<Listener<'a>>,
}

impl Withdrawal<'_> {
    /// The spec without as many of these fields as can go; those of one block together, because half
    /// a block would be a setting that nobody made.
    fn of(&self, paths: Vec<Path<'_>>) -> Option<Value> {
        let whole = self.without(&paths);
        if whole.is_some() {
            return whole;
        }
        let mut blocks: BTreeMap<&str, Vec<Path<'_>>> = BTreeMap::new();
        for path in paths {
            blocks.entry(path.first()?).or_default().push(path);
        }
        let (mut chosen, mut last) = (Vec::new(), None);
        for block in blocks.into_values() {
            let more = [chosen.clone(), block].concat();
            if let Some(without) = self.without(&more) {
                (chosen, last) = (more, Some(without));
            }
        }
        last
    }

    /// The spec without these fields, if nobody who speaks another version notices.
    fn without(&self, paths: &[Path<'_>]) -> Option<Value> {
        let mut there = self.is.clone();
        let spec = there.get_mut(SPEC)?;
        for path in paths {
            take_away(spec, path, self.is_owned);
        }
        let mut back = convert(there, &self.kind.api_version(self.kind.hub())).ok()?;
        let unnoticed = self.others.iter().all(|other| other.notices_nothing(&back));
        if unnoticed { Some(back.get_mut(SPEC)?.take()) } else { None }
    }
}

#[cfg(test)]
mod tests;
