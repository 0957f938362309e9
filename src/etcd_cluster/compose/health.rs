//! For how long a member has been unwell, and whether that is too long.
//! Comes in: what was written down in its EtcdMember. Goes out: a verdict. May touch: `api`, Kubernetes' own
//! types; pure. The time is the one at which it was written down, so a restart of the operator forgets
//! nothing.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::{Look, pod};
use crate::api::condition::{Condition, ConditionStatus, HEALTHY};
use crate::api::etcd_member::EtcdMember;
use crate::etcd_cluster::stock::name_of;

/// A member that keeps crashing is given at least so much time.
const SHORTEST: Duration = Duration::from_mins(1);

/// Whether a member has been unwell for longer than the user puts up with, and still is.
pub(super) fn is_given_up(look: &Look<'_>, object: &EtcdMember, pod: Option<&Pod>) -> bool {
    let voice = look.heard.voices.get(&name_of(object));
    // A learner agrees with nobody, and a voter that is heard may only lack the others.
    if voice.is_some_and(|it| it.standing.is_some()) {
        return false;
    }
    let Some(since) = unwell_since(object) else { return false };
    let unwell = Duration::try_from(look.now.duration_since(since)).unwrap_or_default();
    let repair = look.blueprint.spec.repair;
    let restarts = pod.and_then(pod::etcd).map_or(0, |it| it.restart_count);
    let crashes = u32::try_from(restarts).is_ok_and(|it| it >= repair.recreate_attempts);
    unwell >= repair.replace_after || (crashes && unwell >= SHORTEST)
}

/// Since when a member is known to be unwell.
pub(crate) fn unwell_since(object: &EtcdMember) -> Option<Timestamp> {
    let conditions = object.status.as_ref()?.conditions.known()?;
    let Condition { status, last_transition_time, .. } = conditions
        .iter()
        .find(|it| it.kind.known().is_some_and(|kind| kind.as_str() == HEALTHY))?;
    (status.known() == Some(&ConditionStatus::False))
        .then(|| last_transition_time.known()?.as_str().parse().ok())
        .flatten()
}
