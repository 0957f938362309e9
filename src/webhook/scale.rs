//! The scale subresource: validates the number of replicas from `kubectl scale` or an autoscaler.
//!
//! A request for the scale subresource does not contain the object itself. The number is validated
//! by the rules of the kind, on an object that has only `spec.replicas`, so that the messages are
//! the same.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde_json::{Value, json};

use super::admission::{OBJECT, OLD_OBJECT, read_object};
use super::review::response::{AdmissionDecision, Denial};
use super::review::{Admission, string_at};
use crate::api::kinds::{self, Kind};
use crate::api::validation::features::FeatureSet;
use crate::api::validation::{ErrorType, ValidationContext, ValidationResult, Violation, validate};

/// The path of the number in a Scale; it is the same in the hub versions.
const REPLICAS_PATH: &str = "spec.replicas";

/// Validates the number of replicas of a Scale.
pub(crate) fn decide(
    request: &Admission<'_>,
    kind: &'static Kind,
    now: Timestamp,
) -> Result<AdmissionDecision, Denial> {
    let (new, old) =
        (read_object(request.object, OBJECT)?, read_object(request.old_object, OLD_OBJECT)?);
    // Only the Scale kind of autoscaling is known; others are allowed.
    if string_at(&new, "/kind") != "Scale" || replicas(&new) == replicas(&old) {
        return Ok(AdmissionDecision::ALLOWED);
    }
    let result = validate_replicas(request, kind, &replicas(&new), now);
    if result.is_valid() {
        return Ok(AdmissionDecision::with_warnings(result.warnings));
    }
    Err(Denial::invalid(kind, name(request, &new), &result.violations))
}

fn validate_replicas(
    request: &Admission<'_>,
    kind: &'static Kind,
    replicas: &Value,
    now: Timestamp,
) -> ValidationResult {
    let hub = kind.hub();
    let object = json!({
        "apiVersion": kind.api_version(hub),
        "kind": kind.name,
        "metadata": {},
        "spec": { "replicas": replicas },
    });
    // Messages use the paths of the hub version, whatever version the request names: they are the
    // paths of a Scale.
    let context =
        ValidationContext { now, features: FeatureSet::CURRENT, request_version: hub.name };
    let ValidationResult { mut violations, mut warnings } = validate(kind, None, &object, &context);
    violations.retain(|violation| violation.path == REPLICAS_PATH);
    warnings.retain(|warning| warning.starts_with(&format!("`{REPLICAS_PATH}` ")));
    violations.extend(in_memory_hibernation(request, kind, replicas));
    ValidationResult { violations, warnings }
}

/// A cluster with data in memory loses it when it hibernates. The hub schema rejects that; the
/// schema of an older version cannot.
fn in_memory_hibernation(
    request: &Admission<'_>,
    kind: &'static Kind,
    replicas: &Value,
) -> Option<Violation> {
    let requested = request.request_resource.as_ref().unwrap_or(&request.resource);
    let (version, hub) = (requested.version.as_str(), kind.hub().name);
    let keeps_data = kind.name == kinds::ETCD_CLUSTER.name;
    if !keeps_data || version == hub || replicas.as_i64() != Some(0) {
        return None;
    }
    let detail = format!(
        "{version} does not show whether the data is in memory, which would be lost at 0; scale \
         through {hub}: kubectl scale --namespace {} {}.{hub}.{} {} --replicas=0",
        request.namespace,
        kind.plural(),
        kind.group,
        request.name,
    );
    let value = Some(replicas.clone());
    Some(Violation {
        path: REPLICAS_PATH.to_owned(),
        error_type: ErrorType::Invalid,
        value,
        detail,
    })
}

/// The number of replicas in a Scale. A missing number is 0, because a Scale omits it then.
fn replicas(scale: &Value) -> Value {
    let value = scale.pointer("/spec/replicas").filter(|replicas| !replicas.is_null());
    value.cloned().unwrap_or_else(|| json!(0))
}

fn name<'a>(request: &'a Admission<'_>, scale: &'a Value) -> &'a str {
    if request.name.is_empty() { string_at(scale, "/metadata/name") } else { &request.name }
}

#[cfg(test)]
mod tests;
