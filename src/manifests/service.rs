//! How metrics are reached.
//! Comes in: a namespace. Goes out: a Service over the operator's pods.
//! May touch: `api::names` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::labels;
use crate::api::names;

/// The Service that a scraper follows to every replica.
pub(super) fn service(namespace: &str) -> Service {
    Service {
        metadata: labels::metadata(namespace),
        spec: Some(ServiceSpec {
            selector: Some(labels::selected()),
            ports: Some(vec![ServicePort {
                name: Some(names::METRICS_PORT_NAME.to_owned()),
                port: i32::from(names::METRICS_PORT),
                target_port: Some(IntOrString::String(names::METRICS_PORT_NAME.to_owned())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
