//! The custom resource definitions of this release, in the order in which they are installed.
//! Comes in: the namespace of whoever converts. Goes out: definitions, ready to be written as YAML.
//! May touch: k8s-openapi types only. `quorate crds` and the drift test both read this one list.
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

/// Every definition of this release, as it is installed without asking for another namespace.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    with_webhook_namespace(names::NAMESPACE)
}

/// The same, with the Service that converts in `namespace`: a definition has no namespace itself,
/// so it must name the one that the operator lives in.
#[must_use]
pub fn with_webhook_namespace(namespace: &str) -> Vec<CustomResourceDefinition> {
    let mut definitions = with_titles();
    for definition in &mut definitions {
        if let Some(service) = converter(definition) {
            namespace.clone_into(&mut service.namespace);
        }
    }
    for version in definitions.iter_mut().flat_map(|definition| &mut definition.spec.versions) {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        schema.into_iter().for_each(strip);
    }
    definitions
}

/// The same with the titles and examples that the checks speak with. `kubectl explain` does not
/// show them, and a definition must stay small enough for `kubectl apply`.
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

/// One definition with all versions of a kind, the hub stored.
fn merged(kind: &Kind) -> CustomResourceDefinition {
    let mut whole = kind.hub().crd();
    whole.spec.versions = kind
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
        whole.spec.conversion = Some(by_webhook());
    }
    whole
}

/// Rules over the whole object stand at the root of the schema.
fn add_rules(schema: &mut CustomResourceValidation, rules: Value) {
    if let Some(root) = schema.open_api_v3_schema.as_mut() {
        root.x_kubernetes_validations = serde_json::from_value(rules).ok();
    }
}

/// A status is there or not there; the derive would also let it be null.
fn forbid_null_status(schema: &mut CustomResourceValidation) {
    let root = schema.open_api_v3_schema.as_mut();
    let status = root.and_then(|root| root.properties.as_mut()).and_then(|it| it.get_mut("status"));
    if let Some(status) = status {
        status.nullable = None;
    }
}

/// Who converts. The bundle of authorities is not here: the operator puts it in, and only that.
fn by_webhook() -> CustomResourceConversion {
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

/// The Service that converts, if the definition has versions to convert between.
fn converter(definition: &mut CustomResourceDefinition) -> Option<&mut ServiceReference> {
    let webhook = definition.spec.conversion.as_mut()?.webhook.as_mut()?;
    webhook.client_config.as_mut()?.service.as_mut()
}

/// The name of the file that holds one definition, such as `things.example.org.yaml`.
#[must_use]
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}.{}.yaml", definition.spec.names.plural, definition.spec.group)
}
