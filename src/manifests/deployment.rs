//! The operator's Deployment, admitted by the `restricted` pod security standard.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment,
};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction,
    ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements,
    SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Install, disruption, labels};
use crate::api::names;

/// A leader and a standby.
const REPLICAS: i32 = 2;
/// The user of the image.
const USER: i64 = 65532;
/// Longer than a graceful shutdown: a terminating replica serves webhooks until no API server
/// connects to it any more, and then releases the Lease.
const TERMINATION_GRACE_SECONDS: i64 = 45;
/// Webhook requests in flight are bounded at 64 MiB and take several times that when parsed: 300
/// MiB were measured under attack. An idle operator uses a small part of it.
const MEMORY_LIMIT: &str = "512Mi";

/// The Deployment.
pub(super) fn deployment(install: &Install) -> Deployment {
    Deployment {
        metadata: labels::metadata(&install.namespace),
        spec: Some(DeploymentSpec {
            replicas: Some(REPLICAS),
            revision_history_limit: Some(3),
            selector: labels::selector(),
            // A new replica must be ready before an old one terminates: a version that cannot reach
            // the API server never replaces one that can.
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(1)),
                    max_unavailable: Some(IntOrString::Int(0)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels::labels()),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(install)),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn pod(install: &Install) -> PodSpec {
    PodSpec {
        service_account_name: Some(names::OPERATOR.to_owned()),
        automount_service_account_token: Some(true),
        // The variables of the Service `quorate` would look like settings of the operator.
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        affinity: Some(disruption::anti_affinity()),
        topology_spread_constraints: Some(vec![disruption::topology_spread()]),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(install)],
        ..PodSpec::default()
    }
}

fn container(install: &Install) -> Container {
    Container {
        name: names::OPERATOR.to_owned(),
        image: Some(install.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(vec!["run".to_owned()]),
        env: Some(vec![
            own_field(names::POD_NAME_VARIABLE, "metadata.name"),
            own_field(names::POD_NAMESPACE_VARIABLE, "metadata.namespace"),
            EnvVar {
                name: names::AGENT_IMAGE_VARIABLE.to_owned(),
                value: Some(install.image.clone()),
                ..EnvVar::default()
            },
        ]),
        ports: Some(vec![
            port(names::METRICS_PORT_NAME, names::METRICS_PORT),
            port(names::WEBHOOK_PORT_NAME, names::WEBHOOK_PORT),
        ]),
        liveness_probe: Some(probe(names::LIVE_PATH, 10)),
        readiness_probe: Some(probe(names::READY_PATH, 5)),
        resources: Some(ResourceRequirements {
            requests: Some(
                [quantity("cpu", "20m"), quantity("memory", "32Mi")].into_iter().collect(),
            ),
            limits: Some(
                [quantity("cpu", "500m"), quantity("memory", MEMORY_LIMIT)].into_iter().collect(),
            ),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn own_field(variable: &str, path: &str) -> EnvVar {
    EnvVar {
        name: variable.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn probe(path: &str, period_seconds: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(names::METRICS_PORT_NAME.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        timeout_seconds: Some(3),
        failure_threshold: Some(3),
        ..Probe::default()
    }
}

fn quantity(resource: &str, amount: &str) -> (String, Quantity) {
    (resource.to_owned(), Quantity(amount.to_owned()))
}
