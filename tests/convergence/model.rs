//! A small model of a cluster: etcd as raft allows, the agent, pods and disks. An action that
//! violates a safety property is recorded in `violation`.

mod apply;
mod compare;
mod defragmentation;
mod faults;
mod release;
mod transport;

use std::collections::BTreeMap;

pub(crate) use apply::call_count;
pub(crate) use defragmentation::DataFault;
use defragmentation::DbFiles;
pub(crate) use faults::Fault;
use quorate::api::start_mode::StartMode;
use quorate::etcd_cluster::state::{
    BootstrapRecord, ClusterId, DesiredState, EtcdState, Intent, ListedMember, Member, MemberId,
    MemberName, ObservedState, PodState, Reading, TemplateState, VolumeState, quorum,
};
use quorate::etcd_cluster::transport::Scheme;
use release::{RecordedRollback, Releases};
pub(crate) use transport::AccessChange;
use transport::{Access, PodTransport};

/// The names of members, in the order of their creation.
const NAMES: [&str; 26] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
    "t", "u", "v", "w", "x", "y", "z",
];
const CLUSTER: ClusterId = ClusterId(7);

/// A pod, as the kubelet runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    Gated(StartMode),
    Running {
        start_mode: StartMode,
        ran: bool,
    },
    /// The template cannot be scheduled on any node.
    Unschedulable(StartMode),
    DataMissing,
    /// The node is lost.
    NodeLost,
    /// The kubelet rejected or evicted the pod.
    Terminated,
}

/// The template of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Template {
    /// Differs from the first one.
    changed: bool,
    /// No node can run it.
    unschedulable: bool,
    /// The API server rejects pods with it.
    rejected: bool,
    /// The minor version of etcd.
    minor: u8,
}

impl Template {
    const fn fix(&mut self) {
        self.unschedulable = false;
        self.rejected = false;
    }
}

/// The content of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Disk {
    Empty,
    HasWal,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    id: u64,
    name: MemberName,
    is_learner: bool,
    peer_scheme: Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Object {
    intent: Intent,
    started: bool,
    replacement_due: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    pub(crate) paused: bool,
    replicas: usize,
    sizes: &'static [usize],
    persistent: bool,
    template: Template,
    bootstrap: BootstrapRecord,
    members: BTreeMap<MemberName, Object>,
    pods: BTreeMap<MemberName, Process>,
    /// The templates of the pods.
    templates: BTreeMap<MemberName, Template>,
    /// The transport of the pods.
    pod_transports: BTreeMap<MemberName, PodTransport>,
    /// The recorded peer schemes of the members.
    peer_schemes: BTreeMap<MemberName, Scheme>,
    access: Access,
    disks: BTreeMap<MemberName, Disk>,
    listed: Vec<Entry>,
    formed: bool,
    leader: Option<u64>,
    last_id: u64,
    used_names: usize,
    releases: Releases,
    db_files: DbFiles,
    rollback_record: Option<RecordedRollback>,
    pub(crate) violation: Option<String>,
}

impl Model {
    pub(crate) fn new(replicas: usize, persistent: bool, sizes: &'static [usize]) -> Self {
        Self {
            paused: false,
            replicas,
            sizes,
            persistent,
            template: Template::default(),
            bootstrap: BootstrapRecord::default(),
            members: BTreeMap::new(),
            pods: BTreeMap::new(),
            templates: BTreeMap::new(),
            pod_transports: BTreeMap::new(),
            peer_schemes: BTreeMap::new(),
            access: Access::default(),
            disks: BTreeMap::new(),
            listed: Vec::new(),
            formed: false,
            leader: None,
            last_id: 0,
            used_names: 0,
            releases: Releases::default(),
            db_files: DbFiles::default(),
            rollback_record: None,
            violation: None,
        }
    }

    pub(crate) fn state(&self) -> ObservedState {
        let unused = NAMES.iter().skip(self.used_names).take(7);
        ObservedState {
            desired: DesiredState {
                replicas: self.replicas,
                paused: self.paused,
                persistent: self.persistent,
                version: self.version_progress(),
                rollback: self.rollback(),
                peer_scheme: self.desired_peer_scheme(),
                client_tls_transition: self.client_tls_transition(),
            },
            bootstrap: self.bootstrap.clone(),
            members: self.members.iter().map(|(name, object)| self.member(name, *object)).collect(),
            orphaned_volumes: self
                .disks
                .keys()
                .filter(|name| !self.members.contains_key(*name))
                .cloned()
                .collect(),
            retained_volumes: Vec::new(),
            previous_cluster_objects: Vec::new(),
            etcd: if self.has_quorum() { Reading::Known(self.etcd()) } else { Reading::Unknown },
            candidate_names: unused.map(|name| MemberName((*name).to_owned())).collect(),
            defragmentation: self.defragmentation(),
        }
    }

