//! What was seen of a real cluster, beside this world. What takes a moment in reality takes none here, so the real one may
//! be behind: a pod on its way out, a member that has not answered yet. It can never be ahead.

use std::collections::BTreeSet;

use quorate::etcd_cluster::plan::{Plan, Step};
use quorate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, MemberId, MemberName, ObservedState, PodState, Reading,
    Rollback, TemplateState, VolumeState,
};

use super::World;

impl World {
    /// What cannot be told apart from a moment's delay; nothing if all can.
    pub(crate) fn differs(&self, real: &ObservedState) -> Option<String> {
        let mut model = self.seen();
        // Pods that an older release made do not say what they were made of.
        if model.desired.rollback == Rollback::Available {
            model.desired.rollback = real.desired.rollback;
        }
        if model.desired != real.desired {
            return Some(format!("wanted: {:?} instead of {:?}", real.desired, model.desired));
        }
        if model.bootstrap != real.bootstrap {
            return Some(format!("record: {:?} instead of {:?}", real.bootstrap, model.bootstrap));
        }
        let names = |it: &ObservedState| {
            it.members.iter().map(|it| it.name.clone()).collect::<BTreeSet<_>>()
        };
        if names(&model) != names(real) {
            return Some(format!("members: {:?} instead of {:?}", names(real), names(&model)));
        }
        let orphans =
            |it: &ObservedState| it.orphaned_volumes.iter().cloned().collect::<BTreeSet<_>>();
        if orphans(&model) != orphans(real) {
            return Some(format!(
                "orphans: {:?} instead of {:?}",
                real.orphaned_volumes, model.orphaned_volumes
            ));
        }
        let members = real.members.iter().filter_map(|it| differing(model.member(&it.name)?, it));
        members.chain(real.etcd.known().and_then(|etcd| self.answers_otherwise(etcd, real))).next()
    }

    /// What is still different when there was time enough for everything.
    pub(crate) fn differs_at_rest(&self, real: &ObservedState) -> Option<String> {
        if let Some(words) = self.differs(real) {
            return Some(words);
        }
        let model = self.seen();
        for member in &real.members {
            let expected = model.member(&member.name)?;
            if (expected.pod, expected.volume) != (member.pod, member.volume) {
                return Some(format!("{member:?} instead of {expected:?}"));
            }
        }
        let health = |it: &ObservedState| {
            let list = it.etcd.known().map(|etcd| etcd.members.clone()).unwrap_or_default();
            list.into_iter().map(|it| (it.name, it.healthy)).collect::<BTreeSet<_>>()
        };
        let (expected, found) = (health(&model), health(real));
        (expected != found).then(|| format!("health: {found:?} instead of {expected:?}"))
    }

    fn answers_otherwise(&self, etcd: &EtcdState, real: &ObservedState) -> Option<String> {
        // The pod of one whose object was deleted goes a moment later.
        let is_going = |name: &MemberName| real.member(name).is_none_or(is_on_its_way_out);
        if !self.answers() && !self.list.iter().any(|it| is_going(&it.name)) {
            return Some("etcd answers, and it should not".to_owned());
        }
        let listed: BTreeSet<_> =
            etcd.members.iter().map(|it| (it.name.clone(), it.is_learner)).collect();
        let expected: BTreeSet<_> =
            self.list.iter().map(|it| (it.name.clone(), it.learner)).collect();
        if listed != expected {
            return Some(format!("etcd lists {listed:?} instead of {expected:?}"));
        }
        let ahead =
            |it: &&ListedMember| it.is_healthy() && !self.is_up(&it.name) && !is_going(&it.name);
        let ahead = etcd.members.iter().find(ahead)?;
        Some(format!("{} is well, and it should not be", ahead.name))
    }

    /// Who leads is for etcd to say.
    pub(crate) fn led_as(mut self, real: &ObservedState) -> Self {
        let leader = real.etcd.known().and_then(|etcd| name_of(etcd, etcd.leader?));
        if let Some(id) = leader.and_then(|name| self.id_of(&name)) {
            self.leader = Some(id);
        }
        self
    }

    /// A plan that was made for the real cluster, with this world's IDs; nothing if somebody in it is not known here.
    pub(crate) fn translated(&self, plan: &Plan, real: &ObservedState) -> Option<Plan> {
        let here = |id: MemberId| {
            let name = real.etcd.known().and_then(|etcd| name_of(etcd, id))?;
            self.id_of(&name).map(MemberId)
        };
        let step = match &plan.step {
            Step::PromoteLearner(id) => Step::PromoteLearner(here(*id)?),
            Step::MoveLeader(id) => Step::MoveLeader(here(*id)?),
            Step::RemoveMember(id) => Step::RemoveMember(here(*id)?),
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
        self.list.iter().find(|it| it.name == *name).map(|it| it.id)
    }
}

fn name_of(etcd: &EtcdState, id: MemberId) -> Option<MemberName> {
    etcd.members.iter().find(|it| it.id == id).map(|it| it.name.clone())
}

fn is_on_its_way_out(member: &Member) -> bool {
    member.pod == Reading::Known(PodState::Terminating)
}

/// Whether a pod that was made otherwise is one that has yet to start.
fn is_starting(model: &Member, real: &Member) -> bool {
    model.template == TemplateState::Outdated
        && matches!(
            real.template,
            TemplateState::StaleNotRunning | TemplateState::PreviousNotRunning
        )
}

fn differing(model: &Member, real: &Member) -> Option<String> {
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
    // A diary may be older than the word for who has left.
    let same = model.intent == real.intent || model.intent.is_leaving() && real.intent.is_leaving();
    let fine = same
        && model.started == real.started
        && (expected == pod || pod_is_late)
        && (disk == volume || volume == VolumeState::Terminating)
        && (model.template == real.template || pod != PodState::Active || is_starting(model, real))
        && (model.replacement_due || !real.replacement_due);
    (!fine).then(|| format!("{real:?} instead of {model:?}"))
}
