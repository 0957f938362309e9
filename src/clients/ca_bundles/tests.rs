//! Parsed targets and injected bundles.

use super::*;
use crate::api::crd;

const BUNDLE: &[u8] = b"-----BEGIN CERTIFICATE-----\n";

fn definition(value: Value) -> TargetWebhooks {
    serde_json::from_value::<wire::Definition>(value).unwrap().into_target()
}

fn configuration(value: Value) -> TargetWebhooks {
    serde_json::from_value::<wire::Configuration>(value).unwrap().into_target()
}

#[test]
fn crds_of_this_release_are_parsed_with_their_conversion_service() {
    let crds = crd::all().into_iter().filter(|crd| crd.spec.conversion.is_some());
    let mut count = 0;
    for mut crd in crds {
        crd.metadata.uid = Some("uid".to_owned());
        crd.metadata.resource_version = Some("5".to_owned());
        crd.metadata.generation = Some(3);
        let found = definition(serde_json::to_value(&crd).unwrap());
        let service = Some((names::NAMESPACE.to_owned(), names::WEBHOOK_SERVICE.to_owned()));
        let hook = WebhookClientConfig { name: String::new(), service, bundle: Vec::new() };
        let (uid, version) = ("uid".to_owned(), "5".to_owned());
        assert_eq!(found, TargetWebhooks { uid, version, generation: 3, hooks: vec![hook] });
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn crd_without_conversion_webhook_has_no_client_config() {
    for conversion in [json!(null), json!({ "strategy": "None" }), json!({})] {
        let found = definition(json!({ "metadata": {}, "spec": { "conversion": conversion } }));
        assert_eq!(found.hooks, []);
    }
    let by_url = json!({ "strategy": "Webhook", "webhook": { "clientConfig": { "url": "u" } } });
    let found = definition(json!({ "spec": { "conversion": by_url } }));
    assert_eq!(found.hooks.len(), 1);
    assert_eq!(found.hooks[0].service, None);
}

#[test]
fn every_webhook_of_a_configuration_is_parsed_with_its_bundle() {
    let hook = |name: &str, bundle: Option<&[u8]>| {
        json!({ "name": name, "clientConfig": {
            "service": { "namespace": "space", "name": "service", "path": "/p", "port": 443 },
            "caBundle": bundle.map(|bundle| STANDARD.encode(bundle)),
        }})
    };
    let found = configuration(json!({ "webhooks": [hook("a", Some(BUNDLE)), hook("b", None)] }));
    let bundles: Vec<(&str, &[u8])> =
        found.hooks.iter().map(|hook| (hook.name.as_str(), hook.bundle.as_slice())).collect();
    assert_eq!(bundles, [("a", BUNDLE), ("b", b"")]);
    assert_eq!(configuration(json!({ "webhooks": null })).hooks, []);
}

#[test]
fn only_the_bundle_is_written_and_only_to_the_object_that_was_read() {
    let found = TargetWebhooks {
        uid: "uid".to_owned(),
        version: "5".to_owned(),
        generation: 3,
        hooks: ["a", "b"]
            .map(|name| WebhookClientConfig {
                name: name.to_owned(),
                service: None,
                bundle: Vec::new(),
            })
            .into(),
    };
    let body = |target: &Target, hooks| {
        Injection { target, found: &found, hooks, bundle: BUNDLE.to_vec() }.body()
    };
    let metadata = |name: &str| json!({ "name": name, "uid": "uid", "resourceVersion": "5" });
    let config = json!({ "caBundle": STANDARD.encode(BUNDLE) });
    assert_eq!(
        body(&Target::Definition("things.x".to_owned()), vec![&found.hooks[0]]),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata("things.x"),
            "spec": { "conversion": { "webhook": { "clientConfig": config } } },
        })
    );
    for (target, kind) in [
        (Target::Validating, "ValidatingWebhookConfiguration"),
        (Target::Mutating, "MutatingWebhookConfiguration"),
    ] {
        assert_eq!(
            body(&target, vec![&found.hooks[1]]),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": metadata(names::WEBHOOK_CONFIGURATION),
                "webhooks": [{ "name": "b", "clientConfig": config }],
            })
        );
    }
}
