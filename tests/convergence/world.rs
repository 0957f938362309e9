//! A small world: etcd as raft lets it be, the agent, pods and disks. Whoever acts in it is told at once when they
//! break it.

mod done;
mod doors;
mod explain;
mod happen;
mod release;
mod upkeep;

use std::collections::BTreeMap;

pub(crate) use done::calls;
pub(crate) use doors::Turn;
use doors::{Door, Doors};
pub(crate) use happen::Fault;
use quorate::api::start_mode::StartMode;
use quorate::etcd_cluster::state::{
    BootstrapRecord, ClusterId, DesiredState, EtcdState, Intent, ListedMember, Member, MemberId,
    MemberName, ObservedState, PodState, Reading, TemplateState, VolumeState, quorum,
};
use quorate::etcd_cluster::transport::Scheme;
use release::{Releases, TakenBack};
use upkeep::Files;
pub(crate) use upkeep::Mishap;

/// The names that members get, in their order.
const NAMES: [&str; 26] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
    "t", "u", "v", "w", "x", "y", "z",
];
const CLUSTER: ClusterId = ClusterId(7);

/// A pod, as the kubelet has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    Gated(StartMode),
    Running {
        how: StartMode,
        ran: bool,
    },
    /// It was made from a spec that no node can satisfy.
    Waits(StartMode),
    Refuses,
    /// Its node is lost.
    Lost,
    /// Its node has turned it away.
    Ended,
}

/// What a pod is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Recipe {
    /// It is another one than at first.
    changed: bool,
    /// No node can satisfy it.
    spoilt: bool,
    /// The API server takes no pod that is made from it.
    refused: bool,
    /// Which minor version it is of.
    minor: u8,
}

impl Recipe {
    const fn mend(&mut self) {
        self.spoilt = false;
        self.refused = false;
    }
}

/// What is on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Disk {
    Empty,
    Log,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    id: u64,
    name: MemberName,
    learner: bool,
    peer: Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Object {
    intent: Intent,
    had_pod: bool,
    given_up: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) paused: bool,
    replicas: usize,
    sizes: &'static [usize],
    durable: bool,
    recipe: Recipe,
    record: BootstrapRecord,
    members: BTreeMap<MemberName, Object>,
    pods: BTreeMap<MemberName, Process>,
    /// What pods were made from.
    made_of: BTreeMap<MemberName, Recipe>,
    /// What pods take.
    doors_of: BTreeMap<MemberName, Door>,
    /// How members shall be called by the others, as it was written down.
    addresses: BTreeMap<MemberName, Scheme>,
    doors: Doors,
    disks: BTreeMap<MemberName, Disk>,
    list: Vec<Entry>,
    formed: bool,
    leader: Option<u64>,
    ids: u64,
    used: usize,
    releases: Releases,
    files: Files,
    taken_back: Option<TakenBack>,
    pub(crate) broken: Option<String>,
}

impl World {
    pub(crate) fn new(replicas: usize, durable: bool, sizes: &'static [usize]) -> Self {
        Self {
            paused: false,
            replicas,
            sizes,
            durable,
            recipe: Recipe::default(),
            record: BootstrapRecord::default(),
            members: BTreeMap::new(),
            pods: BTreeMap::new(),
            made_of: BTreeMap::new(),
            doors_of: BTreeMap::new(),
            addresses: BTreeMap::new(),
            doors: Doors::default(),
            disks: BTreeMap::new(),
            list: Vec::new(),
            formed: false,
            leader: None,
            ids: 0,
            used: 0,
            releases: Releases::default(),
            files: Files::default(),
            taken_back: None,
            broken: None,
        }
    }

    pub(crate) fn seen(&self) -> ObservedState {
        let free = NAMES.iter().skip(self.used).take(7).map(|it| MemberName((*it).to_owned()));
        ObservedState {
            desired: DesiredState {
                replicas: self.replicas,
                paused: self.paused,
                persistent: self.durable,
                version: self.course(),
                rollback: self.way_back(),
                peer_scheme: self.wanted_peers(),
                client_tls_transition: self.clients_move(),
            },
            bootstrap: self.record.clone(),
            members: self.members.iter().map(|(name, it)| self.member(name, *it)).collect(),
            orphaned_volumes: self
                .disks
                .keys()
                .filter(|it| !self.members.contains_key(*it))
                .cloned()
                .collect(),
            retained_volumes: Vec::new(),
            previous_cluster_objects: Vec::new(),
            etcd: if self.answers() { Reading::Known(self.etcd()) } else { Reading::Unknown },
            candidate_names: free.collect(),
            defragmentation: self.upkeep(),
        }
    }

