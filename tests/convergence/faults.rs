//! Faults and user actions, and what follows from them without the operator.

use quorate::api::start_mode::StartMode;
use quorate::etcd_cluster::state::{BootstrapRecord, Intent, MemberName, quorum};

use super::{AccessChange, DataFault, Disk, Entry, Model, Process};

/// A fault, or an action of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A pod is deleted.
    LosePod(MemberName),
    /// A pod and its volume are deleted.
    LoseDisk(MemberName),
    /// The data is wiped while the member runs.
    EmptyDisk(MemberName),
    /// Every pod is deleted at once.
    LoseAllPods,
    /// An EtcdMember is deleted by hand, and its pod with it.
    DeleteMember(MemberName),
    /// The same, and its volume.
    DeleteMemberAndVolume(MemberName),
    /// A learner removes itself from the member list, as etcd has been observed to do.
    LearnerRemovesItself(MemberName),
    /// The node of a pod is lost: the pod terminates for ever, and is unreachable.
    LoseNode(MemberName),
    /// The kubelet evicts a pod.
    PodEvicted(MemberName),
    /// The user changes the replicas; 0 hibernates the cluster.
    SetReplicas(usize),
    /// The user sets a template that no node can run. Pods created from now on do not start.
    BadSpec,
    /// The user sets a template with which the API server rejects pods.
    RejectedPods,
    /// The user reverts that. Pods created meanwhile still do not start.
    FixSpec,
    /// The status is lost.
    LoseStatus,
    /// The user sets another template that works, or reverts that.
    ChangeTemplate,
    /// The user sets another version.
    SetVersion(u8),
    /// TLS or authentication is changed.
    ChangeAccess(AccessChange),
    /// A fault of database files or data.
    Data(DataFault),
    /// The user marks a member for removal.
    MarkLeaving(MemberName),
}

