//! The webhook configurations: rules, policies, and match conditions, which are evaluated in CEL
//! over requests as the API server has them.

use std::collections::BTreeSet;

use kube::core::cel::Validator;
use quorate::api::kinds;
use quorate::api::names;
use serde_json::{Value, json};

use super::object;

const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";
const WEBHOOKS: [(&str, &str); 5] = [
    (MUTATING, "default"),
    (MUTATING, "scale-default"),
    (VALIDATING, "check"),
    (VALIDATING, "scale"),
    (VALIDATING, "protect"),
];

fn webhook(prefix: &str) -> Value {
    let (kind, _) = WEBHOOKS.into_iter().find(|(_, webhook)| *webhook == prefix).unwrap();
    let name = format!("{prefix}.quorate.appdelivery.cncf.io");
    let webhooks = object(kind)["webhooks"].as_array().unwrap().clone();
    webhooks.into_iter().find(|webhook| webhook["name"] == name).unwrap()
}

#[test]
fn webhook_names_are_complete() {
    for kind in [MUTATING, VALIDATING] {
        let configuration = object(kind);
        assert_eq!(configuration["metadata"]["name"], names::WEBHOOK_CONFIGURATION);
        let configured: Vec<Value> = configuration["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|webhook| webhook["name"].clone())
            .collect();
        let expected: Vec<Value> = WEBHOOKS
            .into_iter()
            .filter(|(configuration, _)| *configuration == kind)
            .map(|(_, prefix)| json!(format!("{prefix}.quorate.appdelivery.cncf.io")))
            .collect();
        assert_eq!(configured, expected);
    }
}

#[test]
fn defaulted_fields_are_explicit_and_the_ca_bundle_is_not_set() {
    for (kind, name) in WEBHOOKS {
        let webhook = webhook(name);
        for (field, value) in [
            ("matchPolicy", json!("Equivalent")),
            ("failurePolicy", json!("Fail")),
            ("sideEffects", json!("None")),
            ("timeoutSeconds", json!(5)),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("admissionReviewVersions", json!(["v1"])),
        ] {
            assert_eq!(webhook[field], value, "{name}: {field}");
        }
        let reinvocation = if kind == MUTATING { json!("IfNeeded") } else { Value::Null };
        assert_eq!(webhook["reinvocationPolicy"], reinvocation, "{name}");
        let path = if kind == MUTATING { "/mutate" } else { "/validate" };
        let client = json!({"service": {
            "namespace": names::NAMESPACE, "name": "quorate-webhook", "path": path, "port": 443,
        }});
        assert_eq!(webhook["clientConfig"], client, "{name}");
    }
}

#[test]
fn rules_match_the_hub_version_of_all_kinds() {
    let plurals: [(&str, &[&str]); 2] = [
        (names::ETCD_GROUP, &["etcdclusters", "etcdmembers", "etcdbackups", "etcdrestores"]),
        (names::APP_GROUP, &["exampleapps"]),
    ];
    let scales: [(&str, &[&str]); 2] =
        [(names::ETCD_GROUP, &["etcdclusters/scale"]), (names::APP_GROUP, &["exampleapps/scale"])];
    for (name, operations, resources) in [
        ("default", json!(["CREATE", "UPDATE"]), plurals),
        ("check", json!(["CREATE", "UPDATE"]), plurals),
        ("scale-default", json!(["UPDATE"]), scales),
        ("scale", json!(["UPDATE"]), scales),
        ("protect", json!(["DELETE"]), plurals),
    ] {
        let rules = resources.map(|(group, resources)| {
            json!({
                "apiGroups": [group], "apiVersions": ["v1"], "operations": operations,
                "resources": resources, "scope": "Namespaced",
            })
        });
        assert_eq!(webhook(name)["rules"], json!(rules), "{name}");
    }
    let groups: BTreeSet<&str> = kinds::ALL.iter().map(|kind| kind.group).collect();
    assert_eq!(groups, BTreeSet::from([names::ETCD_GROUP, names::APP_GROUP]));
    assert!(kinds::ALL.iter().all(|kind| kind.hub().name == "v1"), "the rules have v1");
}

/// Whether the API server calls the webhook: every match condition is true. An error of a condition
/// rejects the request, so it must not happen.
fn is_called(name: &str, request: &Value) -> bool {
    let conditions = webhook(name)["matchConditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().all(|condition| is_true(condition["expression"].as_str().unwrap(), request))
}

/// Evaluates one expression. The variables `object`, `oldObject` and `request` are fields of
/// `self`.
fn is_true(expression: &str, request: &Value) -> bool {
    let mut rule = String::new();
    let mut identifier = String::new();
    let mut in_string = false;
    for letter in expression.chars().chain([' ']) {
        if letter.is_alphanumeric() && !in_string {
            identifier.push(letter);
            continue;
        }
        let is_variable = !rule.ends_with('.');
        if is_variable && ["object", "oldObject", "request"].contains(&identifier.as_str()) {
            rule.push_str("self.");
        }
        rule.push_str(&identifier);
        identifier.clear();
        rule.push(letter);
        in_string ^= letter == '\'';
    }
    let evaluate = |rule: String| {
        // Annotations and managed fields are maps: the keys of objects would be escaped as CEL
        // names.
        let annotations = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let open = |properties: Value| {
            json!({
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": properties,
            })
        };
        let fields = json!({"type": "object", "additionalProperties": open(json!({}))});
        let entry = open(json!({"fieldsV1": fields}));
        let entries = json!({"type": "array", "items": entry});
        let metadata = open(json!({"annotations": annotations, "managedFields": entries}));
        let object = open(json!({"metadata": metadata}));
        let mut schema = open(json!({"oldObject": object, "object": object}));
        schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "no"}]);
        match Validator::new().validate(&schema, request, None) {
            Ok(()) => true,
            Err(errors) => {
                let messages: Vec<String> =
                    errors.into_vec().into_iter().map(|error| error.message).collect();
                assert_eq!(messages, ["no"], "{expression} failed on {request}");
                false
            }
        }
    };
    let (result, negated) = (evaluate(rule.clone()), evaluate(format!("!({rule})")));
    assert_ne!(result, negated, "{expression} has no result for {request}");
    result
}

