//! Updates written in a spoke version: fields that only the hub version has keep their stored
//! values.
//!
//! The preserved-fields annotation of the request is not trusted, because any client can write or
//! drop it. The preserved fields are derived again from the stored object.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value, json};

use crate::api::convert::{ConvertError, PRESERVED_FIELDS_ANNOTATION, convert};
use crate::api::kinds::{Kind, Version};

const SPEC: &str = "spec";
const STATUS: &str = "status";

/// An update that was written in a spoke version of a kind.
pub struct SpokeUpdate<'a> {
    kind: &'static Kind,
    request_version: &'static Version,
    old: &'a Value,
}

impl<'a> SpokeUpdate<'a> {
    /// An update of `old`, which is in the hub version. `None` if the update was written in the hub
    /// version, which can express every field.
    #[must_use]
    pub fn for_version(
        request_version: &'static Version,
        kind: &'static Kind,
        old: &'a Value,
    ) -> Option<Self> {
        (request_version.name != kind.hub().name).then_some(Self { kind, request_version, old })
    }

    /// The object after the update: the fields that the spoke version has as written, every other
    /// field of the spec and the status as stored.
    ///
    /// # Errors
    /// If an object is not of this kind.
    pub fn with_hub_only_fields(&self, new: &Value) -> Result<Value, ConvertError> {
        self.with_hub_only_fields_of(self.old, new)
    }

    /// The same with defaults set. A default can restore a block that the update left out, and the
    /// hub-only fields of that block are restored with it: an update in v1beta1 that does not
    /// mention TLS does not request other certificates. Defaults are set in the stored object, too,
    /// because the fields of a block are only restored into a block of the same form.
    ///
    /// # Errors
    /// If an object is not of this kind.
    pub fn with_hub_only_fields_and_defaults(&self, merged: &Value) -> Result<Value, ConvertError> {
        let old = self.kind.with_defaults(self.old, None);
        let defaulted = self.kind.with_defaults(merged, Some(self.old));
        let merged = self.with_hub_only_fields_of(&old, &defaulted)?;
        Ok(self.kind.with_defaults(&merged, Some(self.old)))
    }

    fn with_hub_only_fields_of(&self, old: &Value, new: &Value) -> Result<Value, ConvertError> {
        let Self { kind, request_version, old: _ } = self;
        let mut merged = new.clone();
        let Some(object) = merged.as_object_mut() else { return Ok(merged) };
        object.remove(STATUS);
        let mut in_spoke =
            convert(Value::Object(object.clone()), &kind.api_version(request_version))?;
        set_preserved_fields(&mut in_spoke, self.preserved_fields(old)?);
        let mut in_hub = convert(in_spoke, &kind.api_version(kind.hub()))?;
        // A missing spec is not created.
        if let (Some(spec), Some(merged)) = (object.get_mut(SPEC), in_hub.get_mut(SPEC)) {
            *spec = merged.take();
        }
        if let Some(status) = old.get(STATUS) {
            object.insert(STATUS.to_owned(), status.clone());
        }
        Ok(merged)
    }

    /// The fields of an object's spec that the request version cannot express.
    fn preserved_fields(&self, object: &Value) -> Result<Option<Value>, ConvertError> {
        // The spec alone: the annotation has a size limit, and metadata and status would use it up.
        let mut spec_only = Map::new();
        for key in ["apiVersion", "kind", SPEC] {
            spec_only.extend(object.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        let mut in_spoke =
            convert(Value::Object(spec_only), &self.kind.api_version(self.request_version))?;
        Ok(annotations(&mut in_spoke)
            .and_then(|annotations| annotations.remove(PRESERVED_FIELDS_ANNOTATION)))
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

/// Replaces the preserved-fields annotation of the request by the derived one.
fn set_preserved_fields(object: &mut Value, preserved: Option<Value>) {
    if let Some(annotations) = annotations(object) {
        annotations.remove(PRESERVED_FIELDS_ANNOTATION);
    }
    let Some(preserved) = preserved else { return };
    // No other metadata is used here, and the caller takes only the spec.
    if let Some(object) = object.as_object_mut() {
        object.insert(
            "metadata".to_owned(),
            json!({ "annotations": { PRESERVED_FIELDS_ANNOTATION: preserved } }),
        );
    }
}

#[cfg(test)]
mod tests;
