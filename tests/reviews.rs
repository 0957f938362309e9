//! Whole reviews and their whole answers: the files in `reviews/` are the cases. Each is sent as the
//! apiserver sends it: what the user wrote in an older version is turned into v1 first, by a
//! conversion review, and so is what is stored.
//! Comes in: those files. Goes out: every case that is answered otherwise, all at once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate::webhook::handler::{Outcome, ReviewResponse, ReviewType, handle};
use serde::Deserialize;
use serde_json::{Value, json};

/// When all this is tried.
const NOW: &str = "2026-11-16T06:00:00Z";
const UID: &str = "0df28fbd-5f5f-11e8-bc74-36e6bb280816";
const NAMESPACE: &str = "default";
const USER: &str = "alice";

/// One review and its answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What is asked, and what comes of it.
    #[serde(rename = "case")]
    asks: String,
    errand: String,
    /// Who asks, if it is not just anybody.
    user: Option<String>,
    /// The version that a request without an object is written in.
    through: Option<String>,
    #[serde(default)]
    subresource: String,
    /// The resource, if the object does not tell.
    resource: Option<String>,
    #[serde(default)]
    dry_run: bool,
    /// What is stored, in any version.
    old: Option<Value>,
    /// What the user wrote.
    object: Option<Value>,
    /// For a conversion: the wanted version and the objects.
    wanted: Option<String>,
    objects: Option<Vec<Value>>,
    /// The whole response, but for the uid. A patch is written in the clear.
    answer: Value,
}

impl Case {
    fn reply(&self) -> ReviewResponse {
        let errand = match self.errand.as_str() {
            "mutate" => ReviewType::Mutate,
            "validate" => ReviewType::Validate,
            "convert" => ReviewType::Convert,
            other => panic!("{}: there is no errand {other:?}", self.asks),
        };
        let body = match errand {
            ReviewType::Convert => conversion(self.wanted.as_ref(), self.objects.as_ref()),
            ReviewType::Mutate | ReviewType::Validate => self.admission(),
        };
        sent(errand, &body)
    }

    fn admission(&self) -> Value {
        let any = self.object.as_ref().or(self.old.as_ref()).unwrap();
        let (group, version) = any["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = any["kind"].as_str().unwrap();
        let through = self.through.as_deref().unwrap_or(version);
        let is_scale = self.subresource == "scale";
        let (group, through, plural) = match &self.resource {
            Some(resource) => {
                let (plural, group) = resource.split_once('.').unwrap();
                (group, through, plural.to_owned())
            }
            None => (group, through, format!("{}s", kind.to_lowercase())),
        };
        let kind = |version: &str| {
            if is_scale {
                json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
            } else {
                json!({"group": group, "version": version, "kind": kind})
            }
        };
        let resource =
            |version: &str| json!({"group": group, "version": version, "resource": plural});
        let operation = match (&self.old, &self.object) {
            (None, Some(_)) => "CREATE",
            (Some(_), Some(_)) => "UPDATE",
            (_, None) => "DELETE",
        };
        // What is stored reaches a webhook through the version of the request.
        let old = self.old.as_ref().map(|old| in_v1(&in_version(old, through)));
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": UID, "kind": kind("v1"), "requestKind": kind(through),
                "resource": resource("v1"), "requestResource": resource(through),
                "subResource": self.subresource, "requestSubResource": self.subresource,
                "operation": operation, "name": any["metadata"]["name"],
                "namespace": NAMESPACE, "dryRun": self.dry_run,
                "userInfo": {"username": self.user.as_deref().unwrap_or(USER), "groups": ["a"]},
                "object": self.object.as_ref().map(in_v1), "oldObject": old,
                "options": {"kind": "Options"},
            },
        })
    }
}

fn in_v1(object: &Value) -> Value {
    in_version(object, "v1")
}

/// The object as the apiserver hands it on: converted by us, if it is ours.
fn in_version(object: &Value, version: &str) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let Some((group, _)) = api_version.split_once('/') else { return object.clone() };
    let wanted = format!("{group}/{version}");
    if !group.ends_with("appdelivery.cncf.io") || api_version == wanted {
        return object.clone();
    }
    let reply = sent(ReviewType::Convert, &conversion(Some(&wanted), Some(&vec![object.clone()])));
    assert_eq!(reply.outcome, Outcome::Converted, "{object}");
    let said: Value = serde_json::from_slice(&reply.body).unwrap();
    said["response"]["convertedObjects"][0].clone()
}

fn conversion(wanted: Option<&String>, objects: Option<&Vec<Value>>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": wanted, "objects": objects},
    })
}

fn sent(errand: ReviewType, review: &Value) -> ReviewResponse {
    handle(errand, &serde_json::to_vec(review).unwrap(), NOW.parse().unwrap())
}

/// The response without its uid, which must be there, and with its patch in the clear.
fn said(reply: &ReviewResponse) -> Value {
    assert_eq!(reply.status, 200);
    let review: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(review.as_object().unwrap().len(), 3, "{review}");
    let mut response = review["response"].clone();
    let fields = response.as_object_mut().unwrap();
    assert_eq!(fields.remove("uid"), Some(json!(UID)));
    if let Some(patch) = fields.remove("patch") {
        assert_eq!(fields.remove("patchType"), Some(json!("JSONPatch")));
        let patch = STANDARD.decode(patch.as_str().unwrap()).unwrap();
        fields.insert("patch".to_owned(), serde_json::from_slice(&patch).unwrap());
    }
    response
}

fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reviews");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let read: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        cases.extend(read.into_iter().map(|case| (name.clone(), case)));
    }
    cases
}

#[test]
fn every_review_gets_the_answer_that_is_written_beside_it() {
    let mut wrong = String::new();
    for (file, case) in cases() {
        let said = said(&case.reply());
        if said != case.answer {
            let (expected, case) = (&case.answer, &case.asks);
            writeln!(wrong, "{file}: {case}\n  - {expected}\n  + {said}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n\n(- is written there, + is what was said)\n\n{wrong}");
}

#[test]
fn no_two_cases_have_the_same_name() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|(_, case)| case.asks.as_str()).collect();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn a_dry_run_is_answered_like_any_other() {
    let mut tried = 0;
    for (_, mut case) in cases().into_iter().filter(|(_, case)| case.errand != "convert") {
        let before = case.reply();
        case.dry_run = !case.dry_run;
        assert_eq!(case.reply(), before, "{}", case.asks);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