/// A request as match conditions have it.
fn request(operation: &str, version: &str, old: &Value, new: &Value) -> Value {
    json!({
        "request": {
            "operation": operation,
            "requestKind": {"version": version},
            "userInfo": {"username": "user"},
        },
        "oldObject": old,
        "object": new,
    })
}

#[test]
fn update_without_spec_changes_calls_no_webhook() {
    let old = json!({"metadata": {"name": "main"}, "spec": {"replicas": 3}});
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"team": "mine"});
    labelled["metadata"]["finalizers"] = json!(["x"]);
    let mut scaled = old.clone();
    scaled["spec"]["replicas"] = json!(5);
    let bare = json!({"metadata": {"name": "main"}});
    for name in ["default", "check"] {
        assert!(!is_called(name, &request("UPDATE", "v1", &old, &old)));
        assert!(!is_called(name, &request("UPDATE", "v1", &old, &labelled)));
        assert!(is_called(name, &request("UPDATE", "v1", &old, &scaled)));
        assert!(is_called(name, &request("UPDATE", "v1", &old, &bare)), "spec removed");
        assert!(is_called(name, &request("UPDATE", "v1", &bare, &old)), "spec added");
        assert!(is_called(name, &request("CREATE", "v1", &Value::Null, &old)));
    }
}

#[test]
fn update_in_an_older_version_always_calls_the_webhooks() {
    let old = json!({"metadata": {"name": "main"}, "spec": {"replicas": 3}});
    for version in ["v1beta1", "v1alpha1"] {
        for name in ["default", "check"] {
            assert!(is_called(name, &request("UPDATE", version, &old, &old)), "{name} {version}");
        }
    }
}

