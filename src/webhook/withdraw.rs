//! What an applier no longer says goes, in whichever version the others speak.
//! Comes in: an object before and after a server-side apply, in the hub's version, and who applied.
//! Goes out: the object without what they withdrew. May touch: conversion, `owners`.
//!
//! The apiserver does this by itself while all speak one version. When one of the others speaks an
//! older one, it prunes the object in that version, too, where everything that the version cannot say
//! is in one annotation: the annotation stays, and what was withdrawn comes back with it. Who owns
//! what is right nevertheless, and by that the rest is done here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::owners::{Owner, Path, owners, take_away, value_at};
use crate::api::convert::convert;
use crate::api::kinds::Kind;

const SPEC: &str = "spec";
/// How many fields are tried one by one. Each costs conversions, and whoever may write an object's
/// owners must not be able to buy many with one request.
const MOST_ALONE: usize = 64;

/// The object without what the applier withdrew; nothing if there is nothing to take away. A field is
/// withdrawn if the applier owned it, nobody does now, and it is still what it was.
pub(super) fn without_withdrawn(
    kind: &'static Kind,
    old: &Value,
    new: &Value,
    applier: &str,
) -> Option<Value> {
    let (before, after) = (owners(old)?, owners(new)?);
    let mine = before.iter().find(|owner| owner.is_applier(applier))?;
    if !has_applied(applier, &before, &after) {
        return None;
    }
    let (alike, others): (Vec<_>, Vec<_>) =
        after.into_iter().partition(|owner| owner.api_version == mine.api_version);
    let is_owned = |path: &[&str]| alike.iter().any(|owner| owner.fields.touch(path));
    let mut paths = mine.fields.paths();
    paths.retain(|path| !is_owned(path));
    if paths.is_empty() {
        return None;
    }
    let was = convert(old.clone(), mine.api_version).ok()?;
    let is = convert(new.clone(), mine.api_version).ok()?;
    paths.retain(|path| {
        let at = |object: &Value| object.get(SPEC).and_then(|it| value_at(it, path).cloned());
        at(&is).is_some() && at(&is) == at(&was)
    });
    Withdrawal { kind, new, is, is_owned: &is_owned, others: heard(others, new)? }.of(paths)
}

/// Whether the list of owners can be that of a server-side apply. Any update may rewrite it, and a
/// request does not tell. Who is not in it any more has withdrawn everything if all others are as they
/// were; else the list was only made anew.
fn has_applied(applier: &str, before: &[Owner<'_>], after: &[Owner<'_>]) -> bool {
    let is_mine = |owner: &&Owner<'_>| owner.is_applier(applier);
    let but_mine = before.iter().filter(|owner| !is_mine(owner));
    after.iter().any(|owner| is_mine(&owner)) || (!after.is_empty() && but_mine.eq(after))
}

/// Those who speak another version, with the object in it.
fn heard<'a>(others: Vec<Owner<'a>>, new: &Value) -> Option<Vec<(Owner<'a>, Value)>> {
    let heard = |owner: Owner<'a>| Some((owner, convert(new.clone(), owner.api_version).ok()?));
    others.into_iter().map(heard).collect()
}

/// Taking fields away, and those who must not notice.
struct Withdrawal<'a> {
    kind: &'static Kind,
    new: &'a Value,
    /// The object in the version that the applier spoke.
    is: Value,
    /// Whether somebody who speaks it, too, owns a field.
    is_owned: &'a dyn Fn(&[&str]) -> bool,
    /// Those who speak another version, and the object in it.
    others: Vec<(Owner<'a>, Value)>,
}

impl Withdrawal<'_> {
    /// The object without as many of these fields as can go.
    fn of(&self, paths: Vec<Path<'_>>) -> Option<Value> {
        if paths.is_empty() {
            return None;
        }
        let whole = self.without(&paths);
        if whole.is_some() {
            return whole;
        }
        let (mut chosen, mut last) = (Vec::new(), None);
        for path in paths.into_iter().take(MOST_ALONE) {
            chosen.push(path);
            match self.without(&chosen) {
                Some(without) => last = Some(without),
                None => drop(chosen.pop()),
            }
        }
        last
    }

    /// The object without these fields, if nobody who speaks another version notices.
    fn without(&self, paths: &[Path<'_>]) -> Option<Value> {
        let mut there = self.is.clone();
        let spec = there.get_mut(SPEC)?;
        for path in paths {
            take_away(spec, path, self.is_owned);
        }
        let mut back = convert(there, &self.kind.api_version(self.kind.hub())).ok()?;
        let mut without = self.new.clone();
        *without.get_mut(SPEC)? = back.get_mut(SPEC)?.take();
        self.others.iter().all(|other| notices_nothing(other, &without)).then_some(without)
    }
}

fn notices_nothing((owner, before): &(Owner<'_>, Value), without: &Value) -> bool {
    let Ok(after) = convert(without.clone(), owner.api_version) else { return false };
    let (Some(before), Some(after)) = (before.get(SPEC), after.get(SPEC)) else { return false };
    owner.fields.paths().iter().all(|path| value_at(before, path) == value_at(after, path))
}

#[cfg(test)]
mod tests;
