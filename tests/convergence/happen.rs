//! What happens in the world: faults, and what follows from them by itself.

use quorate::api::start_mode::StartMode;
use quorate::etcd_cluster::state::{BootstrapRecord, Intent, MemberName, quorum};

use super::{Disk, Entry, Mishap, Process, Turn, World};

/// What can happen to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A pod is deleted.
    LosePod(MemberName),
    /// A pod and its volume are deleted.
    LoseDisk(MemberName),
    /// Its data is wiped while it runs.
    EmptyDisk(MemberName),
    /// Every pod is deleted at once.
    LoseAllPods,
    /// An EtcdMember is deleted by hand, and its pod with it.
    Unmake(MemberName),
    /// The same, and its volume.
    Erase(MemberName),
    /// A learner strikes itself from the list, as etcd has been seen to do.
    Vanish(MemberName),
    /// A pod's node is lost: the pod is on its way out for ever, and nobody hears of it.
    LoseNode(MemberName),
    /// A node turns a pod away that it has taken before.
    TurnAway(MemberName),
    /// The user wants another size; none is sleep.
    Edit(usize),
    /// The user asks for what no node can give. What is made from now on does not start.
    Spoil,
    /// The user asks for pods that the API server refuses.
    Overdo,
    /// The user takes that back. What was made meanwhile does not start by itself.
    Mend,
    /// What was written down in the status is lost.
    Forget,
    /// The user wants members to be different, in a way that works; or takes that back.
    Change,
    /// The user asks for another release.
    Ask(u8),
    /// How members are called, or whether etcd asks for users, is changed.
    Turn(Turn),
    /// Something happens to files or data.
    Befall(Mishap),
    /// Somebody writes by hand that a member shall go.
    SendAway(MemberName),
}

