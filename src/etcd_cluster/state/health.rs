//! Whether a member has been unhealthy for too long, or its pod fails to start. Durations are taken
//! from the conditions of the EtcdMember, so that a restart of the operator does not reset them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::api::condition::{Condition, ConditionStatus, ISOLATED, POD_REJECTED, REACHABLE};
use crate::api::etcd_member::{EtcdMember, MemberPhase};
use crate::etcd_cluster::observe::objects::name_of;
use crate::etcd_cluster::state::build::StateInputs;
use crate::etcd_cluster::state::pod;

/// A member in a crash loop is not replaced earlier than this.
const MIN_CRASH_GRACE: Duration = Duration::from_mins(1);
/// A learner, or an isolated voter, has this many times `replaceAfterSeconds`: it may have much to
/// replay.
const LEARNER_PATIENCE_FACTOR: u32 = 6;

/// Whether a member has been unhealthy for longer than the spec allows, and still is.
pub(crate) fn is_replacement_due(
    inputs: &StateInputs<'_>,
    object: &EtcdMember,
    pod: Option<&Pod>,
) -> bool {
    let repair = inputs.blueprint.spec.repair;
    let lasted = |since| duration_since(inputs, since);
    let patience = repair.replace_after.saturating_mul(LEARNER_PATIENCE_FACTOR);
    if let Some(status) = inputs.probe.status(&name_of(object)) {
        // A reachable voter may be unhealthy only for lack of a quorum, so it counts only if the
        // others have one. A learner that never catches up blocks every other membership change.
        let since = if status.is_learner {
            learner_since(object)
        } else {
            isolated_since(object).filter(|_| inputs.is_isolated(&name_of(object)))
        };
        return since.is_some_and(|since| lasted(since) >= patience);
    }
    // A member that is being defragmented is unreachable; that has its own deadline.
    if inputs.is_defragmenting(&name_of(object)) {
        return false;
    }
    let Some(since) = unreachable_since(object) else { return false };
    let duration = match pod {
        // A new pod has the full time: the previous one may have had a template that was rolled
        // back.
        Some(pod) => lasted(created_at(pod).map_or(since, |created| created.max(since))),
        // The member has its data, and restarts once a pod can be created for it.
        None if inputs.objects.pvc(&name_of(object)).is_some() => return false,
        None => lasted(since),
    };
    let crashes = pod.is_some_and(|pod| pod::is_crash_looping(pod, repair.recreate_attempts));
    duration >= repair.replace_after || (crashes && duration >= MIN_CRASH_GRACE)
}

/// Whether a pod failed to start so often, or for so long, that waiting longer does not help.
pub(crate) fn is_failing(inputs: &StateInputs<'_>, object: &EtcdMember, pod: Option<&Pod>) -> bool {
    let Some(pod) = pod else {
        return rejected_since(object)
            .is_some_and(|since| duration_since(inputs, since) >= MIN_CRASH_GRACE);
    };
    if inputs.probe.status(&name_of(object)).is_some() {
        return is_replacement_due(inputs, object, Some(pod))
            && inputs.is_isolated(&name_of(object));
    }
    let lasted = duration_since(inputs, created_at(pod).unwrap_or(inputs.now));
    let attempts = inputs.blueprint.spec.repair.recreate_attempts;
    pod::is_crash_looping(pod, attempts)
        || pod::cannot_be_created(pod) && lasted >= MIN_CRASH_GRACE
        // Without a quorum an unreachable member may lack nothing but the other members.
        || inputs.probe.quorum.known().is_some() && is_replacement_due(inputs, object, Some(pod))
}

/// The time since then, as far as this process has observed it.
fn duration_since(inputs: &StateInputs<'_>, since: Timestamp) -> Duration {
    Duration::try_from(inputs.now.duration_since(since.max(inputs.observing_since)))
        .unwrap_or_default()
}

/// When a pod was created.
fn created_at(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Since when a member is recorded as a learner.
fn learner_since(object: &EtcdMember) -> Option<Timestamp> {
    let status = object.status.as_ref()?;
    match status.phase.known()? {
        MemberPhase::Starting | MemberPhase::Learner => {
            status.phase_transition_time.known()?.as_str().parse().ok()
        }
        MemberPhase::Pending
        | MemberPhase::Running
        | MemberPhase::Removing
        | MemberPhase::Removed => None,
    }
}

/// Since when a member is recorded as unreachable.
fn unreachable_since(object: &EtcdMember) -> Option<Timestamp> {
    transition_time(condition(object, REACHABLE, ConditionStatus::False)?)
}

/// Since when a member is recorded as isolated.
fn isolated_since(object: &EtcdMember) -> Option<Timestamp> {
    transition_time(condition(object, ISOLATED, ConditionStatus::True)?)
}

/// Since when the API server is recorded to reject a member's pod.
fn rejected_since(object: &EtcdMember) -> Option<Timestamp> {
    transition_time(condition(object, POD_REJECTED, ConditionStatus::True)?)
}

/// Why the API server rejects a member's pod, as recorded.
pub(crate) fn pod_rejection_reason(object: &EtcdMember) -> Option<String> {
    let Condition { message, .. } = condition(object, POD_REJECTED, ConditionStatus::True)?;
    message.known().map(|message| message.as_str().trim_end_matches('.').to_owned())
}

/// The condition of this type, if it has this status.
fn condition<'a>(
    object: &'a EtcdMember,
    kind: &str,
    status: ConditionStatus,
) -> Option<&'a Condition> {
    let conditions = object.status.as_ref()?.conditions.known()?;
    let is_kind =
        |condition: &&Condition| condition.kind.known().is_some_and(|known| known.as_str() == kind);
    conditions.iter().find(is_kind).filter(|found| found.status.known() == Some(&status))
}

fn transition_time(condition: &Condition) -> Option<Timestamp> {
    condition.last_transition_time.known()?.as_str().parse().ok()
}

#[cfg(test)]
mod tests;
