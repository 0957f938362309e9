//! Compares the observed state of a real cluster with the model. Some things take time in reality
//! and none in the model, so the real cluster may lag: a pod is still terminating, a member is not
//! reachable yet. It can never be ahead.

use std::collections::BTreeSet;

use quorate::etcd_cluster::plan::{Plan, Step};
use quorate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, MemberId, MemberName, ObservedState, PodState, Reading,
    Rollback, TemplateState, VolumeState,
};

use super::Model;

impl Model {
    /// A difference that a delay does not explain, if there is one.
    pub(crate) fn difference(&self, real: &ObservedState) -> Option<String> {
        let mut expected = self.state();
        // Pods of an older release lack the annotation of their template.
        if expected.desired.rollback == Rollback::Available {
            expected.desired.rollback = real.desired.rollback;
        }
        if expected.desired != real.desired {
            return Some(format!("desired: {:?} instead of {:?}", real.desired, expected.desired));
        }
        if expected.bootstrap != real.bootstrap {
            let (real, expected) = (&real.bootstrap, &expected.bootstrap);
            return Some(format!("bootstrap: {real:?} instead of {expected:?}"));
        }
        let names = |state: &ObservedState| {
            state.members.iter().map(|member| member.name.clone()).collect::<BTreeSet<_>>()
        };
        if names(&expected) != names(real) {
            return Some(format!("members: {:?} instead of {:?}", names(real), names(&expected)));
        }
        let orphaned =
            |state: &ObservedState| state.orphaned_volumes.iter().cloned().collect::<BTreeSet<_>>();
        if orphaned(&expected) != orphaned(real) {
            return Some(format!(
                "orphaned volumes: {:?} instead of {:?}",
                real.orphaned_volumes, expected.orphaned_volumes
            ));
        }
        let mut members = real
            .members
            .iter()
            .filter_map(|member| member_difference(expected.member(&member.name)?, member));
        members
            .next()
            .or_else(|| real.etcd.known().and_then(|etcd| self.etcd_difference(etcd, real)))
    }

    /// A difference that is left when all delays are over, if there is one.
    pub(crate) fn idle_difference(&self, real: &ObservedState) -> Option<String> {
        if let Some(difference) = self.difference(real) {
            return Some(difference);
        }
        let observed = self.state();
        for member in &real.members {
            let expected = observed.member(&member.name)?;
            if (expected.pod, expected.volume) != (member.pod, member.volume) {
                return Some(format!("{member:?} instead of {expected:?}"));
            }
        }
        let health = |state: &ObservedState| {
            let list = state.etcd.known().map(|etcd| etcd.members.clone()).unwrap_or_default();
            list.into_iter().map(|entry| (entry.name, entry.healthy)).collect::<BTreeSet<_>>()
        };
        let (expected, found) = (health(&observed), health(real));
        (expected != found).then(|| format!("health: {found:?} instead of {expected:?}"))
    }

    fn etcd_difference(&self, etcd: &EtcdState, real: &ObservedState) -> Option<String> {
        // The pod of a member with a deleted object terminates a little later.
        let is_ending = |name: &MemberName| real.member(name).is_none_or(is_terminating);
        if !self.has_quorum() && !self.listed.iter().any(|entry| is_ending(&entry.name)) {
            return Some("etcd has quorum, and it should not".to_owned());
        }
        let listed: BTreeSet<_> =
            etcd.members.iter().map(|entry| (entry.name.clone(), entry.is_learner)).collect();
        let expected: BTreeSet<_> =
            self.listed.iter().map(|entry| (entry.name.clone(), entry.is_learner)).collect();
        if listed != expected {
            return Some(format!("etcd lists {listed:?} instead of {expected:?}"));
        }
        let ahead = |entry: &&ListedMember| {
            entry.is_healthy() && !self.is_up(&entry.name) && !is_ending(&entry.name)
        };
        let ahead = etcd.members.iter().find(ahead)?;
        Some(format!("{} is healthy, and it should not be", ahead.name))
    }

    /// The model with the leader that etcd elected.
    pub(crate) fn with_leader_of(mut self, real: &ObservedState) -> Self {
        let leader = real.etcd.known().and_then(|etcd| name_of(etcd, etcd.leader?));
        if let Some(id) = leader.and_then(|name| self.id_of(&name)) {
            self.leader = Some(id);
        }
        self
    }

    /// A plan of the real cluster with the model's IDs; `None` if the model lacks a member of it.
    pub(crate) fn with_model_ids(&self, plan: &Plan, real: &ObservedState) -> Option<Plan> {
        let model_id = |id: MemberId| {
            let name = real.etcd.known().and_then(|etcd| name_of(etcd, id))?;
            self.id_of(&name).map(MemberId)
        };
        let step = match &plan.step {
            Step::PromoteLearner(id) => Step::PromoteLearner(model_id(*id)?),
            Step::MoveLeader(id) => Step::MoveLeader(model_id(*id)?),
            Step::RemoveMember(id) => Step::RemoveMember(model_id(*id)?),
            same @ (Step::Wait
            | Step::CreateMember(_)
            | Step::AddLearner(_)
            | Step::MarkForRemoval(_)
            | Step::RecreatePod(_)
            | Step::RollBack(_)
            | Step::AdvanceRaftLog
            | Step::EnableDowngrade
            | Step::CancelDowngrade
            | Step::UpdatePeerUrl(..)
            | Step::EnsureUsers
            | Step::EnableAuth
            | Step::DisableAuth
            | Step::Compact(_)
            | Step::Defragment(_)
            | Step::FinishDefragmentation
            | Step::DisarmAlarm(_)
            | Step::DeletePod(_)
            | Step::DeleteMember(_)) => same.clone(),
        };
        Some(Plan { step, ..plan.clone() })
    }

    fn id_of(&self, name: &MemberName) -> Option<u64> {
        self.listed.iter().find(|entry| entry.name == *name).map(|entry| entry.id)
    }
}

fn name_of(etcd: &EtcdState, id: MemberId) -> Option<MemberName> {
    etcd.members.iter().find(|entry| entry.id == id).map(|entry| entry.name.clone())
}

fn is_terminating(member: &Member) -> bool {
    member.pod == Reading::Known(PodState::Terminating)
}

/// Whether an outdated pod has yet to start.
fn is_starting(model: &Member, real: &Member) -> bool {
    model.template == TemplateState::Outdated
        && matches!(
            real.template,
            TemplateState::StaleNotRunning | TemplateState::PreviousNotRunning
        )
}

fn member_difference(model: &Member, real: &Member) -> Option<String> {
    let (Reading::Known(expected), Reading::Known(pod)) = (model.pod, real.pod) else {
        return None;
    };
    let (Reading::Known(disk), Reading::Known(volume)) = (model.volume, real.volume) else {
        return None;
    };
    let pod_is_late = matches!(
        (expected, pod),
        (PodState::Missing, PodState::Terminating) | (PodState::DataMissing, PodState::Active)
    );
    // The trace may be older than the intent `Removed`.
    let same = model.intent == real.intent || model.intent.is_leaving() && real.intent.is_leaving();
    let fine = same
        && model.started == real.started
        && (expected == pod || pod_is_late)
        && (disk == volume || volume == VolumeState::Terminating)
        && (model.template == real.template || pod != PodState::Active || is_starting(model, real))
        && (model.replacement_due || !real.replacement_due);
    (!fine).then(|| format!("{real:?} instead of {model:?}"))
}