impl Model {
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.possible_versions().map(Fault::SetVersion).collect();
        faults.extend(self.access_changes().into_iter().map(Fault::ChangeAccess));
        faults.extend(self.data_faults().into_iter().map(Fault::Data));
        if self.is_quiet() {
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
                faults.push(Fault::PodEvicted(name.clone()));
            }
        }
        if self.pods.len() > 1 {
            faults.push(Fault::LoseAllPods);
        }
        faults.push(if self.template.unschedulable { Fault::FixSpec } else { Fault::BadSpec });
        if self.bootstrap.cluster_id.is_some() {
            faults.push(Fault::LoseStatus);
        }
        faults.push(Fault::ChangeTemplate);
        for name in self.members.keys() {
            faults.push(Fault::DeleteMember(name.clone()));
            faults.push(Fault::DeleteMemberAndVolume(name.clone()));
        }
        let learners = self.listed.iter().filter(|entry| entry.is_learner);
        faults.extend(learners.map(|entry| Fault::LearnerRemovesItself(entry.name.clone())));
        let sizes = self.sizes.iter().filter(|size| **size != self.replicas);
        faults.extend(sizes.map(|size| Fault::SetReplicas(*size)));
        faults
    }

    pub(crate) fn with_fault(&self, fault: &Fault) -> Self {
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
            Fault::DeleteMember(name) => after.delete_member(name),
            Fault::DeleteMemberAndVolume(name) => {
                after.delete_member(name);
                after.disks.remove(name);
            }
            Fault::LearnerRemovesItself(name) => after.listed.retain(|entry| entry.name != *name),
            Fault::LoseNode(name) => {
                after.pods.insert(name.clone(), Process::NodeLost);
            }
            Fault::PodEvicted(name) => {
                after.lose_pod(name);
                after.pods.insert(name.clone(), Process::Terminated);
            }
            Fault::BadSpec => after.template.unschedulable = true,
            Fault::RejectedPods => after.template.rejected = true,
            Fault::FixSpec => after.template.fix(),
            Fault::LoseStatus => {
                after.bootstrap = BootstrapRecord::default();
                after.lose_client_status();
                after.lose_defrag_status();
            }
            Fault::SetReplicas(size) => after.replicas = *size,
            Fault::ChangeTemplate => after.template.changed = !self.template.changed,
            Fault::SetVersion(minor) => after.set_version(*minor),
            Fault::ChangeAccess(change) => after.change_access(*change),
            Fault::Data(fault) => after.apply_data_fault(fault),
            Fault::MarkLeaving(name) => {
                if let Some(object) = after.members.get_mut(name) {
                    object.intent = Intent::Leave;
                }
            }
        }
        after.settle();
        after
    }

    fn delete_member(&mut self, name: &MemberName) {
        self.members.remove(name);
        self.peer_schemes.remove(name);
        self.lose_pod(name);
    }

    pub(super) fn lose_pod(&mut self, name: &MemberName) {
        self.pods.remove(name);
        self.templates.remove(name);
        self.pod_transports.remove(name);
        if !self.persistent {
            self.disks.remove(name);
        }
    }

    /// The user fixes the spec and its Secrets.
    pub(crate) fn recovered(mut self) -> Self {
        self.template.fix();
        self.restore_secret();
        self.delete_keys();
        self
    }

    /// Time passes: members that are not up are to be replaced.
    pub(crate) fn advance_time(&self) -> Self {
        let mut advance_time = self.clone();
        advance_time.end_overlap();
        advance_time.settle_db_files();
        let up: Vec<MemberName> =
            self.members.keys().filter(|name| advance_time.is_up(name)).cloned().collect();
        for (name, object) in &mut advance_time.members {
            object.replacement_due = !up.contains(name);
        }
        advance_time
    }

    /// What happens without the operator, until nothing changes.
    pub(super) fn settle(&mut self) {
        loop {
            let before = self.clone();
            self.form_cluster();
            for name in self.pods.keys().cloned().collect::<Vec<_>>() {
                self.start(&name);
            }
            self.leader = self.elect();
            for (name, object) in &mut self.members {
                let up = matches!(self.pods.get(name), Some(Process::Running { .. }))
                    && self.disks.get(name) == Some(&Disk::HasWal);
                object.replacement_due &= !up;
            }
            self.check_versions();
            self.check_transport();
            self.update_db_files();
            if *self == before {
                return;
            }
        }
    }

    /// The leader: the same as before, if possible.
    fn elect(&self) -> Option<u64> {
        let up = |entry: &&Entry| self.is_up(&entry.name);
        let previous = self.voters().find(|entry| Some(entry.id) == self.leader && up(entry));
        let leader = previous.or_else(|| self.voters().find(up));
        leader.filter(|_| self.has_quorum()).map(|entry| entry.id)
    }

    /// The agent of one pod, and then etcd.
    fn start(&mut self, name: &MemberName) {
        let Some(Process::Running { start_mode, ran }) = self.pods.get(name).copied() else {
            return;
        };
        if self.disks.get(name) == Some(&Disk::HasWal) {
            self.pods.insert(name.clone(), Process::Running { start_mode, ran: true });
            return;
        }
        if start_mode == StartMode::Rejoin || ran {
            self.pods.insert(name.clone(), Process::DataMissing);
            return;
        }
        // A late initial member starts with the same first entries as the others, and has no data
        // to lose.
        let is_late = start_mode == StartMode::Bootstrap && self.formed;
        let is_listed = self.listed.iter().any(|entry| entry.name == *name);
        if is_listed && (is_late || self.has_quorum()) {
            self.disks.insert(name.clone(), Disk::HasWal);
            self.pods.insert(name.clone(), Process::Running { start_mode, ran: true });
        }
    }

    /// The initial members form a cluster when a quorum of them runs, once.
    fn form_cluster(&mut self) {
        let initial = self.bootstrap.members.clone();
        let can_bootstrap = |name: &&MemberName| {
            matches!(
                self.pods.get(*name),
                Some(Process::Running { start_mode: StartMode::Bootstrap, ran: false })
            ) && self.disks.get(*name) == Some(&Disk::Empty)
        };
        let ready: Vec<MemberName> = initial.iter().filter(can_bootstrap).cloned().collect();
        if initial.is_empty() || ready.len() < quorum(initial.len()) {
            return;
        }
        if self.formed {
            self.violation = Some(format!("a second cluster was bootstrapped by {ready:?}"));
            return;
        }
        self.formed = true;
        for name in &initial {
            self.last_id += 1;
            let peer_scheme = self.peer_scheme_of(name);
            self.listed.push(Entry {
                id: self.last_id,
                name: name.clone(),
                is_learner: false,
                peer_scheme,
            });
        }
        for name in ready {
            self.disks.insert(name.clone(), Disk::HasWal);
            self.pods
                .insert(name, Process::Running { start_mode: StartMode::Bootstrap, ran: true });
        }
    }
}
