//! What is done to the world: the chores and steps of a plan, and what each of them would break.

use quorate::api::start_mode::StartMode;
use quorate::etcd_cluster::plan::{Plan, PodTemplate, Step, Task};
use quorate::etcd_cluster::state::{Intent, MemberName};

use super::{Disk, Entry, NAMES, Object, Process, Recipe, World};

/// How many calls a plan makes.
pub(crate) fn calls(plan: &Plan) -> usize {
    plan.tasks.len() + usize::from(plan.step != Step::Wait)
}

impl World {
    /// The world after the first `most` calls of a plan.
    pub(crate) fn after(&self, plan: &Plan, most: usize) -> Self {
        let mut after = self.clone();
        let busy = self.busy();
        for chore in plan.tasks.iter().take(most) {
            after.chore(chore);
            after.live();
        }
        if most > plan.tasks.len() {
            after.step(&plan.step);
            after.live();
        }
        if most > calls(plan) {
            if let Some(name) = &busy {
                after.rewritten(name);
            }
            after.tell();
            after.tell_clients();
            after.tell_who_left(self);
            after.live();
        }
        after
    }

    /// What was seen before anything was done is told: who does not belong to it any more.
    fn tell_who_left(&mut self, seen: &Self) {
        let is_listed = |name: &MemberName| seen.list.iter().any(|it| it.name == *name);
        for (name, object) in self.members.iter_mut().filter(|_| seen.answers()) {
            if seen.members.get(name).is_some_and(|it| it.intent.is_leaving()) && !is_listed(name) {
                object.intent = Intent::Removed;
            }
        }
    }

    fn chore(&mut self, chore: &Task) {
        match chore {
            Task::RecordBootstrapMembers(names) => {
                self.must_be_cleared_away();
                self.used += names.len();
                self.record.members.clone_from(names);
                self.record.started = false;
                self.record.aborted = false;
            }
            Task::AbortBootstrap => {
                self.record.aborted = true;
                if self.record.cluster_id.is_some() {
                    self.broken = Some("a cluster that was formed is given up".to_owned());
                }
            }
            Task::DeleteBootstrapMember(name) => self.scrap(name),
            Task::RecordBootstrapStarted => self.record.started = true,
            Task::RecordClusterId(id) => self.record.cluster_id = Some(*id),
            Task::CreateBootstrapMember(name) => self.make(name, Intent::Bootstrap),
            Task::AdoptVolume(name) => {
                self.make(name, Intent::Join);
                self.members.get_mut(name).unwrap().had_pod = true;
            }
            Task::CreatePod { member, start_mode: told, template: of } => {
                self.make_pod(member, *told, *of);
            }
            Task::MarkStarted(name) => {
                self.members.get_mut(name).unwrap().had_pod = true;
            }
            Task::RemoveSchedulingGate(name) => {
                if let Some(Process::Gated(how)) = self.pods.get(name).copied() {
                    self.pods.insert(name.clone(), self.started(name, how));
                }
            }
            Task::DeleteInactivePod(name) => {
                if let Some(Process::Running { .. }) = self.pods.get(name) {
                    self.broken = Some(format!("{name} runs, and its pod is cleared away"));
                }
                self.lose_pod(name);
            }
            Task::Hibernate(name) => {
                if self.replicas > 0 {
                    self.broken = Some(format!("{name} is put to sleep, and nobody wants that"));
                }
                self.lose_pod(name);
            }
        }
    }

    fn make(&mut self, name: &MemberName, intent: Intent) {
        let address = self.address(name);
        self.addresses.insert(name.clone(), address);
        self.members.insert(name.clone(), Object { intent, had_pod: false, given_up: false });
    }

    fn make_pod(&mut self, name: &MemberName, told: StartMode, of: PodTemplate) {
        let recipe = match (of, self.worked()) {
            (PodTemplate::Desired, _) => self.holds(),
            (PodTemplate::Previous, Some(it)) => it,
            (PodTemplate::Previous, None) => {
                self.broken = Some(format!("{name} is made as those before, and there are none"));
                return;
            }
        };
        self.must_be_the_only_one_to_try(name, recipe);
        if recipe.refused {
            return;
        }
        if self.members[name].intent == Intent::Removed {
            self.broken = Some(format!("{name} has left, and gets a pod"));
        }
        let was_somebody = self.disks.get(name) == Some(&Disk::Log) || self.members[name].had_pod;
        let process = match told {
            StartMode::Bootstrap | StartMode::Join if was_somebody => {
                self.broken = Some(format!("{name} may have been somebody and is told {told:?}"));
                return;
            }
            StartMode::Bootstrap | StartMode::Join => Process::Gated(told),
            StartMode::Rejoin => {
                self.made_of.insert(name.clone(), recipe);
                self.started(name, StartMode::Rejoin)
            }
        };
        self.disks.entry(name.clone()).or_insert(Disk::Empty);
        self.made_of.insert(name.clone(), recipe);
        self.doors_of.insert(name.clone(), self.door(name));
        self.pods.insert(name.clone(), process);
    }

    /// While some run as before, a change that nobody starts with has one member at most.
    fn must_be_the_only_one_to_try(&mut self, name: &MemberName, recipe: Recipe) {
        let fails = |it: &MemberName| matches!(self.pods.get(it), Some(Process::Waits(_)));
        let same =
            |it: &MemberName| it != name && self.made_of.get(it) == Some(&recipe) && fails(it);
        if let Some(other) =
            self.pods.keys().find(|it| same(it)).filter(|_| self.worked().is_some())
        {
            self.broken = Some(format!("{name} is made like {other}, which does not start"));
        }
    }

