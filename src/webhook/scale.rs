//! The number of replicas, when it comes alone: `kubectl scale`, or an autoscaler.
//! Comes in: a Scale, and what it was before. Goes out: a ruling.
//! May touch: `review`, the kinds of `api`.
//! Such a request never shows the object that it is about. The words are those of the kind's own
//! checks, made on an object that says its number and nothing else.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde_json::{Value, json};

use super::admit::{OBJECT, OLD_OBJECT, object};
use super::review::answer::{Refusal, Ruling};
use super::review::{Admission, text_at};
use crate::api::check::release::Abilities;
use crate::api::check::{Facts, Fault, Verdict, Violation, check};
use crate::api::kinds::{self, Kind};

/// Where a Scale has its number; the hub's versions have it in the same place.
const PLACE: &str = "spec.replicas";

/// Judges the number.
pub(crate) fn ruling(
    asked: &Admission<'_>,
    kind: &'static Kind,
    now: Timestamp,
) -> Result<Ruling, Refusal> {
    let (new, old) = (object(asked.object, OBJECT)?, object(asked.old_object, OLD_OBJECT)?);
    // Another kind of scale than there is today is none of our business.
    if text_at(&new, "/kind") != "Scale" || number(&new) == number(&old) {
        return Ok(Ruling::UNTOUCHED);
    }
    let verdict = judged(asked, kind, &number(&new), now);
    if verdict.allows() {
        return Ok(Ruling::warned(verdict.warnings));
    }
    Err(Refusal::invalid(kind, name(asked, &new), &verdict.violations))
}

fn judged(asked: &Admission<'_>, kind: &'static Kind, number: &Value, now: Timestamp) -> Verdict {
    let hub = kind.hub();
    let alone = json!({
        "apiVersion": kind.api_version(hub),
        "kind": kind.name,
        "metadata": {},
        "spec": { "replicas": number },
    });
    // Said in the hub's words, whichever version is asked: they are the words of a Scale.
    let facts = Facts { now, can: Abilities::THIS_RELEASE, written_in: hub.name };
    let Verdict { mut violations, mut warnings } = check(kind, None, &alone, &facts);
    violations.retain(|violation| violation.path == PLACE);
    warnings.retain(|words| words.starts_with(&format!("`{PLACE}` ")));
    violations.extend(asleep(asked, kind, number));
    Verdict { violations, warnings }
}

/// A cluster whose data is in memory does not survive its sleep. The hub's schema stops that, and an
/// older one cannot see it.
fn asleep(asked: &Admission<'_>, kind: &'static Kind, number: &Value) -> Option<Violation> {
    let asked_for = asked.request_resource.as_ref().unwrap_or(&asked.resource);
    let (version, hub) = (asked_for.version.as_str(), kind.hub().name);
    let keeps_data = kind.name == kinds::ETCD_CLUSTER.name;
    if !keeps_data || version == hub || number.as_i64() != Some(0) {
        return None;
    }
    let detail = format!(
        "{version} cannot say whether the data is in memory, where 0 would lose it; scale through \
         {hub}: kubectl scale --namespace {} {}.{hub}.{} {} --replicas=0",
        asked.namespace,
        kind.plural(),
        kind.group,
        asked.name,
    );
    let value = Some(number.clone());
    Some(Violation { path: PLACE.to_owned(), fault: Fault::Invalid, value, detail })
}

/// The number in a Scale. One that is left out is 0: that is how it is written.
fn number(scale: &Value) -> Value {
    let said = scale.pointer("/spec/replicas").filter(|number| !number.is_null());
    said.cloned().unwrap_or_else(|| json!(0))
}

fn name<'a>(asked: &'a Admission<'_>, scale: &'a Value) -> &'a str {
    if asked.name.is_empty() { text_at(scale, "/metadata/name") } else { &asked.name }
}

#[cfg(test)]
mod tests;