#[test]
fn apply_that_releases_fields_calls_the_webhook_even_if_the_spec_is_unchanged() {
    let with = |managed_fields: &Value| {
        let metadata = json!({"name": "main", "managedFields": managed_fields});
        json!({"metadata": metadata, "spec": {"replicas": 3}})
    };
    let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": fields}});
    let mine = |fields| entry("me", "Apply", fields);
    let other = entry("other", "Update", json!({"f:replicas": {}}));
    let called = |manager: &str, old: Value, new: Value| {
        let mut request = request("UPDATE", "v1", &with(&old), &with(&new));
        request["request"]["options"] = json!({"fieldManager": manager});
        is_called("default", &request)
    };
    let (all, fewer) = (mine(json!({"f:a": {}, "f:b": {}})), mine(json!({"f:a": {}})));
    assert!(called("me", json!([all, other]), json!([fewer, other])));
    assert!(called("me", json!([all, other]), json!([other])), "all fields released");
    assert!(!called("me", json!([all, other]), json!([other, all])), "no field released");
    assert!(
        !called("other", json!([all, other]), json!([all])),
        "an Update entry releases nothing"
    );
    assert!(!called("me", json!([other]), json!([other, all])), "a new manager releases nothing");
    // Labels and finalizers do not matter.
    let mut labelled = fewer.clone();
    labelled["fieldsV1"]["f:metadata"] = json!({"f:labels": {"f:team": {}}});
    assert!(!called("me", json!([labelled, other]), json!([fewer, other])));
    // Entries without a manager or without fields are ignored.
    for empty in [json!({"operation": "Apply"}), json!({"operation": "Apply", "manager": "me"})] {
        assert!(!called("me", json!([empty]), json!([empty])), "{empty}");
    }
}

#[test]
fn terminating_object_is_not_validated_but_still_mutated() {
    let terminating = json!({
        "metadata": {"name": "main", "deletionTimestamp": "2026-01-31T12:00:00Z"},
        "spec": {"replicas": 3},
    });
    let mut changed = terminating.clone();
    changed["spec"]["replicas"] = json!(99);
    for version in ["v1", "v1alpha1"] {
        assert!(!is_called("check", &request("UPDATE", version, &terminating, &changed)));
        assert!(is_called("default", &request("UPDATE", version, &terminating, &changed)));
    }
    // Only the old object counts: a request can set any value in the new one.
    let existing = json!({"metadata": {"name": "main"}, "spec": {"replicas": 3}});
    assert!(is_called("check", &request("UPDATE", "v1", &existing, &changed)));
}

#[test]
fn deletion_calls_the_webhook_only_for_protected_objects() {
    let delete = |annotations: Value, user: &str| {
        let mut old = json!({"metadata": {"name": "main"}});
        if !annotations.is_null() {
            old["metadata"]["annotations"] = annotations;
        }
        let mut request = request("DELETE", "v1", &old, &Value::Null);
        request["request"]["userInfo"]["username"] = json!(user);
        is_called("protect", &request)
    };
    let protected = json!({names::DELETION_PROTECTION_ANNOTATION: "true"});
    assert!(delete(protected.clone(), "user"));
    assert!(!delete(Value::Null, "user"));
    assert!(!delete(json!({}), "user"));
    assert!(!delete(json!({"another": "true"}), "user"));
    assert!(!delete(json!({names::DELETION_PROTECTION_ANNOTATION: "false"}), "user"));
    for user in [
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:kube-controller-manager",
    ] {
        assert!(!delete(protected.clone(), user), "{user} is blocked");
    }
}

#[test]
fn every_scale_request_calls_the_webhooks() {
    // A Scale omits 0 replicas, so a condition on the number would fail.
    for name in ["scale-default", "scale"] {
        assert_eq!(webhook(name)["matchConditions"], Value::Null, "{name}");
    }
}