    fn started(&self, name: &MemberName, how: StartMode) -> Process {
        if self.made_of.get(name).is_some_and(|it| it.spoilt) {
            Process::Waits(how)
        } else {
            Process::Running { how, ran: false }
        }
    }

    fn scrap(&mut self, name: &MemberName) {
        if self.record.cluster_id.is_some() || !self.record.aborted {
            self.broken = Some(format!("{name} is scrapped, and it may have been written to"));
        }
        self.members.remove(name);
        self.addresses.remove(name);
        if self.pods.get(name) != Some(&Process::Lost) {
            self.pods.remove(name);
            self.made_of.remove(name);
            self.doors_of.remove(name);
        }
        self.disks.remove(name);
    }

    /// Nothing may be left of founders that were given up when others found.
    fn must_be_cleared_away(&mut self) {
        if !self.members.is_empty() || !self.disks.is_empty() {
            self.broken = Some("others found, and something is left of those before".to_owned());
        }
        self.formed = false;
        self.list.clear();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Wait => {}
            Step::CreateMember(name) => {
                self.make(name, Intent::Join);
                let place = NAMES.iter().position(|it| **it == name.0);
                self.used = place.map_or(self.used, |it| it + 1);
            }
            Step::AddLearner(name) => {
                self.must_have_the_same("somebody joins");
                self.add(name);
            }
            Step::PromoteLearner(id) => {
                let entry = self.list.iter_mut().find(|it| it.id == id.0).unwrap();
                entry.learner = false;
                let name = entry.name.clone();
                if !self.is_up(&name) {
                    self.broken = Some(format!("{name} votes and is not up"));
                }
            }
            Step::MarkForRemoval(name) => {
                self.members.get_mut(name).unwrap().intent = Intent::Leave;
            }
            Step::MoveLeader(id) => self.leader = Some(id.0),
            Step::RemoveMember(id) => self.remove(id.0),
            Step::RecreatePod(name) => self.restart(name),
            Step::RollBack(name) => self.take_back(name),
            Step::AdvanceRaftLog => self.fill_log(),
            Step::EnableDowngrade => self.allow_downgrade(),
            Step::CancelDowngrade => self.forbid_downgrade(),
            Step::UpdatePeerUrl(name, scheme) => self.readdress(name, *scheme),
            Step::EnsureUsers => self.make_users(),
            Step::EnableAuth => self.enable_auth(),
            Step::DisableAuth => self.disable_auth(),
            Step::Compact(_) => self.compact(),
            Step::Defragment(name) => self.defragment(name),
            Step::FinishDefragmentation => self.end_upkeep(),
            Step::DisarmAlarm(alarm) => self.disarm(*alarm),
            Step::DeletePod(name) => {
                self.must_be_a_stranger(name);
                self.lose_pod(name);
            }
            Step::DeleteMember(name) => {
                self.must_be_a_stranger(name);
                self.members.remove(name);
                self.addresses.remove(name);
                self.disks.remove(name);
            }
        }
    }

    fn restart(&mut self, name: &MemberName) {
        self.must_have_the_same("a pod is made anew");
        if self.is_rewriting(name) {
            self.broken = Some(format!("{name} is made anew while it rewrites its file"));
        }
        if !self.is_made_otherwise(name) {
            self.broken = Some(format!("{name} is made anew, and is as it should be"));
        }
        if !self.durable {
            self.broken = Some(format!("{name} has its data in memory, and its pod is deleted"));
        }
        let is_up = self.is_up(name);
        if is_up && !self.voters().all(|it| self.is_up(&it.name)) {
            self.broken = Some(format!("{name} is disturbed beside a voter that is down"));
        }
        let answered = self.answers();
        let id = self.list.iter().find(|it| it.name == *name).map(|it| it.id);
        if is_up && id.is_some() && self.leader == id && self.voters().count() > 1 {
            self.broken = Some(format!("{name} is made anew while it leads"));
        }
        self.lose_pod(name);
        if answered && !self.answers() && self.voters().count() > 2 {
            self.broken = Some(format!("{name} is made anew, and there is no quorum without it"));
        }
    }

    fn add(&mut self, name: &MemberName) {
        if self.list.iter().any(|it| it.learner) {
            self.broken = Some(format!("{name} is a second learner"));
        }
        if !self.voters().all(|it| self.is_up(&it.name)) {
            self.broken = Some(format!("{name} is added beside a voter that is down"));
        }
        self.ids += 1;
        let peer = self.address(name);
        self.list.push(Entry { id: self.ids, name: name.clone(), learner: true, peer });
    }

    fn remove(&mut self, id: u64) {
        let entry = self.list.iter().find(|it| it.id == id).unwrap().clone();
        self.must_be_wrong(&entry.name);
        self.list.retain(|it| it.id != id);
        if !entry.learner && !self.answers() {
            self.broken = Some(format!("without {} there is no quorum", entry.name));
        }
        if self.leader == Some(id) {
            self.broken = Some(format!("{} was removed while it led", entry.name));
        }
    }

    fn must_be_a_stranger(&mut self, name: &MemberName) {
        if self.list.iter().any(|it| it.name == *name) {
            self.broken = Some(format!("{name} is still a member, and is cleared away"));
        }
    }
}
