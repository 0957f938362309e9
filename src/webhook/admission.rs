//! Admission: reads the object of an admission review and dispatches it to the mutating or the
//! validating handler.
//!
//! Kinds, versions, operations and subresources that are unknown here are allowed unchanged: a
//! webhook that rejects what it does not know blocks a cluster.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod mutate;
mod validate;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::review::response::{AdmissionDecision, Denial};
use super::review::{Admission, KindName, Operation, ResourceName, parse, string_at};
use super::spoke_update::SpokeUpdate;
use super::ssa_release::without_released_fields;
use super::{deletion_protection, scale};
use crate::api::convert::convert;
use crate::api::kinds::{self, Kind, Version};
use crate::api::validation::ValidationContext;
use crate::api::validation::features::FeatureSet;

/// The scale subresource: it holds the number of replicas and nothing else.
const SCALE: &str = "scale";

/// Sets defaults and restores the hub-only fields that an older version cannot express.
pub(crate) fn mutate(request: &Admission<'_>, now: Timestamp) -> AdmissionDecision {
    let decision = match (request.operation, request.sub_resource.as_str()) {
        (Operation::Update, SCALE) => {
            review_scale(request, now).map(AdmissionDecision::without_warnings)
        }
        (Operation::Create | Operation::Update, "") => match resolve_kind(&request.kind) {
            Some((kind, version)) => AdmissionCase::read(request, kind, version)
                .and_then(|case| mutate::decide(case, now)),
            None => Ok(AdmissionDecision::ALLOWED),
        },
        (Operation::Create | Operation::Update | Operation::Delete | Operation::Other, _) => {
            Ok(AdmissionDecision::ALLOWED)
        }
    };
    decision.unwrap_or_else(AdmissionDecision::from)
}

/// Validates that an object may be created, updated or deleted.
pub(crate) fn validate(request: &Admission<'_>, now: Timestamp) -> AdmissionDecision {
    let decision = match (request.operation, request.sub_resource.as_str()) {
        (Operation::Update, SCALE) => review_scale(request, now),
        (Operation::Create | Operation::Update, "") => match resolve_kind(&request.kind) {
            Some((kind, version)) => AdmissionCase::read(request, kind, version)
                .and_then(|case| validate::decide(&case, now)),
            None => Ok(AdmissionDecision::ALLOWED),
        },
        (Operation::Delete, "") => match resolve_kind(&request.kind) {
            Some((kind, _)) => deletion_protection::decide(request, kind),
            None => Ok(AdmissionDecision::ALLOWED),
        },
        (Operation::Create | Operation::Update | Operation::Delete | Operation::Other, _) => {
            Ok(AdmissionDecision::ALLOWED)
        }
    };
    decision.unwrap_or_else(AdmissionDecision::from)
}

/// Validates an update of the scale subresource.
fn review_scale(request: &Admission<'_>, now: Timestamp) -> Result<AdmissionDecision, Denial> {
    match kind_by_resource(&request.resource) {
        Some(kind) => scale::decide(request, kind, now),
        None => Ok(AdmissionDecision::ALLOWED),
    }
}

/// The kind and version that a review names, if the operator serves them.
fn resolve_kind(name: &KindName) -> Option<(&'static Kind, &'static Version)> {
    let KindName { group, version, kind } = name;
    let kind = kinds::by_name(kind)?;
    Some((kind, kind.version_of(&format!("{group}/{version}"))?))
}

/// The kind with this resource name, if the operator serves it.
fn kind_by_resource(name: &ResourceName) -> Option<&'static Kind> {
    let ResourceName { group, version: _, resource } = name;
    kinds::ALL.into_iter().find(|kind| kind.group == group && kind.plural() == *resource)
}

/// A create or update request for an object of a kind that the operator serves.
struct AdmissionCase<'a> {
    kind: &'static Kind,
    /// The version in which the user wrote the object.
    request_version: &'static Version,
    /// Whether the review holds the object in the hub version, so that it can be patched.
    is_hub_version: bool,
    name: &'a str,
    /// The field manager of the request.
    manager: &'a str,
    /// The requested object, in the hub version.
    new: Value,
    /// The stored object, in the hub version.
    old: Option<Value>,
}

