//! Renders the containers of a member's pod: the init container that installs the agent, and etcd.
//! Both are admitted by the `restricted` Pod Security Standard.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, HTTPGetAction, Probe, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::options::{self, Flag};
use super::service::{METRICS, PORTS};
use super::volumes::{AGENT_DIR, AGENT_STATE_DIR, DATA_DIR, install_mounts};
use super::{Blueprint, Peer, RenderError};
use crate::api::start_mode::StartMode;
use crate::etcd_cluster::state::MemberName;

/// The path of etcd in the official image.
const ETCD: &str = "/usr/local/bin/etcd";
const TERMINATION_MESSAGE: &str = "FallbackToLogsOnError";
/// Succeeds once etcd can read its data.
const STARTUP_PATH: &str = "/livez";
/// Whether the process responds at all. A member that is defragmented serves no reads until it is
/// done, which takes minutes for a large file; a restart would only start that again. The operator
/// detects a member that never serves reads again.
const LIVENESS_PATH: &str = "/livez?exclude=serializable_read";
/// All checks that concern this member alone. Without quorum no member passes a linearizable read:
/// no endpoint would be ready, and clients that wait for quorum could not even connect.
const READINESS_PATH: &str = "/readyz?exclude=linearizable_read";

/// Period, timeout and failure threshold of a probe; times in seconds.
struct ProbeTiming {
    period: i32,
    timeout: i32,
    failures: i32,
}

/// Frequent, to notice the start early; and for a quarter of an hour, because a large log takes
/// long.
const STARTUP: ProbeTiming = ProbeTiming { period: 1, timeout: 5, failures: 900 };
/// A restart costs more than a slow disk: the member must be unresponsive for a minute.
const LIVENESS: ProbeTiming = ProbeTiming { period: 10, timeout: 10, failures: 6 };
const READINESS: ProbeTiming = ProbeTiming { period: 2, timeout: 5, failures: 3 };

impl Blueprint<'_> {
    /// The init container that copies this binary to where etcd's container finds it.
    pub(super) fn install_container(&self) -> Container {
        Container {
            name: "agent".to_owned(),
            image: Some(self.agent_image.to_owned()),
            image_pull_policy: self.agent_pull_policy.map(str::to_owned),
            args: Some(strings(&["agent", "install", "--to", AGENT_DIR])),
            // The resources of etcd: more would be reserved as long as the pod lives, and less
            // would keep the pod from the QoS class `Guaranteed`.
            resources: Some(self.spec.pods.resources.clone()),
            volume_mounts: Some(install_mounts()),
            security_context: Some(restricted_context()),
            termination_message_policy: Some(TERMINATION_MESSAGE.to_owned()),
            ..Container::default()
        }
    }

    /// etcd, started by the agent.
    pub(super) fn etcd_container(
        &self,
        member: &MemberName,
        start_mode: StartMode,
        peers: &[Peer],
    ) -> Result<Container, RenderError> {
        let image = &self.spec.image;
        let agent = format!("{AGENT_DIR}/quorate");
        let start = [
            "--start-mode",
            start_mode.as_str(),
            "--data",
            DATA_DIR,
            "--pod",
            AGENT_STATE_DIR,
            "--",
            ETCD,
        ];
        Ok(Container {
            name: "etcd".to_owned(),
            image: Some(format!("{}:v{}", image.repository, self.spec.version)),
            image_pull_policy: image.policy.map(|policy| policy.as_str().to_owned()),
            command: Some(strings(&[&[agent.as_str(), "agent", "start"][..], &start].concat())),
            args: Some(self.flags(member, peers)?),
            env: Some(options::go_env(self.spec).into_iter().map(env_var).collect()),
            ports: Some(PORTS.map(|(name, number)| port(name, number)).to_vec()),
            resources: Some(self.spec.pods.resources.clone()),
            volume_mounts: Some(self.mounts()),
            startup_probe: Some(probe(STARTUP_PATH, &STARTUP)),
            liveness_probe: Some(probe(LIVENESS_PATH, &LIVENESS)),
            readiness_probe: Some(probe(READINESS_PATH, &READINESS)),
            security_context: Some(restricted_context()),
            // If the agent does not start etcd, its last log lines become the pod's termination
            // message.
            termination_message_policy: Some(TERMINATION_MESSAGE.to_owned()),
            ..Container::default()
        })
    }
}

fn restricted_context() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Capabilities::default()
        }),
        ..SecurityContext::default()
    }
}

fn env_var(flag: Flag) -> EnvVar {
    let Flag { name, value, reason: _ } = flag;
    EnvVar { name: name.to_owned(), value: Some(value), value_from: None }
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn probe(path: &str, timing: &ProbeTiming) -> Probe {
    let ProbeTiming { period, timeout, failures } = *timing;
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(METRICS.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}
