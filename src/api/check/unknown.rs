//! What to say about a field that a version does not have.
//! Comes in: the field's place. Goes out: a sentence with what was probably meant.
//! May touch: the other versions of the kind, `flags`, `spelling`. What is known for certain comes
//! first, then a guess, and last the fields that there are.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

use super::place::{Place, Step};
use super::tongue::{self, Tongue};
use super::{flags, schema};
use crate::api::kinds::{self, Kind, Version};
use crate::api::spelling;

/// An unknown field.
pub(super) struct Unknown<'a> {
    pub(super) kind: &'a Kind,
    pub(super) version: &'static Version,
    /// The block that it is in.
    pub(super) block: &'a Place,
    pub(super) key: &'a str,
    pub(super) value: &'a Value,
    /// The fields that the block has.
    pub(super) fields: &'a Map<String, Value>,
}

impl Unknown<'_> {
    /// The sentence.
    pub(super) fn words(&self) -> String {
        let certain = self.misplaced().or_else(|| self.flag()).or_else(|| self.elsewhere());
        let words = certain.unwrap_or_else(|| self.guess());
        format!("unknown field; {words}")
    }

    fn misplaced(&self) -> Option<String> {
        let words = match self.key {
            "status" if self.block.0.len() == 1 => {
                "the operator writes the status, beside the spec; leave it out"
            }
            "namespace" if self.fields.contains_key("name") => {
                "a reference never leaves the namespace of its object; leave it out"
            }
            _ => return None,
        };
        Some(words.to_owned())
    }

    fn flag(&self) -> Option<String> {
        let of_etcd = self.kind.name == kinds::ETCD_CLUSTER.name
            && matches!(self.block.dotted().as_str(), "spec" | "spec.options");
        let (hub, written) = (&Value::Null, &Value::Null);
        let tongue = Tongue { kind: self.kind, version: self.version, hub, written };
        flags::instead(self.key).filter(|_| of_etcd).map(|words| tongue.words(&words))
    }

    /// Whether another version of the kind has a field of that name there.
    fn elsewhere(&self) -> Option<String> {
        let place = self.block.then(Step::Field(self.key.to_owned()));
        let has = |version: &Version| schema::at(schema::of(self.kind, version)?, &place);
        let mut versions = self.kind.versions();
        let (theirs, field) = versions.find_map(|version| Some((version, has(version)?)))?;
        let (other, mine) = (theirs.name, self.version.name);
        let here = |place: &Place| tongue::translated(place, theirs, self.version);
        if let Some(here) = here(&place) {
            return Some(format!("{other} has it; in {mine} write `{}`", here.dotted()));
        }
        let said = self.value.as_object();
        let could = field.get("properties").and_then(Value::as_object);
        let mut parts = said.into_iter().chain(could).flat_map(Map::keys);
        if let Some(part) = parts.find_map(|part| here(&place.then(Step::Field(part.clone())))) {
            let part = part.dotted();
            return Some(format!(
                "{other} has it; {mine} has its parts elsewhere, such as `{part}`"
            ));
        }
        // Nobody is sent back to an older version.
        let mut newer = self.kind.versions().take_while(|version| version.name != mine);
        let newer = newer.any(|version| version.name == other);
        let api_version = self.kind.api_version(theirs);
        newer.then(|| format!("{other} has it: write `apiVersion: {api_version}`"))
    }

    fn guess(&self) -> String {
        let names: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        match spelling::did_you_mean(self.key, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known are {}", names.join(", ")),
        }
    }
}
