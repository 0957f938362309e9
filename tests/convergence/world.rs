//! A small world: etcd as raft lets it be, the agent, pods and disks. Whoever acts in it is told at once when they
//! break it.

use std::collections::BTreeMap;

use quorate::api::told::Told;
use quorate::etcd_cluster::plan::{Chore, Plan, Step};
use quorate::etcd_cluster::seen::{
    ClusterId, Etcd, Intent, Member, MemberId, Name, Pod, Reading, Record, Registered, Seen,
    Volume, Wanted, quorum,
};

/// The names that members get, in their order.
const NAMES: [&str; 26] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
    "t", "u", "v", "w", "x", "y", "z",
];
const CLUSTER: ClusterId = ClusterId(7);

/// What can happen to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A pod is deleted.
    LosePod(Name),
    /// A pod and its volume are deleted.
    LoseDisk(Name),
    /// Its data is wiped while it runs.
    EmptyDisk(Name),
    /// Every pod is deleted at once.
    LoseAllPods,
    /// An EtcdMember is deleted by hand, and its pod with it.
    Unmake(Name),
    /// The same, and its volume.
    Erase(Name),
    /// A learner strikes itself from the list, as etcd has been seen to do.
    Vanish(Name),
    /// A pod's node is lost: the pod is on its way out for ever, and nobody hears of it.
    LoseNode(Name),
    /// A node turns a pod away that it has taken before.
    TurnAway(Name),
    /// The user wants another size; none is sleep.
    Edit(usize),
    /// The user asks for what no node can give. What is made from now on does not start.
    Spoil,
    /// The user takes that back. What was made meanwhile does not start by itself.
    Mend,
    /// What was written down in the status is lost.
    Forget,
}

/// A pod, as the kubelet has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    Gated(Told),
    Running {
        how: Told,
        ran: bool,
    },
    /// It was made from a spec that no node can satisfy.
    Waits(Told),
    Refuses,
    /// Its node is lost.
    Lost,
    /// Its node has turned it away.
    Ended,
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
    name: Name,
    learner: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Object {
    intent: Intent,
    had_pod: bool,
    given_up: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "a world is many facts")]
pub(crate) struct World {
    pub(crate) paused: bool,
    replicas: usize,
    sizes: &'static [usize],
    durable: bool,
    spoilt: bool,
    record: Record,
    members: BTreeMap<Name, Object>,
    pods: BTreeMap<Name, Process>,
    disks: BTreeMap<Name, Disk>,
    list: Vec<Entry>,
    formed: bool,
    leader: Option<u64>,
    ids: u64,
    used: usize,
    pub(crate) broken: Option<String>,
}

/// How many calls a plan makes.
pub(crate) fn calls(plan: &Plan) -> usize {
    plan.chores.len() + usize::from(plan.step != Step::Wait)
}

impl World {
    pub(crate) fn new(replicas: usize, durable: bool, sizes: &'static [usize]) -> Self {
        Self {
            paused: false,
            replicas,
            sizes,
            durable,
            spoilt: false,
            record: Record::default(),
            members: BTreeMap::new(),
            pods: BTreeMap::new(),
            disks: BTreeMap::new(),
            list: Vec::new(),
            formed: false,
            leader: None,
            ids: 0,
            used: 0,
            broken: None,
        }
    }

    // ---- what can be seen of it

    pub(crate) fn seen(&self) -> Seen {
        let free = NAMES.iter().skip(self.used).take(7).map(|it| Name((*it).to_owned()));
        Seen {
            wanted: Wanted { replicas: self.replicas, paused: self.paused, durable: self.durable },
            record: self.record.clone(),
            members: self.members.iter().map(|(name, it)| self.member(name, *it)).collect(),
            orphans: self
                .disks
                .keys()
                .filter(|it| !self.members.contains_key(*it))
                .cloned()
                .collect(),
            retained: Vec::new(),
            predecessors: Vec::new(),
            etcd: if self.answers() { Reading::Known(self.etcd()) } else { Reading::Unknown },
            free_names: free.collect(),
        }
    }

    fn member(&self, name: &Name, object: Object) -> Member {
        let Object { intent, had_pod, given_up } = object;
        let pod = match self.pods.get(name) {
            None => Pod::None,
            Some(Process::Gated(_)) => Pod::Gated,
            Some(Process::Running { .. } | Process::Waits(_)) => Pod::Started,
            Some(Process::Refuses) => Pod::Refuses,
            Some(Process::Lost) => Pod::Going,
            Some(Process::Ended) => Pod::Ended,
        };
        let stale = matches!(self.pods.get(name), Some(Process::Waits(_))) && !self.spoilt;
        let volume = if self.disks.contains_key(name) { Volume::There } else { Volume::None };
        let (pod, volume) = (Reading::Known(pod), Reading::Known(volume));
        Member { name: name.clone(), intent, had_pod, pod, volume, stale, given_up }
    }

