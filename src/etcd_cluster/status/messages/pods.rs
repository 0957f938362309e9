//! Reasons and messages about pods that do not run, and members that are unreachable.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Pod;

use super::StatusInput;
use crate::etcd_cluster::plan::Reason;
use crate::etcd_cluster::reason::{
    DATA_LOST, POD_GATED, POD_MISSING, POD_TERMINATED, POD_TERMINATING, UNREACHABLE,
};
use crate::etcd_cluster::state::pod::{etcd_container, pod_state};
use crate::etcd_cluster::state::{self, MemberName};

/// The longest message of Kubernetes within a message, in characters.
const MAX_POD_MESSAGE: usize = 300;
/// How many pods a message explains.
const MAX_PODS: usize = 3;

/// Why a member is unreachable: a reason and a message.
pub(crate) fn unreachable(input: &StatusInput<'_>, name: &MemberName) -> (&'static str, String) {
    let Some(pod) = input.inputs.objects.pod(name) else {
        return (POD_MISSING, "Pod does not exist".to_owned());
    };
    match pod_state(pod) {
        state::PodState::Missing => (POD_MISSING, "Pod does not exist".to_owned()),
        state::PodState::Gated => {
            (POD_GATED, "Pod waits for its scheduling gate to be removed".to_owned())
        }
        state::PodState::DataMissing => {
            (DATA_LOST, "Data directory is empty, so the agent does not start etcd".to_owned())
        }
        state::PodState::Terminating => (POD_TERMINATING, "Pod is terminating".to_owned()),
        state::PodState::Terminated => (POD_TERMINATED, "Pod has terminated".to_owned()),
        state::PodState::Active if input.inputs.is_defragmenting(name) => (
            Reason::Defragmenting.name(),
            "Member is being defragmented and unavailable".to_owned(),
        ),
        state::PodState::Active => {
            let error = input.inputs.probe.members.get(name).and_then(|probe| probe.error.clone());
            let message = pod_problem(pod).or(error);
            (UNREACHABLE, message.unwrap_or_else(|| "Waiting for etcd to respond".to_owned()))
        }
    }
}

/// The pods that cannot run, one sentence each.
pub(super) fn pod_problems(input: &StatusInput<'_>) -> Vec<String> {
    let problems = input.inputs.objects.pods.iter().filter_map(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let problem = match pod_state(pod) {
            state::PodState::DataMissing => {
                "data directory is empty, etcd is not started".to_owned()
            }
            state::PodState::Active => pod_problem(pod)?,
            state::PodState::Missing
            | state::PodState::Gated
            | state::PodState::Terminating
            | state::PodState::Terminated => {
                return None;
            }
        };
        Some(format!("Pod {name}: {problem}"))
    });
    problems.take(MAX_PODS).collect()
}

/// Why a pod does not run, as Kubernetes reports it.
pub(crate) fn pod_problem(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        return condition.message.as_deref().or(condition.reason.as_deref()).map(shorten);
    }
    let init = status.init_container_statuses.iter().flatten();
    let mut containers = init.chain(etcd_container(pod));
    let waiting = containers.find_map(|container| container.state.as_ref()?.waiting.as_ref())?;
    if matches!(waiting.reason.as_deref(), Some("PodInitializing" | "ContainerCreating")) {
        return None;
    }
    let parts = [waiting.reason.clone(), waiting.message.clone()];
    Some(shorten(&parts.into_iter().flatten().collect::<Vec<_>>().join(": ")))
}

/// Truncates a message of Kubernetes or of a client, without a full stop.
pub(super) fn shorten(text: &str) -> String {
    text.trim_end_matches('.').chars().take(MAX_POD_MESSAGE).collect()
}
