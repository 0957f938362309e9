//! Applies the tasks and steps of a plan to the model, and checks what each of them must not break.

use quorate::api::start_mode::StartMode;
use quorate::etcd_cluster::plan::{Plan, PodTemplate, Step, Task};
use quorate::etcd_cluster::state::{Intent, MemberName};

use super::{Disk, Entry, Model, NAMES, Object, Process, Template};

/// The number of calls that a plan makes.
pub(crate) fn call_count(plan: &Plan) -> usize {
    plan.tasks.len() + usize::from(plan.step != Step::Wait)
}

impl Model {
    /// The model after the first `max_calls` calls of a plan.
    pub(crate) fn apply(&self, plan: &Plan, max_calls: usize) -> Self {
        let mut after = self.clone();
        let defragmenting = self.defragmenting();
        for task in plan.tasks.iter().take(max_calls) {
            after.apply_task(task);
            after.settle();
        }
        if max_calls > plan.tasks.len() {
            after.apply_step(&plan.step);
            after.settle();
        }
        if max_calls > call_count(plan) {
            if let Some(name) = &defragmenting {
                after.end_defragment(name);
            }
            after.record_target();
            after.record_client_scheme();
            after.record_removed(self);
            after.settle();
        }
        after
    }

    /// Records the members that are not listed any more, as observed before the plan was applied.
    fn record_removed(&mut self, observed: &Self) {
        let is_listed = |name: &MemberName| observed.listed.iter().any(|entry| entry.name == *name);
        for (name, object) in self.members.iter_mut().filter(|_| observed.has_quorum()) {
            if observed.members.get(name).is_some_and(|object| object.intent.is_leaving())
                && !is_listed(name)
            {
                object.intent = Intent::Removed;
            }
        }
    }

    fn apply_task(&mut self, task: &Task) {
        match task {
            Task::RecordBootstrapMembers(names) => {
                self.check_no_bootstrap_objects();
                self.used_names += names.len();
                self.bootstrap.members.clone_from(names);
                self.bootstrap.started = false;
                self.bootstrap.aborted = false;
            }
            Task::AbortBootstrap => {
                self.bootstrap.aborted = true;
                if self.bootstrap.cluster_id.is_some() {
                    self.violation =
                        Some("the bootstrap of a formed cluster is aborted".to_owned());
                }
            }
            Task::DeleteBootstrapMember(name) => self.delete_bootstrap_member(name),
            Task::RecordBootstrapStarted => self.bootstrap.started = true,
            Task::RecordClusterId(id) => self.bootstrap.cluster_id = Some(*id),
            Task::CreateBootstrapMember(name) => self.create_member(name, Intent::Bootstrap),
            Task::AdoptVolume(name) => {
                self.create_member(name, Intent::Join);
                self.members.get_mut(name).unwrap().started = true;
            }
            Task::CreatePod { member, start_mode, template } => {
                self.create_pod(member, *start_mode, *template);
            }
            Task::MarkStarted(name) => {
                self.members.get_mut(name).unwrap().started = true;
            }
            Task::RemoveSchedulingGate(name) => {
                if let Some(Process::Gated(start_mode)) = self.pods.get(name).copied() {
                    self.pods.insert(name.clone(), self.started_process(name, start_mode));
                }
            }
            Task::DeleteInactivePod(name) => {
                if let Some(Process::Running { .. }) = self.pods.get(name) {
                    self.violation =
                        Some(format!("{name} runs, and its pod is deleted as inactive"));
                }
                self.lose_pod(name);
            }
            Task::Hibernate(name) => {
                if self.replicas > 0 {
                    self.violation = Some(format!("{name} is hibernated, and replicas is not 0"));
                }
                self.lose_pod(name);
            }
        }
    }

    fn create_member(&mut self, name: &MemberName, intent: Intent) {
        let peer_scheme = self.peer_scheme_of(name);
        self.peer_schemes.insert(name.clone(), peer_scheme);
        self.members
            .insert(name.clone(), Object { intent, started: false, replacement_due: false });
    }

