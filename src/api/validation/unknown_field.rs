//! Message for a field that a version does not have: certain advice first, then a suggestion, then
//! the known fields.
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
    /// Path of the object with the field.
    pub(super) parent: &'a FieldPath,
    pub(super) key: &'a str,
    pub(super) value: &'a Value,
    /// Known fields of the object.
    pub(super) fields: &'a Map<String, Value>,
}

impl UnknownField<'_> {
    /// The message.
    pub(super) fn message(&self) -> String {
        let certain = self.wrong_level().or_else(|| self.flag()).or_else(|| self.other_version());
        let advice = certain.unwrap_or_else(|| self.suggestion());
        format!("unknown field; {advice}")
    }

    fn wrong_level(&self) -> Option<String> {
        let advice = match self.key {
            "status" if self.parent.0.len() == 1 => {
                "the status is written by the operator, beside the spec; remove the field"
            }
            "namespace" if self.fields.contains_key("name") => {
                "a reference is always in the namespace of its object; remove the field"
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }

    fn flag(&self) -> Option<String> {
        let of_etcd = self.kind.name == kinds::ETCD_CLUSTER.name
            && matches!(self.parent.to_dotted().as_str(), "spec" | "spec.options");
        let (hub, written) = (&Value::Null, &Value::Null);
        let translator = PathTranslator { kind: self.kind, version: self.version, hub, written };
        etcd_flags::advice_for(self.key)
            .filter(|_| of_etcd)
            .map(|advice| translator.message(&advice))
    }

    /// Advice if another version of the kind has the field.
    fn other_version(&self) -> Option<String> {
        let path = self.parent.child(Segment::Field(self.key.to_owned()));
        let has = |version: &Version| schema::at(schema::schema_of(self.kind, version)?, &path);
        let mut versions = self.kind.versions();
        let (theirs, field) = versions.find_map(|version| Some((version, has(version)?)))?;
        let (other, mine) = (theirs.name, self.version.name);
        let here = |path: &FieldPath| translate::translate_between(path, theirs, self.version);
        if let Some(here) = here(&path) {
            return Some(format!("a field of {other}; in {mine} use `{}`", here.to_dotted()));
        }
        let set = self.value.as_object();
        let known = field.get("properties").and_then(Value::as_object);
        let mut parts = set.into_iter().chain(known).flat_map(Map::keys);
        if let Some(part) = parts.find_map(|part| here(&path.child(Segment::Field(part.clone())))) {
            let part = part.to_dotted();
            return Some(format!(
                "a field of {other}; in {mine} its parts are elsewhere, such as `{part}`"
            ));
        }
        // An older version is never recommended.
        let mut newer = self.kind.versions().take_while(|version| version.name != mine);
        let newer = newer.any(|version| version.name == other);
        let api_version = self.kind.api_version(theirs);
        newer.then(|| format!("a field of {other}: use `apiVersion: {api_version}`"))
    }

    fn suggestion(&self) -> String {
        let names: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        match suggest::did_you_mean(self.key, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known fields: {}", names.join(", ")),
        }
    }
}
