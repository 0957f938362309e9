//! Schemas and CEL rules: every rule accepts and rejects the specs of its case, every rule has a
//! case, and every field is documented and bounded.
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
    let result = Validator::new().validate(schema, new, old);
    let errors = result.err().map(ValidationErrors::into_vec).unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}

#[test]
fn every_rule_accepts_and_rejects_the_specs_of_its_case() {
    let mut broken = Vec::new();
    for case in cases() {
        let schema = schema(&case.kind, &case.version);
        let old = case.old_object("main");
        let accepted = violations(&schema, old.as_ref(), &case.object("main", true));
        let rejected = violations(&schema, old.as_ref(), &case.object("main", false));
        if !accepted.is_empty() || rejected != [case.message.clone()] {
            let Case { kind, version, path, .. } = &case;
            broken.push(format!(
                "{kind} {version} {path}: {}\n  accepted: {accepted:?}\n  rejected: {rejected:?}",
                case.message
            ));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Visits every schema below `schema`, with its path.
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
fn visit_all(mut visit: impl FnMut(&str, &str, &str, &Value)) {
    for crd in crd::all() {
        let kind = crd.spec.names.kind;
        for version in crd.spec.versions {
            let schema = schema(&kind, &version.name);
            each(&schema, "", &mut |at, schema| visit(&kind, &version.name, at, schema));
        }
    }
}

#[test]
fn every_rule_has_a_case_and_every_case_a_rule() {
    let mut rules = BTreeSet::new();
    visit_all(|kind, version, at, schema| {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message = rule["message"].as_str().unwrap();
            rules.insert(format!("{kind} {version} {at}: {message}"));
        }
    });
    let covered: BTreeSet<String> = cases()
        .iter()
        .map(|Case { kind, version, path, message, .. }| {
            format!("{kind} {version} {path}: {message}")
        })
        .collect();
    let missing: Vec<_> = rules.symmetric_difference(&covered).collect();
    assert!(missing.is_empty(), "a rule without a case, or a case without a rule: {missing:#?}");
    assert!(rules.len() > 80, "only {} rules were found", rules.len());
}

#[test]
fn every_field_is_documented_and_bounded() {
    let mut broken = Vec::new();
    visit_all(|kind, version, at, schema| {
        let mut report = |error: &str| broken.push(format!("{kind} {version} {at}: {error}"));
        let lacks = |key: &str| schema.get(key).is_none();
        if !at.ends_with(['}', ']']) && lacks("description") {
            report("has no description");
        }
        let unbounded = lacks("enum") && lacks("maxLength");
        match schema["type"].as_str() {
            Some("string") if unbounded => report("has no maxLength"),
            Some("integer") if lacks("minimum") || lacks("maximum") => report("has no bounds"),
            Some("array") if lacks("maxItems") => report("has no maxItems"),
            Some("array") if lacks("x-kubernetes-list-type") => report("has no list type"),
            Some("object") if !lacks("additionalProperties") && lacks("maxProperties") => {
                report("has no maxProperties");
            }
            _ => {}
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if schema["properties"].get(name.as_str().unwrap()).is_none() {
                report(&format!("requires {name}, which it does not have"));
            }
        }
        for key in ["nullable", "x-kubernetes-preserve-unknown-fields"] {
            if !lacks(key) {
                report(&format!("is {key}"));
            }
        }
    });
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn schema_default_is_in_every_version_or_in_none() {
    let mut defaults: Vec<String> = Vec::new();
    visit_all(|kind, version, at, schema| {
        if let Some(default) = schema.get("default") {
            defaults.push(format!("{kind} {version} {at} = {default}"));
        }
    });
    // A default that one version has and another lacks would be missing on reads of old objects.
    let size = ["v1 .spec.replicas = 3", "v1beta1 .spec.size = 3", "v1alpha1 .spec.size = 3"];
    assert_eq!(defaults, size.map(|default| format!("EtcdCluster {default}")));
}

#[test]
fn every_version_has_its_subresources_and_every_kind_its_names() {
    for crd in crd::all() {
        let spec = crd.spec;
        let kind = &spec.names.kind;
        assert_eq!(spec.names.categories, Some(vec!["quorate".to_owned()]), "{kind}");
        assert!(spec.names.short_names.is_some_and(|names| !names.is_empty()), "{kind}");
        assert_eq!(spec.scope, "Namespaced", "{kind}");
        let versions: Vec<&str> =
            spec.versions.iter().map(|version| version.name.as_str()).collect();
        let stored: Vec<&str> = spec
            .versions
            .iter()
            .filter(|version| version.storage)
            .map(|version| version.name.as_str())
            .collect();
        assert_eq!(stored, ["v1"], "{kind}");
        let three = ["EtcdCluster", "ExampleApp"].contains(&kind.as_str());
        let expected: &[&str] = if three { &["v1", "v1beta1", "v1alpha1"] } else { &["v1"] };
        assert_eq!(versions, expected, "{kind}");
        assert_eq!(spec.conversion.is_some(), three, "{kind}");
        for version in &spec.versions {
            let subresources = version.subresources.as_ref().unwrap();
            assert!(subresources.status.is_some(), "{kind} {}", version.name);
            // The white paper has no field for the number of replicas.
            let scales =
                three && (kind.as_str(), version.name.as_str()) != ("ExampleApp", "v1alpha1");
            assert_eq!(subresources.scale.is_some(), scales, "{kind} {}", version.name);
            let columns = version.additional_printer_columns.as_ref().unwrap();
            assert_eq!(columns.iter().filter(|column| column.name == "Age").count(), 1, "{kind}");
            assert!(columns.iter().all(|column| column.description.is_some()), "{kind}");
        }
    }
}
