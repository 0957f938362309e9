//! Complete reviews and their responses: the files in `admission_reviews/` are the cases. Each is
//! sent as the API server sends it: an object in an older version is first converted to v1 by a
//! conversion review, and so is the stored object. All differing cases are reported at once.
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

/// Time of the reviews.
const NOW: &str = "2026-11-16T06:00:00Z";
const UID: &str = "0df28fbd-5f5f-11e8-bc74-36e6bb280816";
const NAMESPACE: &str = "default";
const USER: &str = "alice";

/// A review and its expected response.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// Name of the case.
    #[serde(rename = "case")]
    name: String,
    #[serde(rename = "type")]
    review_type: String,
    /// User of the request, if relevant.
    user: Option<String>,
    /// Version of a request without an object.
    request_version: Option<String>,
    #[serde(default)]
    subresource: String,
    /// Resource, if it cannot be derived from the object.
    resource: Option<String>,
    #[serde(default)]
    dry_run: bool,
    /// The stored object, in any version.
    old: Option<Value>,
    /// The requested object.
    object: Option<Value>,
    /// For a conversion: the desired version and the objects.
    desired_version: Option<String>,
    objects: Option<Vec<Value>>,
    /// The complete response without the uid, with a decoded patch.
    response: Value,
}

impl Case {
    fn send(&self) -> ReviewResponse {
        let review_type = match self.review_type.as_str() {
            "mutate" => ReviewType::Mutate,
            "validate" => ReviewType::Validate,
            "convert" => ReviewType::Convert,
            other => panic!("{}: unknown type {other:?}", self.name),
        };
        let body = match review_type {
            ReviewType::Convert => conversion(self.desired_version.as_ref(), self.objects.as_ref()),
            ReviewType::Mutate | ReviewType::Validate => self.admission(),
        };
        send(review_type, &body)
    }

    fn admission(&self) -> Value {
        let any = self.object.as_ref().or(self.old.as_ref()).unwrap();
        let (group, version) = any["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = any["kind"].as_str().unwrap();
        let request_version = self.request_version.as_deref().unwrap_or(version);
        let is_scale = self.subresource == "scale";
        let (group, request_version, plural) = match &self.resource {
            Some(resource) => {
                let (plural, group) = resource.split_once('.').unwrap();
                (group, request_version, plural.to_owned())
            }
            None => (group, request_version, format!("{}s", kind.to_lowercase())),
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
        // The stored object reaches a webhook in the version of the request.
        let old = self.old.as_ref().map(|old| in_v1(&in_version(old, request_version)));
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": UID, "kind": kind("v1"), "requestKind": kind(request_version),
                "resource": resource("v1"), "requestResource": resource(request_version),
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

/// The object as the API server passes it on: converted by the webhook, if the kind is known.
fn in_version(object: &Value, version: &str) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let Some((group, _)) = api_version.split_once('/') else { return object.clone() };
    let desired = format!("{group}/{version}");
    if !group.ends_with("appdelivery.cncf.io") || api_version == desired {
        return object.clone();
    }
    let response =
        send(ReviewType::Convert, &conversion(Some(&desired), Some(&vec![object.clone()])));
    assert_eq!(response.outcome, Outcome::Converted, "{object}");
    let review: Value = serde_json::from_slice(&response.body).unwrap();
    review["response"]["convertedObjects"][0].clone()
}

fn conversion(desired: Option<&String>, objects: Option<&Vec<Value>>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": desired, "objects": objects},
    })
}

fn send(review_type: ReviewType, review: &Value) -> ReviewResponse {
    handle(review_type, &serde_json::to_vec(review).unwrap(), NOW.parse().unwrap())
}

/// The response without its uid, which must exist, and with a decoded patch.
fn decoded(response: &ReviewResponse) -> Value {
    assert_eq!(response.status, 200);
    let review: Value = serde_json::from_slice(&response.body).unwrap();
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
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admission_reviews");
    let mut paths: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let read: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        cases.extend(read.into_iter().map(|case| (name.clone(), case)));
    }
    cases
}

#[test]
fn every_review_gets_the_expected_response() {
    let mut wrong = String::new();
    for (file, case) in cases() {
        let actual = decoded(&case.send());
        if actual != case.response {
            let (expected, case) = (&case.response, &case.name);
            writeln!(wrong, "{file}: {case}\n  - {expected}\n  + {actual}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n\n(- is expected, + is actual)\n\n{wrong}");
}

#[test]
fn case_names_are_unique() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|(_, case)| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn dry_run_gets_the_same_response() {
    let mut tried = 0;
    for (_, mut case) in cases().into_iter().filter(|(_, case)| case.review_type != "convert") {
        let before = case.send();
        case.dry_run = !case.dry_run;
        assert_eq!(case.send(), before, "{}", case.name);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
