//! Which requests the API server asks us about, and which it does not.
//! Comes in: the two webhook configurations. Goes out: each promise that they break. The conditions
//! are run as what they are, in CEL, over requests as the API server would show them.

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

fn webhook(word: &str) -> Value {
    let (kind, _) = WEBHOOKS.into_iter().find(|(_, it)| *it == word).unwrap();
    let name = format!("{word}.quorate.appdelivery.cncf.io");
    let webhooks = object(kind)["webhooks"].as_array().unwrap().clone();
    webhooks.into_iter().find(|it| it["name"] == name).unwrap()
}

#[test]
fn there_are_these_webhooks_and_no_others() {
    for kind in [MUTATING, VALIDATING] {
        let configuration = object(kind);
        assert_eq!(configuration["metadata"]["name"], names::WEBHOOK_CONFIGURATION);
        let there: Vec<Value> = configuration["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|webhook| webhook["name"].clone())
            .collect();
        let expected: Vec<Value> = WEBHOOKS
            .into_iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, word)| json!(format!("{word}.quorate.appdelivery.cncf.io")))
            .collect();
        assert_eq!(there, expected);
    }
}

#[test]
fn every_field_that_would_be_defaulted_is_spelt_out_and_the_bundle_is_not() {
    for (kind, word) in WEBHOOKS {
        let webhook = webhook(word);
        for (field, value) in [
            ("matchPolicy", json!("Equivalent")),
            ("failurePolicy", json!("Fail")),
            ("sideEffects", json!("None")),
            ("timeoutSeconds", json!(5)),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("admissionReviewVersions", json!(["v1"])),
        ] {
            assert_eq!(webhook[field], value, "{word}: {field}");
        }
        let again = if kind == MUTATING { json!("IfNeeded") } else { Value::Null };
        assert_eq!(webhook["reinvocationPolicy"], again, "{word}");
        let path = if kind == MUTATING { "/mutate" } else { "/validate" };
        let client = json!({"service": {
            "namespace": names::NAMESPACE, "name": "quorate-webhook", "path": path, "port": 443,
        }});
        assert_eq!(webhook["clientConfig"], client, "{word}");
    }
}

#[test]
fn the_rules_name_our_kinds_in_the_hub_version_and_nothing_else() {
    let plurals: [(&str, &[&str]); 2] = [
        (names::ETCD_GROUP, &["etcdclusters", "etcdmembers", "etcdbackups", "etcdrestores"]),
        (names::APP_GROUP, &["exampleapps"]),
    ];
    let scales: [(&str, &[&str]); 2] =
        [(names::ETCD_GROUP, &["etcdclusters/scale"]), (names::APP_GROUP, &["exampleapps/scale"])];
    for (word, operations, resources) in [
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
        assert_eq!(webhook(word)["rules"], json!(rules), "{word}");
    }
    let groups: BTreeSet<&str> = kinds::ALL.iter().map(|kind| kind.group).collect();
    assert_eq!(groups, BTreeSet::from([names::ETCD_GROUP, names::APP_GROUP]));
    assert!(kinds::ALL.iter().all(|kind| kind.hub().name == "v1"), "the rules say v1");
}

/// Whether the API server would call the webhook: every condition holds. A condition that fails
/// counts as one that refuses the request, so it must not happen.
fn is_called(word: &str, request: &Value) -> bool {
    let conditions = webhook(word)["matchConditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().all(|condition| holds(condition["expression"].as_str().unwrap(), request))
}

/// Runs one expression. What it calls `object`, `oldObject` and `request` are fields here.
fn holds(expression: &str, request: &Value) -> bool {
    let mut rule = String::new();
    let mut word = String::new();
    let mut in_text = false;
    for letter in expression.chars().chain([' ']) {
        if letter.is_alphanumeric() && !in_text {
            word.push(letter);
            continue;
        }
        let begins = !rule.ends_with('.');
        if begins && ["object", "oldObject", "request"].contains(&word.as_str()) {
            rule.push_str("self.");
        }
        rule.push_str(&word);
        word.clear();
        rule.push(letter);
        in_text ^= letter == '\'';
    }
    let answers = |rule: String| {
        // Annotations and owned fields are maps: the keys of anything else would be taken for names in CEL.
        let annotations = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let open = |properties: Value| {
            json!({
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": properties,
            })
        };
        let fields = json!({"type": "object", "additionalProperties": open(json!({}))});
        let owner = open(json!({"fieldsV1": fields}));
        let owners = json!({"type": "array", "items": owner});
        let metadata = open(json!({"annotations": annotations, "managedFields": owners}));
        let object = open(json!({"metadata": metadata}));
        let mut schema = open(json!({"oldObject": object, "object": object}));
        schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "no"}]);
        match Validator::new().validate(&schema, request, None) {
            Ok(()) => true,
            Err(errors) => {
                let said: Vec<String> =
                    errors.into_vec().into_iter().map(|error| error.message).collect();
                assert_eq!(said, ["no"], "{expression} failed on {request}");
                false
            }
        }
    };
    let (yes, no) = (answers(rule.clone()), answers(format!("!({rule})")));
    assert_ne!(yes, no, "{expression} has no answer to {request}");
    yes
}