impl<'a> AdmissionCase<'a> {
    fn read(
        request: &'a Admission<'_>,
        kind: &'static Kind,
        object_version: &'static Version,
    ) -> Result<Self, Denial> {
        let hub = kind.hub();
        let read = |raw: Option<&RawValue>, field: &'static str| {
            let object = read_object(raw, field)?;
            let expected = kind.api_version(object_version);
            if string_at(&object, "/apiVersion") != expected
                || string_at(&object, "/kind") != kind.name
            {
                let error = format!("is not the {} in {expected} that it announces", kind.name);
                return Err(Denial::unreadable(field, &error));
            }
            convert(object, &kind.api_version(hub))
                .map_err(|error| Denial::unreadable(field, &error.to_string()))
        };
        let is_update = request.operation == Operation::Update;
        let old = is_update.then(|| read(request.old_object, OLD_OBJECT)).transpose()?;
        let request_version = request.request_kind.as_ref().and_then(resolve_kind);
        let request_version = request_version.filter(|(requested, _)| requested.name == kind.name);
        Ok(Self {
            kind,
            request_version: request_version.map_or(object_version, |(_, version)| version),
            is_hub_version: object_version.name == hub.name,
            name: &request.name,
            manager: &request.options.field_manager,
            new: read(request.object, OBJECT)?,
            old,
        })
    }

    /// The spec without the fields that its server-side apply released, if conversion brought any
    /// back.
    fn without_released_fields(&self) -> Option<Value> {
        without_released_fields(self.kind, self.old.as_ref()?, &self.new, self.manager)
    }

    /// The context for validation.
    fn validation_context(&self, now: Timestamp) -> ValidationContext<'static> {
        ValidationContext {
            now,
            features: FeatureSet::CURRENT,
            request_version: self.request_version.name,
        }
    }

    /// The update, if it was written in a version that cannot express the whole object.
    fn spoke_update(&self) -> Option<SpokeUpdate<'_>> {
        SpokeUpdate::for_version(self.request_version, self.kind, self.old.as_ref()?)
    }

    /// Whether the object is being deleted. Only the stored object is trusted: a request could set
    /// the timestamp itself to skip validation.
    fn is_being_deleted(&self) -> bool {
        let timestamp =
            self.old.as_ref().and_then(|old| old.pointer("/metadata/deletionTimestamp"));
        timestamp.is_some_and(|timestamp| !timestamp.is_null())
    }

    /// Whether the spec of `object` equals the stored spec.
    fn is_unchanged(&self, object: &Value) -> bool {
        self.old.as_ref().is_some_and(|old| equal_ignoring_nulls(old.get(SPEC), object.get(SPEC)))
    }

    /// The name of the object, or its `generateName` prefix.
    fn display_name(&self) -> &str {
        let names = [self.name, string_at(&self.new, "/metadata/name")];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.unwrap_or_else(|| string_at(&self.new, "/metadata/generateName"))
    }
}

const SPEC: &str = "spec";
const STATUS: &str = "status";
/// The field of a review with the requested object.
pub(super) const OBJECT: &str = "object";
/// The field of a review with the stored object.
pub(super) const OLD_OBJECT: &str = "oldObject";

/// Parses an object of a review.
pub(super) fn read_object(raw: Option<&RawValue>, field: &'static str) -> Result<Value, Denial> {
    let raw = raw.ok_or_else(|| Denial::unreadable(field, "is missing"))?;
    parse(raw).map_err(|error| Denial::unreadable_object(field, &error))
}

/// Whether two values are equal. A null counts as absent, because the API server drops nulls.
fn equal_ignoring_nulls(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (non_null(left), non_null(right)) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys = left.keys().chain(right.keys());
            keys.into_iter().all(|key| equal_ignoring_nulls(left.get(key), right.get(key)))
        }
        (left, right) => left == right,
    }
}

fn non_null(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests;
