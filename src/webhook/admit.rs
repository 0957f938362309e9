//! Admission: what an object is when it comes to be judged, and who judges it.
//! Comes in: an admission as it was read, and the time. Goes out: a ruling.
//! May touch: `review`, the kinds of `api`.
//! What is not known here is let through untouched: a webhook that blocks what it does not know
//! blocks a cluster.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod mutate;
mod validate;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::carry::Edit;
use super::review::answer::{Refusal, Ruling};
use super::review::{Admission, KindName, Operation, ResourceName, text_at, tree};
use super::withdraw::without_withdrawn;
use super::{protect, scale};
use crate::api::check::Facts;
use crate::api::check::release::Abilities;
use crate::api::convert::convert;
use crate::api::kinds::{self, Kind, Version};

/// The subresource with the number of replicas, and nothing else.
const SCALE: &str = "scale";

/// Fills in what is not said, and keeps what could not be said.
pub(crate) fn mutate(asked: &Admission<'_>, now: Timestamp) -> Ruling {
    let ruling = match (asked.operation, asked.sub_resource.as_str()) {
        (Operation::Update, SCALE) => scaled(asked, now).map(Ruling::without_warnings),
        (Operation::Create | Operation::Update, "") => match known(&asked.kind) {
            Some((kind, version)) => {
                Case::read(asked, kind, version).and_then(|case| mutate::ruling(case, now))
            }
            None => Ok(Ruling::UNTOUCHED),
        },
        (Operation::Create | Operation::Update | Operation::Delete | Operation::Else, _) => {
            Ok(Ruling::UNTOUCHED)
        }
    };
    ruling.unwrap_or_else(Ruling::from)
}

/// Says whether an object may be, or may go.
pub(crate) fn validate(asked: &Admission<'_>, now: Timestamp) -> Ruling {
    let ruling = match (asked.operation, asked.sub_resource.as_str()) {
        (Operation::Update, SCALE) => scaled(asked, now),
        (Operation::Create | Operation::Update, "") => match known(&asked.kind) {
            Some((kind, version)) => {
                Case::read(asked, kind, version).and_then(|case| validate::ruling(&case, now))
            }
            None => Ok(Ruling::UNTOUCHED),
        },
        (Operation::Delete, "") => match known(&asked.kind) {
            Some((kind, _)) => protect::ruling(asked, kind),
            None => Ok(Ruling::UNTOUCHED),
        },
        (Operation::Create | Operation::Update | Operation::Delete | Operation::Else, _) => {
            Ok(Ruling::UNTOUCHED)
        }
    };
    ruling.unwrap_or_else(Ruling::from)
}

/// Judges a number of replicas that comes alone.
fn scaled(asked: &Admission<'_>, now: Timestamp) -> Result<Ruling, Refusal> {
    match stored_under(&asked.resource) {
        Some(kind) => scale::ruling(asked, kind, now),
        None => Ok(Ruling::UNTOUCHED),
    }
}

/// The kind and the version that a review names, if they are ours.
fn known(name: &KindName) -> Option<(&'static Kind, &'static Version)> {
    let KindName { group, version, kind } = name;
    let kind = kinds::named(kind)?;
    Some((kind, kind.version_of(&format!("{group}/{version}"))?))
}

/// The kind whose objects are stored under this name, if it is ours.
fn stored_under(name: &ResourceName) -> Option<&'static Kind> {
    let ResourceName { group, version: _, resource } = name;
    kinds::ALL.into_iter().find(|kind| kind.group == group && kind.plural() == *resource)
}

/// An object of ours that comes to be, or to be another.
struct Case<'a> {
    kind: &'static Kind,
    /// The version that the user wrote.
    written: &'static Version,
    /// Whether the object came in the hub's version, so that it can be patched.
    in_hub: bool,
    name: &'a str,
    /// By which name the sender owns what they write.
    manager: &'a str,
    /// The object as it shall be, in the hub's version.
    new: Value,
    /// The object as it was, in the hub's version.
    old: Option<Value>,
}

impl<'a> Case<'a> {
    fn read(
        asked: &'a Admission<'_>,
        kind: &'static Kind,
        came_in: &'static Version,
    ) -> Result<Self, Refusal> {
        let hub = kind.hub();
        let read = |text: Option<&RawValue>, field: &'static str| {
            let object = object(text, field)?;
            let expected = kind.api_version(came_in);
            if text_at(&object, "/apiVersion") != expected || text_at(&object, "/kind") != kind.name
            {
                let why = format!("is not the {} in {expected} that it announces", kind.name);
                return Err(Refusal::unreadable(field, &why));
            }
            convert(object, &kind.api_version(hub))
                .map_err(|why| Refusal::unreadable(field, &why.to_string()))
        };
        let is_update = asked.operation == Operation::Update;
        let old = is_update.then(|| read(asked.old_object, OLD_OBJECT)).transpose()?;
        let written = asked.request_kind.as_ref().and_then(known);
        let written = written.filter(|(other, _)| other.name == kind.name);
        Ok(Self {
            kind,
            written: written.map_or(came_in, |(_, version)| version),
            in_hub: came_in.name == hub.name,
            name: &asked.name,
            manager: &asked.options.field_manager,
            new: read(asked.object, OBJECT)?,
            old,
        })
    }

    /// The spec without what its applier withdrew, if anything came back that should not.
    fn without_withdrawn(&self) -> Option<Value> {
        without_withdrawn(self.kind, self.old.as_ref()?, &self.new, self.manager)
    }

    /// What the checks need to know.
    fn facts(&self, now: Timestamp) -> Facts<'static> {
        Facts { now, can: Abilities::THIS_RELEASE, written_in: self.written.name }
    }

    /// The edit, if it was written in a version that cannot say all of the object.
    fn edit(&self) -> Option<Edit<'_>> {
        Edit::through(self.written, self.kind, self.old.as_ref()?)
    }

    /// Whether the object is on its way out. Only the object that is stored can tell: the request
    /// could claim it, and walk past every check.
    fn is_being_deleted(&self) -> bool {
        let stamp = self.old.as_ref().and_then(|old| old.pointer("/metadata/deletionTimestamp"));
        stamp.is_some_and(|stamp| !stamp.is_null())
    }

    /// Whether the spec of `object` is what it was.
    fn is_unchanged(&self, object: &Value) -> bool {
        self.old.as_ref().is_some_and(|old| same(old.get(SPEC), object.get(SPEC)))
    }

    /// What the object is called, or what its name will begin with.
    fn called(&self) -> &str {
        let names = [self.name, text_at(&self.new, "/metadata/name")];
        let given = names.into_iter().find(|name| !name.is_empty());
        given.unwrap_or_else(|| text_at(&self.new, "/metadata/generateName"))
    }
}

const SPEC: &str = "spec";
const STATUS: &str = "status";
/// The field with the object as it shall be.
pub(super) const OBJECT: &str = "object";
/// The field with the object as it was.
pub(super) const OLD_OBJECT: &str = "oldObject";

/// An object of a review, as a tree.
pub(super) fn object(text: Option<&RawValue>, field: &'static str) -> Result<Value, Refusal> {
    let text = text.ok_or_else(|| Refusal::unreadable(field, "is missing"))?;
    tree(text).map_err(|why| Refusal::too_much(field, &why))
}

/// Whether two values say the same. A null says nothing: the apiserver drops it.
fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (said(one), said(other)) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let keys = one.keys().chain(other.keys());
            keys.into_iter().all(|key| same(one.get(key), other.get(key)))
        }
        (one, other) => one == other,
    }
}

fn said(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests;