    fn etcd(&self) -> Etcd {
        let entry = |it: &Entry| Registered {
            id: MemberId(it.id),
            name: it.name.clone(),
            learner: it.learner,
            healthy: Reading::Known(self.is_up(&it.name)),
        };
        Etcd {
            cluster: CLUSTER,
            leader: self.leader.map(MemberId),
            list: self.list.iter().map(entry).collect(),
        }
    }

    fn is_up(&self, name: &Name) -> bool {
        matches!(self.pods.get(name), Some(Process::Running { .. }))
            && self.disks.get(name) == Some(&Disk::Log)
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
        let whole = |name: &Name| {
            self.disks.get(name) == Some(&Disk::Log) && self.pods.get(name) != Some(&Process::Lost)
        };
        if self.formed {
            let left = self.voters().filter(|it| whole(&it.name)).count();
            return left < quorum(self.voters().count());
        }
        false
    }

    pub(crate) fn is_as_wanted(&self) -> bool {
        if self.replicas == 0 {
            return self.pods.values().all(|it| *it == Process::Lost);
        }
        let well = self.list.iter().all(|it| !it.learner && self.is_up(&it.name));
        let known = self.list.iter().all(|it| self.members.contains_key(&it.name));
        // What is on a lost node stays until the node is back, or gone for good.
        let is_lost = |name: &&Name| self.pods.get(*name) == Some(&Process::Lost);
        let left = self.members.keys().filter(is_lost).count();
        let lost = self.pods.keys().filter(is_lost).count();
        let count = self.list.len() == self.replicas && self.members.len() == self.replicas + left;
        well && known && count && self.pods.len() == self.replicas + lost
    }