impl World {
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.may_ask_for().map(Fault::Ask).collect();
        faults.extend(self.turns().into_iter().map(Fault::Turn));
        faults.extend(self.mishaps().into_iter().map(Fault::Befall));
        if self.is_calm() {
            return faults;
        }
        for name in self.pods.keys() {
            faults.push(Fault::LosePod(name.clone()));
            faults.push(Fault::LoseDisk(name.clone()));
            if self.is_up(name) {
                faults.push(Fault::EmptyDisk(name.clone()));
            }
        }
        for (name, process) in &self.pods {
            if let Process::Running { .. } = process {
                faults.push(Fault::LoseNode(name.clone()));
                faults.push(Fault::TurnAway(name.clone()));
            }
        }
        if self.pods.len() > 1 {
            faults.push(Fault::LoseAllPods);
        }
        faults.push(if self.recipe.spoilt { Fault::Mend } else { Fault::Spoil });
        if self.record.cluster_id.is_some() {
            faults.push(Fault::Forget);
        }
        faults.push(Fault::Change);
        for name in self.members.keys() {
            faults.push(Fault::Unmake(name.clone()));
            faults.push(Fault::Erase(name.clone()));
        }
        let learners = self.list.iter().filter(|it| it.learner);
        faults.extend(learners.map(|it| Fault::Vanish(it.name.clone())));
        let sizes = self.sizes.iter().filter(|it| **it != self.replicas);
        faults.extend(sizes.map(|it| Fault::Edit(*it)));
        faults
    }

    pub(crate) fn struck(&self, fault: &Fault) -> Self {
        let mut after = self.clone();
        match fault {
            Fault::LosePod(name) => after.lose_pod(name),
            Fault::LoseDisk(name) => {
                after.lose_pod(name);
                after.disks.remove(name);
            }
            Fault::EmptyDisk(name) => {
                after.disks.insert(name.clone(), Disk::Empty);
            }
            Fault::LoseAllPods => {
                for name in self.pods.keys() {
                    after.lose_pod(name);
                }
            }
            Fault::Unmake(name) => after.unmake(name),
            Fault::Erase(name) => {
                after.unmake(name);
                after.disks.remove(name);
            }
            Fault::Vanish(name) => after.list.retain(|it| it.name != *name),
            Fault::LoseNode(name) => {
                after.pods.insert(name.clone(), Process::Lost);
            }
            Fault::TurnAway(name) => {
                after.lose_pod(name);
                after.pods.insert(name.clone(), Process::Ended);
            }
            Fault::Spoil => after.recipe.spoilt = true,
            Fault::Overdo => after.recipe.refused = true,
            Fault::Mend => after.recipe.mend(),
            Fault::Forget => {
                after.record = BootstrapRecord::default();
                after.forget_told();
                after.forget_round();
            }
            Fault::Edit(size) => after.replicas = *size,
            Fault::Change => after.recipe.changed = !self.recipe.changed,
            Fault::Ask(minor) => after.ask_for(*minor),
            Fault::Turn(turn) => after.turn(*turn),
            Fault::Befall(mishap) => after.befall(mishap),
            Fault::SendAway(name) => {
                if let Some(object) = after.members.get_mut(name) {
                    object.intent = Intent::Leave;
                }
            }
        }
        after.live();
        after
    }

    fn unmake(&mut self, name: &MemberName) {
        self.members.remove(name);
        self.addresses.remove(name);
        self.lose_pod(name);
    }

    pub(super) fn lose_pod(&mut self, name: &MemberName) {
        self.pods.remove(name);
        self.made_of.remove(name);
        self.doors_of.remove(name);
        if !self.durable {
            self.disks.remove(name);
        }
    }

    /// The user sees that something is wrong with the spec.
    pub(crate) fn mended(mut self) -> Self {
        self.recipe.mend();
        self.give_secret();
        self.delete_keys();
        self
    }

    /// Time goes by: whoever is not up has been so for too long.
    pub(crate) fn later(&self) -> Self {
        let mut later = self.clone();
        later.time_goes_by();
        later.files_rest();
        let up: Vec<MemberName> =
            self.members.keys().filter(|it| later.is_up(it)).cloned().collect();
        for (name, object) in &mut later.members {
            object.given_up = !up.contains(name);
        }
        later
    }

    /// What happens by itself until nothing more does.
    pub(super) fn live(&mut self) {
        loop {
            let before = self.clone();
            self.form();
            for name in self.pods.keys().cloned().collect::<Vec<_>>() {
                self.start(&name);
            }
            self.leader = self.elected();
            for (name, object) in &mut self.members {
                let up = matches!(self.pods.get(name), Some(Process::Running { .. }))
                    && self.disks.get(name) == Some(&Disk::Log);
                object.given_up &= !up;
            }
            self.live_with_releases();
            self.live_with_doors();
            self.live_with_files();
            if *self == before {
                return;
            }
        }
    }

    /// Who leads: the same as before, if they can.
    fn elected(&self) -> Option<u64> {
        let up = |it: &&Entry| self.is_up(&it.name);
        let before = self.voters().find(|it| Some(it.id) == self.leader && up(it));
        let leads = before.or_else(|| self.voters().find(up));
        leads.filter(|_| self.answers()).map(|it| it.id)
    }

    /// The agent of one pod, and etcd after it.
    fn start(&mut self, name: &MemberName) {
        let Some(Process::Running { how, ran }) = self.pods.get(name).copied() else { return };
        if self.disks.get(name) == Some(&Disk::Log) {
            self.pods.insert(name.clone(), Process::Running { how, ran: true });
            return;
        }
        if how == StartMode::Rejoin || ran {
            self.pods.insert(name.clone(), Process::Refuses);
            return;
        }
        // A founder that comes late begins with the same first entries as the others, and has nothing to forget.
        let comes_late = how == StartMode::Bootstrap && self.formed;
        let registered = self.list.iter().any(|it| it.name == *name);
        if registered && (comes_late || self.answers()) {
            self.disks.insert(name.clone(), Disk::Log);
            self.pods.insert(name.clone(), Process::Running { how, ran: true });
        }
    }

    /// Founders become a cluster when enough of them run, once.
    fn form(&mut self) {
        let founders = self.record.members.clone();
        let founds = |it: &&MemberName| {
            matches!(
                self.pods.get(*it),
                Some(Process::Running { how: StartMode::Bootstrap, ran: false })
            ) && self.disks.get(*it) == Some(&Disk::Empty)
        };
        let ready: Vec<MemberName> = founders.iter().filter(founds).cloned().collect();
        if founders.is_empty() || ready.len() < quorum(founders.len()) {
            return;
        }
        if self.formed {
            self.broken = Some(format!("a second cluster was founded by {ready:?}"));
            return;
        }
        self.formed = true;
        for name in &founders {
            self.ids += 1;
            let peer = self.address(name);
            self.list.push(Entry { id: self.ids, name: name.clone(), learner: false, peer });
        }
        for name in ready {
            self.disks.insert(name.clone(), Disk::Log);
            self.pods.insert(name, Process::Running { how: StartMode::Bootstrap, ran: true });
        }
    }
}
