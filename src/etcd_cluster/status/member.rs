//! Computes the status of one member: role, phase and conditions.
//! Each condition has a transition time of its own, so that the duration of one problem
//! (unreachable, isolated, no pod) never counts towards the replacement for another one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::StatusInput;
use super::conditions::{ConditionUpdate, with_transition_time};
use super::messages::pods;
use crate::api::condition::{HEALTHY, ISOLATED, POD_REJECTED, REACHABLE};
use crate::api::etcd_cluster::v1::status::MemberRole;
use crate::api::etcd_member::{EtcdMember, EtcdMemberStatus, MemberPhase};
use crate::api::field::Field;
use crate::etcd_cluster::observe::objects::name_of;
use crate::etcd_cluster::state::{Intent, MemberName, ObservedState, PodState, Reading};

/// The role of a member in etcd.
pub(super) fn role(state: &ObservedState, name: &MemberName) -> MemberRole {
    let Reading::Known(etcd) = &state.etcd else { return MemberRole::Unknown };
    match etcd.entry(name) {
        None => MemberRole::Unknown,
        Some(entry) if etcd.leads(entry.id) => MemberRole::Leader,
        Some(entry) if entry.is_learner => MemberRole::Learner,
        Some(_) => MemberRole::Voter,
    }
}

/// The status of a member.
pub(crate) fn member_status(input: &StatusInput<'_>, object: &EtcdMember) -> EtcdMemberStatus {
    let (inputs, state) = (input.inputs, input.state);
    let name = name_of(object);
    let previous = object.status.clone().unwrap_or_default();
    let status = inputs.probe.status(&name);
    let entry = state.etcd.known().and_then(|etcd| etcd.entry(&name));
    let phase = phase(state, &name);
    let since = match (&previous.phase, &previous.phase_transition_time) {
        (Field::Known(recorded), Field::Known(since)) if *recorded == phase => since.clone(),
        _ => inputs.now.to_string().into(),
    };
    let recorded = previous.conditions.known().map(Vec::as_slice).unwrap_or_default();
    let (generation, now) = (object.metadata.generation, inputs.now);
    let updates = condition_updates(input, &name);
    let conditions = updates.iter();
    let conditions =
        conditions.map(|update| with_transition_time(recorded, update, generation, now));
    let hex = |id: u64| format!("{id:x}").into();
    let id = entry.map(|entry| entry.id.0).or(status.map(|status| status.member)).map(hex);
    EtcdMemberStatus {
        member_id: id.map_or_else(|| previous.member_id.clone(), Field::Known),
        cluster_id: status
            .map(|status| hex(status.cluster))
            .map_or_else(|| previous.cluster_id.clone(), Field::Known),
        role: Field::Known(role(state, &name)),
        phase: Field::Known(phase),
        version: status
            .map(|status| status.version.as_str().into())
            .map_or_else(|| previous.version.clone(), Field::Known),
        pod: inputs.objects.pod(&name).map(|_| name.0.as_str().into()).into(),
        volume: inputs.objects.pvc(&name).map(|_| name.0.as_str().into()).into(),
        phase_transition_time: Field::Known(since),
        conditions: Field::Known(conditions.collect()),
    }
}

fn phase(state: &ObservedState, name: &MemberName) -> MemberPhase {
    let Some(member) = state.member(name) else { return MemberPhase::Removed };
    let entry = state.etcd.known().map(|etcd| etcd.entry(name));
    match (member.intent, entry, member.pod) {
        (Intent::Leave | Intent::Removed, Some(None), _) | (Intent::Removed, None, _) => {
            MemberPhase::Removed
        }
        (Intent::Leave | Intent::Removed, _, _) => MemberPhase::Removing,
        (_, Some(Some(entry)), _) if entry.is_learner && entry.is_healthy() => MemberPhase::Learner,
        (_, Some(Some(entry)), _) if !entry.is_learner => MemberPhase::Running,
        (_, _, Reading::Known(PodState::Missing | PodState::Gated)) => MemberPhase::Pending,
        (_, _, _) => MemberPhase::Starting,
    }
}

fn condition_updates(input: &StatusInput<'_>, name: &MemberName) -> Vec<ConditionUpdate> {
    const REACHABLE_MESSAGE: &str = "etcd responds to status requests";
    let probe = input.inputs.probe.members.get(name);
    let is_reachable = probe.is_some_and(|probe| probe.status.is_some());
    let (reason, unreachable) = pods::unreachable(input, name);
    let reachable = if is_reachable {
        ConditionUpdate::r#true(REACHABLE, REACHABLE, REACHABLE_MESSAGE)
    } else {
        ConditionUpdate::r#false(REACHABLE, reason, unreachable.clone())
    };
    let isolated = input.inputs.is_isolated(name).then(|| {
        let error = probe.and_then(|probe| probe.error.clone());
        let error = error.unwrap_or_else(|| "no response".to_owned());
        format!(
            "Linearizable read failed on this member only, the other voters have quorum: {error}"
        )
    });
    let rejected =
        input.rejected_pods.get(name).map(|error| format!("API server rejected the pod: {error}"));
    // A learner is healthy without the other members, a voter needs a quorum of them. A voter that
    // lacks only the quorum is not its cause and stays healthy.
    let healthy = match (&isolated, &rejected) {
        (Some(message), _) => ConditionUpdate::r#false(HEALTHY, ISOLATED, message.clone()),
        (None, Some(message)) => ConditionUpdate::r#false(HEALTHY, POD_REJECTED, message.clone()),
        (None, None) if is_reachable => {
            ConditionUpdate::r#true(HEALTHY, REACHABLE, REACHABLE_MESSAGE)
        }
        (None, None) => ConditionUpdate::r#false(HEALTHY, reason, unreachable),
    };
    // These two exist only while they are true.
    let temporary = [(ISOLATED, isolated), (POD_REJECTED, rejected)];
    let temporary = temporary
        .into_iter()
        .filter_map(|(name, message)| Some(ConditionUpdate::r#true(name, name, message?)));
    [healthy, reachable].into_iter().chain(temporary).collect()
}
