//! The state of a member's pod, and the hash of its template.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;

use crate::api::names;
use crate::api::start_mode::{EXIT_DATA_MISSING, StartMode};
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::{self, MemberName};

/// The name of etcd's container.
const ETCD: &str = "etcd";
/// The kubelet's reasons for a container that it cannot create.
const CREATE_ERRORS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerError",
    "CreateContainerConfigError",
];

/// The lifecycle state of a pod.
pub(crate) fn pod_state(pod: &Pod) -> state::PodState {
    if pod.metadata.deletion_timestamp.is_some() {
        return state::PodState::Terminating;
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Failed" | "Succeeded")) {
        return state::PodState::Terminated;
    }
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_deref());
    if gates.is_some_and(|gates| gates.iter().any(|gate| gate.name == names::SCHEDULING_GATE)) {
        return state::PodState::Gated;
    }
    if etcd_container(pod).is_some_and(has_data_missing_exit) {
        state::PodState::DataMissing
    } else {
        state::PodState::Active
    }
}

/// The status of etcd's container.
pub(crate) fn etcd_container(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    statuses.iter().find(|container| container.name == ETCD)
}

/// Whether the agent exited because the member's data is missing.
fn has_data_missing_exit(container: &ContainerStatus) -> bool {
    let exit_code = |state: Option<&k8s_openapi::api::core::v1::ContainerState>| {
        state.and_then(|state| state.terminated.as_ref()).map(|ended| ended.exit_code)
    };
    let now = exit_code(container.state.as_ref());
    let runs = container.state.as_ref().is_some_and(|state| state.running.is_some());
    let last = now.or_else(|| exit_code(container.last_state.as_ref()));
    !runs && last == Some(i32::from(EXIT_DATA_MISSING))
}

/// Whether etcd in the pod has ended for good: the kubelet restarts no container of a pod that is
/// being deleted. Its address is unused by then, and a connection to it would only time out.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    let terminated =
        |container: &ContainerStatus| container.state.as_ref()?.terminated.as_ref().map(drop);
    match pod_state(pod) {
        state::PodState::Terminated => true,
        state::PodState::Terminating => etcd_container(pod).and_then(terminated).is_some(),
        state::PodState::Missing
        | state::PodState::Gated
        | state::PodState::Active
        | state::PodState::DataMissing => false,
    }
}

/// Whether a pod is within its termination grace period. Its etcd is not queried then: with TLS,
/// each open connection delays the exit by a second or more. A pod that is still there after the
/// grace period may stay for good, and is queried again.
pub(crate) fn is_ending(pod: &Pod, now: Timestamp) -> bool {
    pod.metadata.deletion_timestamp.as_ref().is_some_and(|until| now < until.0)
}

/// Whether the kubelet reports etcd in the pod as ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    pod_state(pod) == state::PodState::Active
        && etcd_container(pod).is_some_and(|container| container.ready)
}

/// Whether etcd has ever run in the pod.
pub(crate) fn has_run(pod: &Pod) -> bool {
    let ran = |container: &ContainerStatus| {
        let started = |state: Option<&k8s_openapi::api::core::v1::ContainerState>| {
            state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
        };
        container.restart_count > 0
            || started(container.state.as_ref())
            || started(container.last_state.as_ref())
    };
    etcd_container(pod).is_some_and(ran)
}

/// Whether etcd has failed at least this often, and the kubelet backs off.
pub(crate) fn is_crash_looping(pod: &Pod, attempts: u32) -> bool {
    etcd_container(pod).is_some_and(|container| {
        let waits = container.state.as_ref().is_some_and(|state| state.waiting.is_some());
        waits && restarts(pod) >= attempts
    })
}

/// How often the kubelet restarted etcd in a pod.
pub(crate) fn restarts(pod: &Pod) -> u32 {
    etcd_container(pod).map_or(0, |container| u32::try_from(container.restart_count).unwrap_or(0))
}

/// Whether a container cannot even be created, because of its image or its configuration.
pub(crate) fn cannot_be_created(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let init =
        status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
    let waits = |container: &ContainerStatus| {
        let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
        let reason = waiting.and_then(|waiting| waiting.reason.as_deref());
        reason.is_some_and(|reason| CREATE_ERRORS.contains(&reason))
    };
    init.iter().chain(etcd_container(pod)).any(waits)
}

/// Whether a pod was created from another template than the current one.
pub(crate) fn template_differs(blueprint: &Blueprint<'_>, name: &MemberName, pod: &Pod) -> bool {
    let used = pod.annotations().get(names::POD_TEMPLATE_HASH_ANNOTATION);
    // A running pod is not replaced because the current template cannot be rendered.
    match (used, template_hash(blueprint, name)) {
        (Some(used), Some(current)) => *used != current,
        (None, _) | (_, None) => false,
    }
}

/// A hash that changes whenever a member's pod would be rendered differently. It excludes the list
/// of peers, which changes with every member that is added or removed, and the image of the agent:
/// an upgrade of the operator restarts no member.
pub(crate) fn template_hash(blueprint: &Blueprint<'_>, name: &MemberName) -> Option<String> {
    let blueprint = Blueprint { agent_image: "", agent_pull_policy: None, ..*blueprint };
    let pod = blueprint.pod(name, StartMode::Rejoin, &[], "").ok()?;
    let text = serde_json::to_string(&pod).ok()?;
    Some(fnv1a_hex(&text))
}

/// The 64-bit FNV-1a hash of a string, in hex.
pub(crate) fn fnv1a_hex(text: &str) -> String {
    // The hash must be the same in every release. Forging it gains nothing.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