/// A request as conditions see it.
fn request(operation: &str, version: &str, old: &Value, new: &Value) -> Value {
    json!({
        "request": {
            "operation": operation,
            "requestKind": {"version": version},
            "userInfo": {"username": "somebody"},
        },
        "oldObject": old,
        "object": new,
    })
}

#[test]
fn an_update_that_leaves_the_spec_alone_needs_no_webhook() {
    let old = json!({"metadata": {"name": "main"}, "spec": {"replicas": 3}});
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"team": "mine"});
    labelled["metadata"]["finalizers"] = json!(["x"]);
    let mut scaled = old.clone();
    scaled["spec"]["replicas"] = json!(5);
    let bare = json!({"metadata": {"name": "main"}});
    for word in ["default", "check"] {
        assert!(!is_called(word, &request("UPDATE", "v1", &old, &old)));
        assert!(!is_called(word, &request("UPDATE", "v1", &old, &labelled)));
        assert!(is_called(word, &request("UPDATE", "v1", &old, &scaled)));
        assert!(is_called(word, &request("UPDATE", "v1", &old, &bare)), "a spec that goes");
        assert!(is_called(word, &request("UPDATE", "v1", &bare, &old)), "a spec that comes");
        assert!(is_called(word, &request("CREATE", "v1", &Value::Null, &old)));
    }
}

#[test]
fn an_update_in_an_older_version_is_always_seen() {
    let old = json!({"metadata": {"name": "main"}, "spec": {"replicas": 3}});
    for version in ["v1beta1", "v1alpha1"] {
        for word in ["default", "check"] {
            assert!(is_called(word, &request("UPDATE", version, &old, &old)), "{word} {version}");
        }
    }
}

#[test]
fn an_apply_that_owns_other_fields_than_before_is_seen_though_the_spec_is_what_it_was() {
    let with = |owners: &Value| {
        let metadata = json!({"name": "main", "managedFields": owners});
        json!({"metadata": metadata, "spec": {"replicas": 3}})
    };
    let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": fields}});
    let mine = |fields| entry("me", "Apply", fields);
    let other = entry("other", "Update", json!({"f:replicas": {}}));
    let asked = |manager: &str, old: Value, new: Value| {
        let mut request = request("UPDATE", "v1", &with(&old), &with(&new));
        request["request"]["options"] = json!({"fieldManager": manager});
        is_called("default", &request)
    };
    let (all, fewer) = (mine(json!({"f:a": {}, "f:b": {}})), mine(json!({"f:a": {}})));
    assert!(asked("me", json!([all, other]), json!([fewer, other])));
    assert!(asked("me", json!([all, other]), json!([other])), "nothing of theirs is left");
    assert!(!asked("me", json!([all, other]), json!([other, all])), "nothing of theirs changed");
    assert!(
        !asked("other", json!([all, other]), json!([all])),
        "who only updates withdraws nothing"
    );
    assert!(!asked("me", json!([other]), json!([other, all])), "who comes withdraws nothing");
    // Labels and finalizers are nobody's business here.
    let mut labelled = fewer.clone();
    labelled["fieldsV1"]["f:metadata"] = json!({"f:labels": {"f:team": {}}});
    assert!(!asked("me", json!([labelled, other]), json!([fewer, other])));
    // Whoever is nameless, or says nothing of fields, is passed over.
    for empty in [json!({"operation": "Apply"}), json!({"operation": "Apply", "manager": "me"})] {
        assert!(!asked("me", json!([empty]), json!([empty])), "{empty}");
    }
}

#[test]
fn an_object_that_is_being_deleted_is_not_checked_but_still_carried() {
    let going = json!({
        "metadata": {"name": "main", "deletionTimestamp": "2026-01-31T12:00:00Z"},
        "spec": {"replicas": 3},
    });
    let mut changed = going.clone();
    changed["spec"]["replicas"] = json!(99);
    for version in ["v1", "v1alpha1"] {
        assert!(!is_called("check", &request("UPDATE", version, &going, &changed)));
        assert!(is_called("default", &request("UPDATE", version, &going, &changed)));
    }
    // Only the old object can say it: a request could say anything of the new one.
    let there = json!({"metadata": {"name": "main"}, "spec": {"replicas": 3}});
    assert!(is_called("check", &request("UPDATE", "v1", &there, &changed)));
}

#[test]
fn only_what_is_protected_asks_before_it_is_deleted() {
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
    assert!(delete(protected.clone(), "somebody"));
    assert!(!delete(Value::Null, "somebody"));
    assert!(!delete(json!({}), "somebody"));
    assert!(!delete(json!({"another": "true"}), "somebody"));
    assert!(!delete(json!({names::DELETION_PROTECTION_ANNOTATION: "false"}), "somebody"));
    for user in [
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:kube-controller-manager",
    ] {
        assert!(!delete(protected.clone(), user), "{user} is held up");
    }
}

#[test]
fn every_request_for_a_scale_is_seen() {
    // A 0 is left out of a Scale, so a condition over the number would fail on it.
    for word in ["scale-default", "scale"] {
        assert_eq!(webhook(word)["matchConditions"], Value::Null, "{word}");
    }
}