    // ---- what happens in it

    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
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
        faults.push(if self.spoilt { Fault::Mend } else { Fault::Spoil });
        if self.record.formed.is_some() {
            faults.push(Fault::Forget);
        }
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
            Fault::Unmake(name) => {
                after.members.remove(name);
                after.lose_pod(name);
            }
            Fault::Erase(name) => {
                after.members.remove(name);
                after.lose_pod(name);
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
            Fault::Spoil => after.spoilt = true,
            Fault::Mend => after.spoilt = false,
            Fault::Forget => after.record = Record::default(),
            Fault::Edit(size) => after.replicas = *size,
        }
        after.live();
        after
    }

    fn lose_pod(&mut self, name: &Name) {
        self.pods.remove(name);
        if !self.durable {
            self.disks.remove(name);
        }
    }

    /// The user sees that something is wrong with the spec.
    pub(crate) fn mended(mut self) -> Self {
        self.spoilt = false;
        self
    }

    /// Time goes by: whoever is not up has been so for too long.
    pub(crate) fn later(&self) -> Self {
        let mut later = self.clone();
        for (name, object) in &mut later.members {
            object.given_up = !self.is_up(name);
        }
        later
    }

    /// What happens by itself until nothing more does.
    fn live(&mut self) {
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
    fn start(&mut self, name: &Name) {
        let Some(Process::Running { how, ran }) = self.pods.get(name).copied() else { return };
        if self.disks.get(name) == Some(&Disk::Log) {
            self.pods.insert(name.clone(), Process::Running { how, ran: true });
            return;
        }
        // A founder that waits for the others has nothing on its disk yet, and nothing to lose.
        if how == Told::Return || ran || (how == Told::Found && self.formed) {
            self.pods.insert(name.clone(), Process::Refuses);
            return;
        }
        let registered = self.list.iter().any(|it| it.name == *name);
        if how == Told::Join && registered && self.answers() {
            self.disks.insert(name.clone(), Disk::Log);
            self.pods.insert(name.clone(), Process::Running { how, ran: true });
        }
    }

    /// Founders become a cluster when enough of them run, once.
    fn form(&mut self) {
        let founders = self.record.founders.clone();
        let founds = |it: &&Name| {
            matches!(self.pods.get(*it), Some(Process::Running { how: Told::Found, ran: false }))
                && self.disks.get(*it) == Some(&Disk::Empty)
        };
        let ready: Vec<Name> = founders.iter().filter(founds).cloned().collect();
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
            self.list.push(Entry { id: self.ids, name: name.clone(), learner: false });
        }
        for name in ready {
            self.disks.insert(name.clone(), Disk::Log);
            self.pods.insert(name, Process::Running { how: Told::Found, ran: true });
        }
    }

    // ---- what is done to it

    /// The world after the first `most` calls of a plan.
    pub(crate) fn after(&self, plan: &Plan, most: usize) -> Self {
        let mut after = self.clone();
        for chore in plan.chores.iter().take(most) {
            after.chore(chore);
            after.live();
        }
        if most > plan.chores.len() {
            after.step(&plan.step);
            after.live();
        }
        after
    }

    fn chore(&mut self, chore: &Chore) {
        match chore {
            Chore::RecordFounders(names) => {
                self.must_be_cleared_away();
                self.used += names.len();
                self.record.founders.clone_from(names);
                self.record.begun = false;
                self.record.abandoned = false;
            }
            Chore::RecordAbandoned => {
                self.record.abandoned = true;
                if self.record.formed.is_some() {
                    self.broken = Some("a cluster that was formed is given up".to_owned());
                }
            }
            Chore::Scrap(name) => self.scrap(name),
            Chore::RecordBegun => self.record.begun = true,
            Chore::RecordFormed(id) => self.record.formed = Some(*id),
            Chore::MakeFounder(name) => self.make(name, Intent::Bootstrap),
            Chore::Adopt(name) => {
                self.make(name, Intent::Join);
                self.members.get_mut(name).unwrap().had_pod = true;
            }
            Chore::MakePod { member, told } => self.make_pod(member, *told),
            Chore::RecordPod(name) => {
                self.members.get_mut(name).unwrap().had_pod = true;
            }
            Chore::LetGo(name) => {
                if let Some(Process::Gated(how)) = self.pods.get(name).copied() {
                    self.pods.insert(name.clone(), self.started(how));
                }
            }
            Chore::ClearPod(name) => {
                if let Some(Process::Running { .. }) = self.pods.get(name) {
                    self.broken = Some(format!("{name} runs, and its pod is cleared away"));
                }
                self.lose_pod(name);
            }
            Chore::Sleep(name) => {
                if self.replicas > 0 {
                    self.broken = Some(format!("{name} is put to sleep, and nobody wants that"));
                }
                self.lose_pod(name);
            }
        }
    }

    fn make(&mut self, name: &Name, intent: Intent) {
        self.members.insert(name.clone(), Object { intent, had_pod: false, given_up: false });
    }

    fn make_pod(&mut self, name: &Name, told: Told) {
        let was_somebody = self.disks.get(name) == Some(&Disk::Log) || self.members[name].had_pod;
        let process = match told {
            Told::Found | Told::Join if was_somebody => {
                self.broken = Some(format!("{name} may have been somebody and is told {told:?}"));
                return;
            }
            Told::Found | Told::Join => Process::Gated(told),
            Told::Return => self.started(Told::Return),
        };
        self.disks.entry(name.clone()).or_insert(Disk::Empty);
        self.pods.insert(name.clone(), process);
    }

    fn started(&self, how: Told) -> Process {
        if self.spoilt { Process::Waits(how) } else { Process::Running { how, ran: false } }
    }

    fn scrap(&mut self, name: &Name) {
        if self.record.formed.is_some() || !self.record.abandoned {
            self.broken = Some(format!("{name} is scrapped, and it may have been written to"));
        }
        self.members.remove(name);
        if self.pods.get(name) != Some(&Process::Lost) {
            self.pods.remove(name);
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
            Step::MakeJoiner(name) => {
                self.make(name, Intent::Join);
                self.used = NAMES.iter().position(|it| **it == name.0).unwrap() + 1;
            }
            Step::AddLearner(name) => self.add(name),
            Step::Promote(id) => {
                let entry = self.list.iter_mut().find(|it| it.id == id.0).unwrap();
                entry.learner = false;
                let name = entry.name.clone();
                if !self.is_up(&name) {
                    self.broken = Some(format!("{name} votes and is not up"));
                }
            }
            Step::Retire(name) => self.members.get_mut(name).unwrap().intent = Intent::Leave,
            Step::MoveLeader(id) => self.leader = Some(id.0),
            Step::Remove(id) => self.remove(id.0),
            Step::DeletePod(name) => {
                self.must_be_a_stranger(name);
                self.lose_pod(name);
            }
            Step::Forget(name) => {
                self.must_be_a_stranger(name);
                self.members.remove(name);
                self.disks.remove(name);
            }
        }
    }

    fn add(&mut self, name: &Name) {
        if self.list.iter().any(|it| it.learner) {
            self.broken = Some(format!("{name} is a second learner"));
        }
        if !self.voters().all(|it| self.is_up(&it.name)) {
            self.broken = Some(format!("{name} is added beside a voter that is down"));
        }
        self.ids += 1;
        self.list.push(Entry { id: self.ids, name: name.clone(), learner: true });
    }

    fn remove(&mut self, id: u64) {
        let entry = self.list.iter().find(|it| it.id == id).unwrap().clone();
        self.list.retain(|it| it.id != id);
        if !entry.learner && !self.answers() {
            self.broken = Some(format!("without {} there is no quorum", entry.name));
        }
        if self.leader == Some(id) {
            self.broken = Some(format!("{} was removed while it led", entry.name));
        }
    }

    fn must_be_a_stranger(&mut self, name: &Name) {
        if self.list.iter().any(|it| it.name == *name) {
            self.broken = Some(format!("{name} is still a member, and is cleared away"));
        }
    }
}
