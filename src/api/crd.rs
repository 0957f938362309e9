//! The CRDs of this release, in the order of installation. `quorate crds` and the drift test use
//! the same list.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod compare;
pub mod stored;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceValidation, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};

use serde_json::Value;

use crate::api::kinds::{self, Kind};
use crate::api::names;

/// All CRDs, with the default namespace of the operator.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    with_webhook_namespace(names::NAMESPACE)
}

/// All CRDs, with the conversion webhook in `namespace`: a CRD is cluster-scoped and names the
/// namespace of the operator's Service.
#[must_use]
pub fn with_webhook_namespace(namespace: &str) -> Vec<CustomResourceDefinition> {
    let mut crds = with_titles();
    for crd in &mut crds {
        if let Some(service) = webhook_service(crd) {
            namespace.clone_into(&mut service.namespace);
        }
    }
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        schema.into_iter().for_each(strip);
    }
    crds
}

/// All CRDs with the titles and examples that validation messages use. `kubectl explain` does not
/// print them, and a CRD must stay small enough for `kubectl apply`.
pub(crate) fn with_titles() -> Vec<CustomResourceDefinition> {
    kinds::ALL.into_iter().map(merged).collect()
}

fn strip(schema: &mut JSONSchemaProps) {
    schema.title = None;
    schema.example = None;
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(strip);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        strip(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        strip(values);
    }
}

/// The CRD with all versions of a kind; the hub is the storage version.
fn merged(kind: &Kind) -> CustomResourceDefinition {
    let mut crd = kind.hub().crd();
    crd.spec.versions = kind
        .versions()
        .flat_map(|version| version.crd().spec.versions)
        .map(|mut version| {
            version.storage = version.name == kind.hub().name;
            if let Some(schema) = version.schema.as_mut() {
                add_rules(schema, (kind.cel_rules)());
                forbid_null_status(schema);
            }
            version
        })
        .collect();
    if kind.has_older_versions() {
        crd.spec.conversion = Some(webhook_conversion());
    }
    crd
}

/// Rules over the whole object are at the root of the schema.
fn add_rules(schema: &mut CustomResourceValidation, rules: Value) {
    if let Some(root) = schema.open_api_v3_schema.as_mut() {
        root.x_kubernetes_validations = serde_json::from_value(rules).ok();
    }
}

/// The derive would allow a null status.
fn forbid_null_status(schema: &mut CustomResourceValidation) {
    let root = schema.open_api_v3_schema.as_mut();
    let status =
        root.and_then(|root| root.properties.as_mut()).and_then(|fields| fields.get_mut("status"));
    if let Some(status) = status {
        status.nullable = None;
    }
}

/// The conversion webhook. The operator injects `caBundle` at runtime.
fn webhook_conversion() -> CustomResourceConversion {
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig {
                service: Some(ServiceReference {
                    namespace: names::NAMESPACE.to_owned(),
                    name: names::WEBHOOK_SERVICE.to_owned(),
                    path: Some(names::CONVERT_PATH.to_owned()),
                    port: Some(names::WEBHOOK_SERVICE_PORT),
                }),
                ..WebhookClientConfig::default()
            }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

/// The Service of the conversion webhook, if the CRD has one.
fn webhook_service(crd: &mut CustomResourceDefinition) -> Option<&mut ServiceReference> {
    let webhook = crd.spec.conversion.as_mut()?.webhook.as_mut()?;
    webhook.client_config.as_mut()?.service.as_mut()
}

/// The file name of a CRD, such as `things.example.org.yaml`.
#[must_use]
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}.{}.yaml", crd.spec.names.plural, crd.spec.group)
}
