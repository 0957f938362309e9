//! The schemas and their rules: every rule in CEL accepts and refuses as its case says, every rule
//! has a case, and every field is documented and bounded.
//! Comes in: the definitions, and the cases of `tests/rules`. Goes out: each rule without a case and
//! each case that went otherwise.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/rule_cases.rs"]
mod rule_cases;
#[path = "support/schemas.rs"]
mod schemas;

use std::collections::BTreeSet;

use kube::core::cel::{ValidationErrors, Validator};
use quorate::api::crd;
use rule_cases::{Case, cases};
use schemas::schema;
use serde_json::Value;

fn violations(schema: &Value, old: Option<&Value>, new: &Value) -> Vec<String> {
    let judged = Validator::new().validate(schema, new, old);
    let errors = judged.err().map(ValidationErrors::into_vec).unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}

#[test]
fn every_rule_accepts_and_refuses_as_its_case_says() {
    let mut broken = Vec::new();
    for case in cases() {
        let schema = schema(&case.kind, &case.version);
        let old = case.before("main");
        let accepted = violations(&schema, old.as_ref(), &case.object("main", true));
        let refused = violations(&schema, old.as_ref(), &case.object("main", false));
        if !accepted.is_empty() || refused != [case.says.clone()] {
            let Case { kind, version, at, .. } = &case;
            broken.push(format!(
                "{kind} {version} {at}: {}\n  accepted: {accepted:?}\n  refused: {refused:?}",
                case.says
            ));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Every schema below `schema`, with its place.
fn each(schema: &Value, at: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(at, schema);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        each(field, &format!("{at}.{name}"), visit);
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(below) = schema.get(key).filter(|below| below.is_object()) {
            each(below, &format!("{at}{step}"), visit);
        }
    }
}

/// Every schema of every kind and version.
fn everywhere(mut visit: impl FnMut(&str, &str, &str, &Value)) {
    for definition in crd::all() {
        let kind = definition.spec.names.kind;
        for version in definition.spec.versions {
            let schema = schema(&kind, &version.name);
            each(&schema, "", &mut |at, schema| visit(&kind, &version.name, at, schema));
        }
    }
}

#[test]
fn every_rule_has_a_case_and_every_case_a_rule() {
    let mut rules = BTreeSet::new();
    everywhere(|kind, version, at, schema| {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let says = rule["message"].as_str().unwrap();
            rules.insert(format!("{kind} {version} {at}: {says}"));
        }
    });
    let tried: BTreeSet<String> = cases()
        .iter()
        .map(|Case { kind, version, at, says, .. }| format!("{kind} {version} {at}: {says}"))
        .collect();
    let missing: Vec<_> = rules.symmetric_difference(&tried).collect();
    assert!(missing.is_empty(), "a rule without a case, or a case without a rule: {missing:#?}");
    assert!(rules.len() > 80, "only {} rules were found", rules.len());
}

#[test]
fn every_field_is_documented_and_bounded() {
    let mut broken = Vec::new();
    everywhere(|kind, version, at, schema| {
        let mut complain = |words: &str| broken.push(format!("{kind} {version} {at}: {words}"));
        let lacks = |key: &str| schema.get(key).is_none();
        if !at.ends_with(['}', ']']) && lacks("description") {
            complain("has no description");
        }
        let open_text = lacks("enum") && lacks("maxLength");
        match schema["type"].as_str() {
            Some("string") if open_text => complain("has no maxLength"),
            Some("integer") if lacks("minimum") || lacks("maximum") => complain("has no bounds"),
            Some("array") if lacks("maxItems") => complain("has no maxItems"),
            Some("array") if lacks("x-kubernetes-list-type") => complain("has no list type"),
            Some("object") if !lacks("additionalProperties") && lacks("maxProperties") => {
                complain("has no maxProperties");
            }
            _ => {}
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if schema["properties"].get(name.as_str().unwrap()).is_none() {
                complain(&format!("requires {name}, which it does not have"));
            }
        }
        for key in ["nullable", "x-kubernetes-preserve-unknown-fields"] {
            if !lacks(key) {
                complain(&format!("is {key}"));
            }
        }
    });
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_schema_default_stands_in_every_version_or_in_none() {
    let mut defaults: Vec<String> = Vec::new();
    everywhere(|kind, version, at, schema| {
        if let Some(default) = schema.get("default") {
            defaults.push(format!("{kind} {version} {at} = {default}"));
        }
    });
    // A default that one version has and another lacks would be missing on reads of old objects.
    let size = ["v1 .spec.replicas = 3", "v1beta1 .spec.size = 3", "v1alpha1 .spec.size = 3"];
    assert_eq!(defaults, size.map(|words| format!("EtcdCluster {words}")));
}

#[test]
fn every_version_has_its_subresources_and_every_kind_its_names() {
    for definition in crd::all() {
        let spec = definition.spec;
        let kind = &spec.names.kind;
        assert_eq!(spec.names.categories, Some(vec!["quorate".to_owned()]), "{kind}");
        assert!(spec.names.short_names.is_some_and(|names| !names.is_empty()), "{kind}");
        assert_eq!(spec.scope, "Namespaced", "{kind}");
        let versions: Vec<&str> = spec.versions.iter().map(|it| it.name.as_str()).collect();
        let stored: Vec<&str> =
            spec.versions.iter().filter(|it| it.storage).map(|it| it.name.as_str()).collect();
        assert_eq!(stored, ["v1"], "{kind}");
        let three = ["EtcdCluster", "ExampleApp"].contains(&kind.as_str());
        let expected: &[&str] = if three { &["v1", "v1beta1", "v1alpha1"] } else { &["v1"] };
        assert_eq!(versions, expected, "{kind}");
        assert_eq!(spec.conversion.is_some(), three, "{kind}");
        for version in &spec.versions {
            let subresources = version.subresources.as_ref().unwrap();
            assert!(subresources.status.is_some(), "{kind} {}", version.name);
            // The white paper's shape has no place for a number of replicas.
            let scales =
                three && (kind.as_str(), version.name.as_str()) != ("ExampleApp", "v1alpha1");
            assert_eq!(subresources.scale.is_some(), scales, "{kind} {}", version.name);
            let columns = version.additional_printer_columns.as_ref().unwrap();
            assert_eq!(columns.iter().filter(|column| column.name == "Age").count(), 1, "{kind}");
            assert!(columns.iter().all(|column| column.description.is_some()), "{kind}");
        }
    }
}