    fn create_pod(&mut self, name: &MemberName, start_mode: StartMode, source: PodTemplate) {
        let template = match (source, self.working_template()) {
            (PodTemplate::Desired, _) => self.current_template(),
            (PodTemplate::Previous, Some(previous)) => previous,
            (PodTemplate::Previous, None) => {
                self.violation =
                    Some(format!("{name} gets the previous template, and there is none"));
                return;
            }
        };
        self.check_single_canary(name, template);
        if template.rejected {
            return;
        }
        if self.members[name].intent == Intent::Removed {
            self.violation = Some(format!("{name} is removed, and gets a pod"));
        }
        let may_have_data =
            self.disks.get(name) == Some(&Disk::HasWal) || self.members[name].started;
        let process = match start_mode {
            StartMode::Bootstrap | StartMode::Join if may_have_data => {
                self.violation =
                    Some(format!("{name} may have data, and is started with {start_mode:?}"));
                return;
            }
            StartMode::Bootstrap | StartMode::Join => Process::Gated(start_mode),
            StartMode::Rejoin => {
                self.templates.insert(name.clone(), template);
                self.started_process(name, StartMode::Rejoin)
            }
        };
        self.disks.entry(name.clone()).or_insert(Disk::Empty);
        self.templates.insert(name.clone(), template);
        self.pod_transports.insert(name.clone(), self.transport_of(name));
        self.pods.insert(name.clone(), process);
    }

    /// While members run with a working template, a failing one has at most one member.
    fn check_single_canary(&mut self, name: &MemberName, template: Template) {
        let is_failing =
            |name: &MemberName| matches!(self.pods.get(name), Some(Process::Unschedulable(_)));
        let same = |other: &&MemberName| {
            *other != name && self.templates.get(*other) == Some(&template) && is_failing(other)
        };
        let has_working = self.working_template().is_some();
        if let Some(other) = self.pods.keys().find(same).filter(|_| has_working) {
            self.violation =
                Some(format!("{name} gets the template of {other}, which does not start"));
        }
    }

    fn started_process(&self, name: &MemberName, start_mode: StartMode) -> Process {
        if self.templates.get(name).is_some_and(|template| template.unschedulable) {
            Process::Unschedulable(start_mode)
        } else {
            Process::Running { start_mode, ran: false }
        }
    }

    fn delete_bootstrap_member(&mut self, name: &MemberName) {
        if self.bootstrap.cluster_id.is_some() || !self.bootstrap.aborted {
            self.violation = Some(format!("{name} is deleted, and clients may have written to it"));
        }
        self.members.remove(name);
        self.peer_schemes.remove(name);
        if self.pods.get(name) != Some(&Process::NodeLost) {
            self.pods.remove(name);
            self.templates.remove(name);
            self.pod_transports.remove(name);
        }
        self.disks.remove(name);
    }

    /// No object of an aborted bootstrap may be left when the next one starts.
    fn check_no_bootstrap_objects(&mut self) {
        if !self.members.is_empty() || !self.disks.is_empty() {
            self.violation = Some("objects of the aborted bootstrap are left".to_owned());
        }
        self.formed = false;
        self.listed.clear();
    }

