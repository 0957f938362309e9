//! What a member's pod shows.
//! Comes in: the pod, and what it would be made from now. Goes out: its state. May touch: `api`,
//! Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;

use crate::api::names;
use crate::api::start_mode::{EXIT_DATA_MISSING, StartMode};
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::{self, MemberName};

/// The container of etcd.
const ETCD: &str = "etcd";
/// The kubelet's words for a container that it cannot make.
const CREATE_ERRORS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerError",
    "CreateContainerConfigError",
];

/// Where a pod is in its life.
pub(crate) fn pod_state(pod: &Pod) -> state::PodState {
    if pod.metadata.deletion_timestamp.is_some() {
        return state::PodState::Terminating;
    }
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    if matches!(phase, Some("Failed" | "Succeeded")) {
        return state::PodState::Terminated;
    }
    let gates = pod.spec.as_ref().and_then(|it| it.scheduling_gates.as_deref());
    if gates.is_some_and(|gates| gates.iter().any(|it| it.name == names::SCHEDULING_GATE)) {
        return state::PodState::Gated;
    }
    if etcd_container(pod).is_some_and(has_data_missing_exit) {
        state::PodState::DataMissing
    } else {
        state::PodState::Active
    }
}

/// The container of etcd, as the kubelet tells of it.
pub(crate) fn etcd_container(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    statuses.iter().find(|it| it.name == ETCD)
}

/// Whether the agent has looked and found that the member's data is gone.
fn has_data_missing_exit(container: &ContainerStatus) -> bool {
    let ended = |state: Option<&k8s_openapi::api::core::v1::ContainerState>| {
        state.and_then(|it| it.terminated.as_ref()).map(|it| it.exit_code)
    };
    let now = ended(container.state.as_ref());
    let runs = container.state.as_ref().is_some_and(|it| it.running.is_some());
    let last = now.or_else(|| ended(container.last_state.as_ref()));
    !runs && last == Some(i32::from(EXIT_DATA_MISSING))
}

/// Whether etcd has ended in the pod for good: a kubelet starts nothing again in one that is on its way out. Its address is
/// nobody's by then, and whoever asks there waits for an answer until the time is up.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    let terminated = |it: &ContainerStatus| it.state.as_ref()?.terminated.as_ref().map(drop);
    match pod_state(pod) {
        state::PodState::Terminated => true,
        state::PodState::Terminating => etcd_container(pod).and_then(terminated).is_some(),
        state::PodState::Missing
        | state::PodState::Gated
        | state::PodState::Active
        | state::PodState::DataMissing => false,
    }
}

/// Whether a pod was told to end and has time for it. Nobody asks its etcd any more: under TLS each connection that is open keeps
/// it from ending for a second or more. Who has not ended when the time is up may never, and is asked again.
pub(crate) fn is_ending(pod: &Pod, now: Timestamp) -> bool {
    pod.metadata.deletion_timestamp.as_ref().is_some_and(|until| now < until.0)
}

/// Whether the kubelet has seen that etcd serves in the pod.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    pod_state(pod) == state::PodState::Active && etcd_container(pod).is_some_and(|it| it.ready)
}

/// Whether etcd has ever run in the pod.
pub(crate) fn has_run(pod: &Pod) -> bool {
    let ran = |it: &ContainerStatus| {
        let begun = |state: Option<&k8s_openapi::api::core::v1::ContainerState>| {
            state.is_some_and(|it| it.running.is_some() || it.terminated.is_some())
        };
        it.restart_count > 0 || begun(it.state.as_ref()) || begun(it.last_state.as_ref())
    };
    etcd_container(pod).is_some_and(ran)
}

/// Whether etcd has failed so often that the kubelet waits with the next start.
pub(crate) fn is_crash_looping(pod: &Pod, attempts: u32) -> bool {
    etcd_container(pod).is_some_and(|it| {
        let waits = it.state.as_ref().is_some_and(|state| state.waiting.is_some());
        waits && restarts(pod) >= attempts
    })
}

/// How often etcd was started again in a pod.
pub(crate) fn restarts(pod: &Pod) -> u32 {
    etcd_container(pod).map_or(0, |it| u32::try_from(it.restart_count).unwrap_or(0))
}

/// Whether a container cannot even be made, because of its image or its settings.
pub(crate) fn cannot_be_created(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let init = status.and_then(|it| it.init_container_statuses.as_deref()).unwrap_or_default();
    let waits = |it: &ContainerStatus| {
        let waiting = it.state.as_ref().and_then(|state| state.waiting.as_ref());
        waiting.and_then(|it| it.reason.as_deref()).is_some_and(|it| CREATE_ERRORS.contains(&it))
    };
    init.iter().chain(etcd_container(pod)).any(waits)
}

/// Whether a pod was made from another spec than there is now.
pub(crate) fn template_differs(blueprint: &Blueprint<'_>, name: &MemberName, pod: &Pod) -> bool {
    let made_from = pod.annotations().get(names::POD_TEMPLATE_HASH_ANNOTATION);
    // What cannot be made now is no reason to end what runs.
    match (made_from, template_hash(blueprint, name)) {
        (Some(made_from), Some(recipe)) => *made_from != recipe,
        (None, _) | (_, None) => false,
    }
}

/// A short word that changes whenever a member's pod would be made differently. Whom it is told of does
/// not count: that changes with every member that comes or goes. Nor does where the agent comes from: a
/// new release of the operator restarts nobody for its own sake.
pub(crate) fn template_hash(blueprint: &Blueprint<'_>, name: &MemberName) -> Option<String> {
    let blueprint = Blueprint { agent_image: "", agent_pull_policy: None, ..*blueprint };
    let pod = blueprint.pod(name, StartMode::Rejoin, &[], "").ok()?;
    let text = serde_json::to_string(&pod).ok()?;
    Some(fnv1a_hex(&text))
}

/// A short word for a text.
pub(crate) fn fnv1a_hex(text: &str) -> String {
    // FNV-1a. It must be the same in every release, and nobody has a reason to forge it.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