    fn member(&self, name: &MemberName, object: Object) -> Member {
        let Object { intent, started, replacement_due } = object;
        let pod = match self.pods.get(name) {
            None => PodState::Missing,
            Some(Process::Gated(_)) => PodState::Gated,
            Some(Process::Running { .. } | Process::Unschedulable(_)) => PodState::Active,
            Some(Process::DataMissing) => PodState::DataMissing,
            Some(Process::NodeLost) => PodState::Terminating,
            Some(Process::Terminated) => PodState::Terminated,
        };
        let runs = matches!(self.pods.get(name), Some(Process::Running { .. }));
        let template = match (self.template_differs(name), runs) {
            (true, true) => TemplateState::Outdated,
            (true, false) if self.has_previous_template(name) => TemplateState::PreviousNotRunning,
            (true, false) => TemplateState::StaleNotRunning,
            (false, _) => TemplateState::UpToDate,
        };
        let volume =
            if self.disks.contains_key(name) { VolumeState::Present } else { VolumeState::Missing };
        let (pod, volume) = (Reading::Known(pod), Reading::Known(volume));
        let failing = replacement_due
            && match self.pods.get(name) {
                Some(Process::Unschedulable(_)) => true,
                Some(_) => false,
                None => self.current_template().rejected,
            };
        Member {
            name: name.clone(),
            intent,
            started,
            pod,
            volume,
            template,
            replacement_due,
            failing,
            peer_scheme: self.peer_scheme_of(name),
        }
    }

    fn etcd(&self) -> EtcdState {
        let listed = |entry: &Entry| ListedMember {
            id: MemberId(entry.id),
            name: entry.name.clone(),
            is_learner: entry.is_learner,
            healthy: Reading::Known(self.is_up(&entry.name)),
            peer_scheme: entry.peer_scheme,
            should_defragment: self.should_defragment(&entry.name),
            data_hash: self.reported_hash(&entry.name),
        };
        EtcdState {
            cluster: CLUSTER,
            leader: self.leader.map(MemberId),
            members: self.listed.iter().map(listed).collect(),
            blocking_alarm: self.is_corrupt(),
            quota: self.quota(),
            corrupt: self.is_corrupt(),
            raft_log_missing: self.raft_log_missing(),
            downgrade: self.downgrade(),
            auth: self.auth(),
        }
    }

    fn is_up(&self, name: &MemberName) -> bool {
        matches!(self.pods.get(name), Some(Process::Running { .. }))
            && self.disks.get(name) == Some(&Disk::HasWal)
            && !self.is_defragmenting(name)
    }

    fn voters(&self) -> impl Iterator<Item = &Entry> {
        self.listed.iter().filter(|entry| !entry.is_learner)
    }

    pub(crate) fn has_quorum(&self) -> bool {
        let up = self.voters().filter(|entry| self.is_up(&entry.name)).count();
        self.formed && up >= quorum(self.voters().count())
    }

    /// Whether too few voters have their data left to ever have quorum again.
    pub(crate) fn has_lost_quorum(&self) -> bool {
        let has_data = |name: &MemberName| {
            self.disks.get(name) == Some(&Disk::HasWal)
                && self.pods.get(name) != Some(&Process::NodeLost)
        };
        if self.formed {
            let remaining = self.voters().filter(|entry| has_data(&entry.name)).count();
            return remaining < quorum(self.voters().count());
        }
        false
    }

    /// Whether a pod was created from another template than the current one.
    fn template_differs(&self, name: &MemberName) -> bool {
        self.templates.get(name).is_some_and(|template| *template != self.current_template())
            || self.pod_transports.get(name).is_some_and(|pod| *pod != self.transport_of(name))
    }

    /// Whether a pod was created from the template that other members still run with.
    fn has_previous_template(&self, name: &MemberName) -> bool {
        self.working_template().is_some_and(|working| self.templates.get(name) == Some(&working))
    }

    pub(crate) fn has_single_in_memory_copy(&self) -> bool {
        !self.persistent && self.voters().count() == 1
    }

    pub(crate) fn is_as_desired(&self) -> bool {
        if self.replicas == 0 {
            return self.pods.values().all(|process| *process == Process::NodeLost);
        }
        let healthy = self.listed.iter().all(|entry| !entry.is_learner && self.is_up(&entry.name));
        let known = self.listed.iter().all(|entry| self.members.contains_key(&entry.name));
        // Objects on a lost node stay until the node returns or is deleted.
        let is_lost = |name: &&MemberName| self.pods.get(*name) == Some(&Process::NodeLost);
        let lost_members = self.members.keys().filter(is_lost).count();
        let lost_pods = self.pods.keys().filter(is_lost).count();
        let count = self.listed.len() == self.replicas
            && self.members.len() == self.replicas + lost_members
            && self.pods.len() == self.replicas + lost_pods;
        let up_to_date = self.listed.iter().all(|entry| !self.template_differs(&entry.name));
        healthy
            && known
            && count
            && up_to_date
            && self.has_desired_version()
            && self.has_desired_access()
            && self.db_files_in_order()
    }
}