    fn apply_step(&mut self, step: &Step) {
        match step {
            Step::Wait => {}
            Step::CreateMember(name) => {
                self.create_member(name, Intent::Join);
                let position = NAMES.iter().position(|known| **known == name.0);
                self.used_names = position.map_or(self.used_names, |position| position + 1);
            }
            Step::AddLearner(name) => {
                self.forbid_while_corrupt("a member is added");
                self.add_learner(name);
            }
            Step::PromoteLearner(id) => {
                let entry = self.listed.iter_mut().find(|entry| entry.id == id.0).unwrap();
                entry.is_learner = false;
                let name = entry.name.clone();
                if !self.is_up(&name) {
                    self.violation = Some(format!("{name} is promoted and is not up"));
                }
            }
            Step::MarkForRemoval(name) => {
                self.members.get_mut(name).unwrap().intent = Intent::Leave;
            }
            Step::MoveLeader(id) => self.leader = Some(id.0),
            Step::RemoveMember(id) => self.remove_member(id.0),
            Step::RecreatePod(name) => self.recreate_pod(name),
            Step::RollBack(name) => self.roll_back(name),
            Step::AdvanceRaftLog => self.advance_raft_log(),
            Step::EnableDowngrade => self.enable_downgrade(),
            Step::CancelDowngrade => self.cancel_downgrade(),
            Step::UpdatePeerUrl(name, scheme) => self.update_peer_url(name, *scheme),
            Step::EnsureUsers => self.ensure_users(),
            Step::EnableAuth => self.enable_auth(),
            Step::DisableAuth => self.disable_auth(),
            Step::Compact(_) => self.compact(),
            Step::Defragment(name) => self.defragment(name),
            Step::FinishDefragmentation => self.finish_defragmentation(),
            Step::DisarmAlarm(alarm) => self.disarm_alarm(*alarm),
            Step::DeletePod(name) => {
                self.check_not_listed(name);
                self.lose_pod(name);
            }
            Step::DeleteMember(name) => {
                self.check_not_listed(name);
                self.members.remove(name);
                self.peer_schemes.remove(name);
                self.disks.remove(name);
            }
        }
    }

    fn recreate_pod(&mut self, name: &MemberName) {
        self.forbid_while_corrupt("a pod is recreated");
        if self.is_defragmenting(name) {
            self.violation = Some(format!("{name} is recreated while it is defragmented"));
        }
        if !self.template_differs(name) {
            self.violation = Some(format!("{name} is recreated, and is up to date"));
        }
        if !self.persistent {
            self.violation = Some(format!("{name} has its data in memory, and its pod is deleted"));
        }
        let is_up = self.is_up(name);
        if is_up && !self.voters().all(|entry| self.is_up(&entry.name)) {
            self.violation = Some(format!("{name} is disrupted while a voter is down"));
        }
        let had_quorum = self.has_quorum();
        let id = self.listed.iter().find(|entry| entry.name == *name).map(|entry| entry.id);
        if is_up && id.is_some() && self.leader == id && self.voters().count() > 1 {
            self.violation = Some(format!("{name} is recreated while it is the leader"));
        }
        self.lose_pod(name);
        if had_quorum && !self.has_quorum() && self.voters().count() > 2 {
            self.violation = Some(format!("{name} is recreated, and quorum is lost"));
        }
    }

    fn add_learner(&mut self, name: &MemberName) {
        if self.listed.iter().any(|entry| entry.is_learner) {
            self.violation = Some(format!("{name} is a second learner"));
        }
        if !self.voters().all(|entry| self.is_up(&entry.name)) {
            self.violation = Some(format!("{name} is added while a voter is down"));
        }
        self.last_id += 1;
        let peer_scheme = self.peer_scheme_of(name);
        self.listed.push(Entry {
            id: self.last_id,
            name: name.clone(),
            is_learner: true,
            peer_scheme,
        });
    }

    fn remove_member(&mut self, id: u64) {
        let entry = self.listed.iter().find(|entry| entry.id == id).unwrap().clone();
        self.forbid_removing_right_data(&entry.name);
        self.listed.retain(|entry| entry.id != id);
        if !entry.is_learner && !self.has_quorum() {
            self.violation = Some(format!("quorum is lost without {}", entry.name));
        }
        if self.leader == Some(id) {
            self.violation = Some(format!("{} was removed while it was the leader", entry.name));
        }
    }

    fn check_not_listed(&mut self, name: &MemberName) {
        if self.listed.iter().any(|entry| entry.name == *name) {
            self.violation = Some(format!("{name} is still a member, and is deleted"));
        }
    }
}
