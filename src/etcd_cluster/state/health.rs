//! For how long a member has been unwell, and whether that is too long.
//! Comes in: what was written down in its EtcdMember. Goes out: a verdict. May touch: `api`, Kubernetes' own
//! types; pure. The time is the one at which it was written down, so a restart of the operator forgets
//! nothing.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::api::condition::{Condition, ConditionStatus, ISOLATED, POD_REJECTED, REACHABLE};
use crate::api::etcd_member::{EtcdMember, MemberPhase};
use crate::etcd_cluster::observe::objects::name_of;
use crate::etcd_cluster::state::build::StateInputs;
use crate::etcd_cluster::state::pod;

/// A member that keeps crashing is given at least so much time.
const MIN_CRASH_GRACE: Duration = Duration::from_mins(1);
/// One that listens has so many times the time of one that is silent: it may have much to read.
const LEARNER_PATIENCE_FACTOR: u32 = 6;

/// Whether a member has been unwell for longer than the user puts up with, and still is.
pub(crate) fn is_replacement_due(
    look: &StateInputs<'_>,
    object: &EtcdMember,
    pod: Option<&Pod>,
) -> bool {
    let repair = look.blueprint.spec.repair;
    let lasted = |since| duration_since(look, since);
    let patience = repair.replace_after.saturating_mul(LEARNER_PATIENCE_FACTOR);
    if let Some(standing) = look.probe.status(&name_of(object)) {
        // One that is heard and votes may only lack the others; where those agree without it, it does not. One that listens and
        // never catches up stands in everybody's way. Both may have much to read.
        let since = if standing.is_learner {
            listens_since(object)
        } else {
            left_out_since(object).filter(|_| look.is_isolated(&name_of(object)))
        };
        return since.is_some_and(|it| lasted(it) >= patience);
    }
    // Who rewrites its file answers nobody, and has time for it.
    if look.is_defragmenting(&name_of(object)) {
        return false;
    }
    let Some(since) = silent_since(object) else { return false };
    let unwell = match pod {
        // A new pod has its own time: the one before may have been made from something that was taken back.
        Some(pod) => lasted(made_at(pod).map_or(since, |it| it.max(since))),
        // It comes back as soon as a pod can be made for it.
        None if look.objects.pvc(&name_of(object)).is_some() => return false,
        None => lasted(since),
    };
    let crashes = pod.is_some_and(|it| pod::is_crash_looping(it, repair.recreate_attempts));
    unwell >= repair.replace_after || (crashes && unwell >= MIN_CRASH_GRACE)
}

/// Whether a member's pod has failed to start so often, or for so long, that waiting is of no use.
pub(crate) fn is_failing(look: &StateInputs<'_>, object: &EtcdMember, pod: Option<&Pod>) -> bool {
    let Some(pod) = pod else {
        return refused_since(object).is_some_and(|it| duration_since(look, it) >= MIN_CRASH_GRACE);
    };
    if look.probe.status(&name_of(object)).is_some() {
        return is_replacement_due(look, object, Some(pod)) && look.is_isolated(&name_of(object));
    }
    let lasted = duration_since(look, made_at(pod).unwrap_or(look.now));
    let attempts = look.blueprint.spec.repair.recreate_attempts;
    pod::is_crash_looping(pod, attempts)
        || pod::cannot_be_created(pod) && lasted >= MIN_CRASH_GRACE
        // Without a quorum whoever is away may lack nothing but the others.
        || look.probe.quorum.known().is_some() && is_replacement_due(look, object, Some(pod))
}

/// How long something has lasted, as far as this operator has watched it.
fn duration_since(look: &StateInputs<'_>, since: Timestamp) -> Duration {
    Duration::try_from(look.now.duration_since(since.max(look.observing_since))).unwrap_or_default()
}

/// When a pod was made.
fn made_at(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|it| it.0)
}

/// Since when a member listens, as it was written down.
fn listens_since(object: &EtcdMember) -> Option<Timestamp> {
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

/// Since when a member is known to be silent.
fn silent_since(object: &EtcdMember) -> Option<Timestamp> {
    since(told(object, REACHABLE, ConditionStatus::False)?)
}

/// Since when a member is known to be left out.
fn left_out_since(object: &EtcdMember) -> Option<Timestamp> {
    since(told(object, ISOLATED, ConditionStatus::True)?)
}

/// Since when the API server is known to refuse a member's pod.
fn refused_since(object: &EtcdMember) -> Option<Timestamp> {
    since(told(object, POD_REJECTED, ConditionStatus::True)?)
}

/// Why the API server refuses a member's pod, as it was written down.
pub(crate) fn pod_rejection_reason(object: &EtcdMember) -> Option<String> {
    let Condition { message, .. } = told(object, POD_REJECTED, ConditionStatus::True)?;
    message.known().map(|it| it.as_str().trim_end_matches('.').to_owned())
}

/// What was written down of a member, if it says this.
fn told<'a>(object: &'a EtcdMember, kind: &str, says: ConditionStatus) -> Option<&'a Condition> {
    let conditions = object.status.as_ref()?.conditions.known()?;
    let is_about_it = |it: &&Condition| it.kind.known().is_some_and(|it| it.as_str() == kind);
    conditions.iter().find(is_about_it).filter(|it| it.status.known() == Some(&says))
}

fn since(told: &Condition) -> Option<Timestamp> {
    told.last_transition_time.known()?.as_str().parse().ok()
}

#[cfg(test)]
mod tests;