    fn member(&self, name: &MemberName, object: Object) -> Member {
        let Object { intent, had_pod, given_up } = object;
        let pod = match self.pods.get(name) {
            None => PodState::Missing,
            Some(Process::Gated(_)) => PodState::Gated,
            Some(Process::Running { .. } | Process::Waits(_)) => PodState::Active,
            Some(Process::Refuses) => PodState::DataMissing,
            Some(Process::Lost) => PodState::Terminating,
            Some(Process::Ended) => PodState::Terminated,
        };
        let runs = matches!(self.pods.get(name), Some(Process::Running { .. }));
        let made = match (self.is_made_otherwise(name), runs) {
            (true, true) => TemplateState::Outdated,
            (true, false) if self.is_as_before(name) => TemplateState::PreviousNotRunning,
            (true, false) => TemplateState::StaleNotRunning,
            (false, _) => TemplateState::UpToDate,
        };
        let volume =
            if self.disks.contains_key(name) { VolumeState::Present } else { VolumeState::Missing };
        let (pod, volume) = (Reading::Known(pod), Reading::Known(volume));
        let fails = given_up
            && match self.pods.get(name) {
                Some(Process::Waits(_)) => true,
                Some(_) => false,
                None => self.holds().refused,
            };
        let address = self.address(name);
        Member {
            name: name.clone(),
            intent,
            started: had_pod,
            pod,
            volume,
            template: made,
            replacement_due: given_up,
            failing: fails,
            peer_scheme: address,
        }
    }

    fn etcd(&self) -> EtcdState {
        let entry = |it: &Entry| ListedMember {
            id: MemberId(it.id),
            name: it.name.clone(),
            is_learner: it.learner,
            healthy: Reading::Known(self.is_up(&it.name)),
            peer_scheme: it.peer,
            should_defragment: self.is_worth(&it.name),
            data_hash: self.said_copy(&it.name),
        };
        EtcdState {
            cluster: CLUSTER,
            leader: self.leader.map(MemberId),
            members: self.list.iter().map(entry).collect(),
            blocking_alarm: self.is_corrupt(),
            quota: self.space(),
            corrupt: self.is_corrupt(),
            raft_log_missing: self.log_lacks(),
            downgrade: self.lowering(),
            auth: self.auth(),
        }
    }

    fn is_up(&self, name: &MemberName) -> bool {
        matches!(self.pods.get(name), Some(Process::Running { .. }))
            && self.disks.get(name) == Some(&Disk::Log)
            && !self.is_rewriting(name)
    }

    fn voters(&self) -> impl Iterator<Item = &Entry> {
        self.list.iter().filter(|it| !it.learner)
    }

    fn answers(&self) -> bool {
        let up = self.voters().filter(|it| self.is_up(&it.name)).count();
        self.formed && up >= quorum(self.voters().count())
    }

    /// Whether too few voters have their data left to ever agree again.
    pub(crate) fn has_lost_its_quorum(&self) -> bool {
        let whole = |name: &MemberName| {
            self.disks.get(name) == Some(&Disk::Log) && self.pods.get(name) != Some(&Process::Lost)
        };
        if self.formed {
            let left = self.voters().filter(|it| whole(&it.name)).count();
            return left < quorum(self.voters().count());
        }
        false
    }

    /// Whether a pod was made from something else than there is now.
    fn is_made_otherwise(&self, name: &MemberName) -> bool {
        self.made_of.get(name).is_some_and(|it| *it != self.holds())
            || self.doors_of.get(name).is_some_and(|it| *it != self.door(name))
    }

    /// Whether a pod was made as those are that run otherwise than is wanted.
    fn is_as_before(&self, name: &MemberName) -> bool {
        self.worked().is_some_and(|it| self.made_of.get(name) == Some(&it))
    }

    /// Whether a quorum answers.
    pub(crate) fn serves(&self) -> bool {
        self.answers()
    }

    pub(crate) fn has_one_copy_in_memory(&self) -> bool {
        !self.durable && self.voters().count() == 1
    }

    pub(crate) fn is_as_wanted(&self) -> bool {
        if self.replicas == 0 {
            return self.pods.values().all(|it| *it == Process::Lost);
        }
        let well = self.list.iter().all(|it| !it.learner && self.is_up(&it.name));
        let known = self.list.iter().all(|it| self.members.contains_key(&it.name));
        // What is on a lost node stays until the node is back, or gone for good.
        let is_lost = |name: &&MemberName| self.pods.get(*name) == Some(&Process::Lost);
        let left = self.members.keys().filter(is_lost).count();
        let lost = self.pods.keys().filter(is_lost).count();
        let count = self.list.len() == self.replicas && self.members.len() == self.replicas + left;
        let is_new = self.list.iter().all(|it| !self.is_made_otherwise(&it.name));
        let is_there = self.has_what_is_asked_for() && self.is_called_as_wanted() && self.is_tidy();
        well && known && count && is_new && is_there && self.pods.len() == self.replicas + lost
    }
}
