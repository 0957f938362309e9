//! Services for metrics and webhooks.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::labels;
use crate::api::names;

/// The Service for scraping every replica.
pub(super) fn metrics(namespace: &str) -> Service {
    service(
        names::OPERATOR,
        namespace,
        port(names::METRICS_PORT_NAME, i32::from(names::METRICS_PORT)),
    )
}

/// The Service of the webhooks. Only ready replicas are endpoints, and a replica is ready only once
/// the API server trusts its certificate.
pub(super) fn webhook(namespace: &str) -> Service {
    service(
        names::WEBHOOK_SERVICE,
        namespace,
        port(names::WEBHOOK_PORT_NAME, names::WEBHOOK_SERVICE_PORT),
    )
}

fn service(name: &str, namespace: &str, port: ServicePort) -> Service {
    Service {
        metadata: labels::named(name, namespace),
        spec: Some(ServiceSpec {
            selector: Some(labels::selector_labels()),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// A port that targets the container port of the same name.
fn port(name: &str, number: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: number,
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}
