//! Fuzzes the review handler with arbitrary bytes and disturbed reviews: it never panics, and a
//! response with status 200 is a review with the uid of the request. `PROPTEST_CASES` sets the
//! number of cases.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use quorate::webhook::handler::{Outcome, ReviewType, handle};
use serde_json::{Value, json};

const REVIEW_TYPES: [ReviewType; 3] =
    [ReviewType::Mutate, ReviewType::Validate, ReviewType::Convert];
const GROUP: &str = "etcd.appdelivery.cncf.io";

/// Asserts that the handler has a valid response.
fn assert_response(body: &[u8], uid: Option<&str>) -> Result<(), TestCaseError> {
    for review_type in REVIEW_TYPES {
        let response = handle(review_type, body, Timestamp::UNIX_EPOCH);
        prop_assert_ne!(response.outcome, Outcome::Panicked, "{:?}", review_type);
        let valid = response.status == 200 || (400..600).contains(&response.status);
        prop_assert!(valid, "{:?}", response);
        if response.status != 200 {
            continue;
        }
        let review: Value = serde_json::from_slice(&response.body).unwrap();
        let echoed = review.pointer("/response/uid").and_then(Value::as_str);
        prop_assert!(echoed.is_some(), "{}", review);
        if let Some(uid) = uid {
            prop_assert_eq!(echoed, Some(uid));
        }
    }
    Ok(())
}

/// Arbitrary values, mostly similar to those in objects.
fn values() -> impl Strategy<Value = Value> {
    let strings = prop::sample::select(vec![
        "",
        "3.6.10",
        "10Gi",
        "-1",
        "1e9999",
        "* * * * *",
        "s3://a/b",
        "a/b",
        "~0~1",
        "\u{0}",
        "v1",
        "CREATE",
        "true",
        "🦀",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        strings.prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(names(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn names() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
        "name",
        "namespace",
        "annotations",
        "labels",
        "replicas",
        "version",
        "storage",
        "size",
        "medium",
        "security",
        "tls",
        "backup",
        "schedule",
        "destination",
        "options",
        "pod",
        "resources",
        "deletionTimestamp",
        "conditions",
        "etcd",
        "image",
        "env",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn versions() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["v1", "v1beta1", "v1alpha1", "v2"])
}

fn objects() -> impl Strategy<Value = Value> {
    let fields = prop::collection::btree_map(names(), values(), 0..8);
    (versions(), any::<bool>(), fields, values()).prop_map(|(version, is_app, fields, odd)| {
        let (group, kind) = if is_app {
            ("example-app.appdelivery.cncf.io", "ExampleApp")
        } else {
            (GROUP, "EtcdCluster")
        };
        let spec: Value = Value::Object(fields.into_iter().collect());
        json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind,
            "metadata": {"name": "a", "namespace": "b", "uid": "c", "annotations": odd},
            "spec": spec,
        })
    })
}

fn reviews() -> impl Strategy<Value = Value> {
    let operations = prop::sample::select(vec!["CREATE", "UPDATE", "DELETE", "CONNECT", "create"]);
    let admission = (operations, objects(), prop::option::of(objects()), versions()).prop_map(
        |(operation, object, old, version)| {
            let kind = object["kind"].clone();
            let group =
                object["apiVersion"].as_str().unwrap().split('/').next().unwrap().to_owned();
            let plural = if kind == "ExampleApp" { "exampleapps" } else { "etcdclusters" };
            json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "request": {
                    "uid": "the-uid", "operation": operation, "name": "a", "namespace": "b",
                    "kind": {"group": group, "version": "v1", "kind": kind},
                    "requestKind": {"group": group, "version": version, "kind": kind},
                    "resource": {"group": group, "version": "v1", "resource": plural},
                    "requestResource": {"group": group, "version": version, "resource": plural},
                    "userInfo": {"username": "user"}, "object": object, "oldObject": old,
                },
            })
        },
    );
    let conversion =
        (versions(), prop::collection::vec(objects(), 0..4)).prop_map(|(version, objects)| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "request": {
                    "uid": "the-uid", "objects": objects,
                    "desiredAPIVersion": format!("{GROUP}/{version}"),
                },
            })
        });
    prop_oneof![admission, conversion]
}

proptest! {
    #[test]
    fn any_bytes_get_a_response(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        assert_response(&bytes, None)?;
    }

    #[test]
    fn any_value_gets_a_response(value in values()) {
        assert_response(value.to_string().as_bytes(), None)?;
    }

    #[test]
    fn any_review_gets_a_response_with_its_uid(review in reviews()) {
        assert_response(review.to_string().as_bytes(), Some("the-uid"))?;
    }

    #[test]
    fn review_with_an_unexpected_value_gets_a_response(
        mut review in reviews(),
        at in any::<Index>(),
        odd in values(),
    ) {
        let mut found = Vec::new();
        paths(&review, "", &mut found);
        let path = at.get(&found);
        *review.pointer_mut(path).unwrap() = odd;
        let has_uid = !"/request/uid".starts_with(path.as_str());
        assert_response(review.to_string().as_bytes(), has_uid.then_some("the-uid"))?;
    }

    #[test]
    fn truncated_or_corrupted_review_gets_a_response(
        review in reviews(),
        end in any::<Index>(),
        corrupted in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = review.to_string().into_bytes();
        for (at, byte) in corrupted {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        assert_response(&bytes, None)?;
        assert_response(&bytes[..end.index(bytes.len())], None)?;
    }
}

/// Pointers of all values in a tree.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                paths(inner, &format!("{at}/{}", escape(key)), found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                paths(inner, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
