//! What to say about a field that a version does not have.
//! Comes in: the field's path. Goes out: a sentence with what was probably meant.
//! May touch: the other versions of the kind, `etcd_flags`, `spelling`. What is known for certain comes
//! first, then a suggestion, and last the fields that there are.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

use super::path::{FieldPath, Segment};
use super::translate::{self, PathTranslator};
use super::{etcd_flags, schema};
use crate::api::kinds::{self, Kind, Version};
use crate::api::suggest;

/// An unknown field.
pub(super) struct UnknownField<'a> {
    pub(super) kind: &'a Kind,
    pub(super) version: &'static Version,
    /// The block that it is in.
    pub(super) block: &'a FieldPath,
    pub(super) key: &'a str,
    pub(super) value: &'a Value,
    /// The fields that the block has.
    pub(super) fields: &'a Map<String, Value>,
}

impl UnknownField<'_> {
    /// The sentence.
    pub(super) fn words(&self) -> String {
        let certain = self.wrong_level().or_else(|| self.flag()).or_else(|| self.other_version());
        let words = certain.unwrap_or_else(|| self.suggestion());
        format!("unknown field; {words}")
    }

    fn wrong_level(&self) -> Option<String> {
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
            && matches!(self.block.to_dotted().as_str(), "spec" | "spec.options");
        let (hub, written) = (&Value::Null, &Value::Null);
        let translator = PathTranslator { kind: self.kind, version: self.version, hub, written };
        etcd_flags::advice_for(self.key).filter(|_| of_etcd).map(|words| translator.words(&words))
    }

    /// Whether another version of the kind has a field of that name there.
    fn other_version(&self) -> Option<String> {
        let path = self.block.child(Segment::Field(self.key.to_owned()));
        let has = |version: &Version| schema::at(schema::schema_of(self.kind, version)?, &path);
        let mut versions = self.kind.versions();
        let (theirs, field) = versions.find_map(|version| Some((version, has(version)?)))?;
        let (other, mine) = (theirs.name, self.version.name);
        let here = |path: &FieldPath| translate::translate_between(path, theirs, self.version);
        if let Some(here) = here(&path) {
            return Some(format!("{other} has it; in {mine} write `{}`", here.to_dotted()));
        }
        let said = self.value.as_object();
        let could = field.get("properties").and_then(Value::as_object);
        let mut parts = said.into_iter().chain(could).flat_map(Map::keys);
        if let Some(part) = parts.find_map(|part| here(&path.child(Segment::Field(part.clone())))) {
            let part = part.to_dotted();
            return Some(format!(
                "{other} has it; {mine} has its parts other_version, such as `{part}`"
            ));
        }
        // Nobody is sent back to an older version.
        let mut newer = self.kind.versions().take_while(|version| version.name != mine);
        let newer = newer.any(|version| version.name == other);
        let api_version = self.kind.api_version(theirs);
        newer.then(|| format!("{other} has it: write `apiVersion: {api_version}`"))
    }

    fn suggestion(&self) -> String {
        let names: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        match suggest::did_you_mean(self.key, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known are {}", names.join(", ")),
        }
    }
}
