//! The two containers of a member's pod: what puts the agent there, and etcd.
//! Comes in: a blueprint, a member, and what its pod is told. Goes out: containers that the
//! `restricted` pod security standard admits. May touch: `api`, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, HTTPGetAction, Probe, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::around::{METRICS, PORTS};
use super::tune::{self, Setting};
use super::volumes::{AGENT, DATA, MEMORY, install_mounts};
use super::{Blueprint, NotInThisRelease, Peer};
use crate::api::told::Told;
use crate::etcd_cluster::seen::Name;

/// Where the official image has it.
const ETCD: &str = "/usr/local/bin/etcd";
const SAID_LAST: &str = "FallbackToLogsOnError";
/// Whether etcd has come so far that it can read what it has.
const STARTED: &str = "/livez";
/// Whether the process answers at all. A member that rewrites its file reads nothing until it is done, which takes minutes for a
/// large one; whoever killed it then would only make it begin anew. One that never reads again is seen by the operator.
const LIVE: &str = "/livez?exclude=serializable_read";
/// All that this member can answer for by itself. Whether the members agree is not its to say: nobody
/// would be ready while they do not, and those who wait for them could not even ask.
const READY: &str = "/readyz?exclude=linearizable_read";

/// How often and how long something is asked.
struct Patience {
    every: i32,
    timeout: i32,
    failures: i32,
}

/// Often, to see it soon; and a quarter of an hour, because a large log takes its time.
const START: Patience = Patience { every: 1, timeout: 5, failures: 900 };
/// A start costs more than a slow disk: it must be silent for a minute.
const STAY: Patience = Patience { every: 10, timeout: 10, failures: 6 };
const SERVE: Patience = Patience { every: 2, timeout: 5, failures: 3 };

impl Blueprint<'_> {
    /// Puts this very program where etcd's container finds it.
    pub(super) fn install(&self) -> Container {
        Container {
            name: "agent".to_owned(),
            image: Some(self.agent_image.to_owned()),
            image_pull_policy: self.agent_pull_policy.map(str::to_owned),
            args: Some(words(&["agent", "install", "--to", AGENT])),
            // What etcd is given: more would be held for the whole life of the pod, and less would keep it
            // from being `Guaranteed`.
            resources: Some(self.spec.pods.resources.clone()),
            volume_mounts: Some(install_mounts()),
            security_context: Some(confined()),
            termination_message_policy: Some(SAID_LAST.to_owned()),
            ..Container::default()
        }
    }

    /// etcd, by way of the agent.
    pub(super) fn etcd(
        &self,
        member: &Name,
        told: Told,
        peers: &[Peer],
    ) -> Result<Container, NotInThisRelease> {
        let image = &self.spec.image;
        let agent = format!("{AGENT}/quorate");
        let start = ["--told", told.as_str(), "--data", DATA, "--pod", MEMORY, "--", ETCD];
        Ok(Container {
            name: "etcd".to_owned(),
            image: Some(format!("{}:v{}", image.repository, self.spec.version)),
            image_pull_policy: image.policy.map(|policy| policy.as_str().to_owned()),
            command: Some(words(&[&[agent.as_str(), "agent", "start"][..], &start].concat())),
            args: Some(self.flags(member, peers)?),
            env: Some(tune::variables(self.spec).into_iter().map(variable).collect()),
            ports: Some(PORTS.map(|(name, number)| port(name, number)).to_vec()),
            resources: Some(self.spec.pods.resources.clone()),
            volume_mounts: Some(self.mounts()),
            startup_probe: Some(probe(STARTED, &START)),
            liveness_probe: Some(probe(LIVE, &STAY)),
            readiness_probe: Some(probe(READY, &SERVE)),
            security_context: Some(confined()),
            // What the agent says when it refuses is what a person sees at the pod.
            termination_message_policy: Some(SAID_LAST.to_owned()),
            ..Container::default()
        })
    }
}

fn confined() -> SecurityContext {
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

fn variable(setting: Setting) -> EnvVar {
    let Setting { option, value, why: _ } = setting;
    EnvVar { name: option.to_owned(), value: Some(value), value_from: None }
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn probe(path: &str, patience: &Patience) -> Probe {
    let Patience { every, timeout, failures } = *patience;
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(METRICS.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(every),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}
