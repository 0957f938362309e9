//! Database files, alarms and data hashes in the model.

use std::collections::{BTreeMap, BTreeSet};

use quorate::etcd_cluster::plan::{Plan, Step};
use quorate::etcd_cluster::state::defragmentation::{
    Alarm, DefragRun, DefragTrigger, Defragmentation, Quota, Revision,
};
use quorate::etcd_cluster::state::{MemberName, quorum};

use super::{Entry, Model, Process};

/// What clients wrote; a majority has it unless too many faults happened.
const ORIGINAL_DATA: u8 = 0;
const MAX_RUNS_PER_MEMBER: usize = 2;

#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct DbFiles {
    /// Whether any of this happens.
    enabled: bool,
    /// The members with much free space.
    free: BTreeSet<MemberName>,
    /// The members with a file that has reached its quota.
    over_quota: BTreeSet<MemberName>,
    /// What fills the files apart from free space.
    old_revisions: bool,
    user_keys: bool,
    /// The active alarms.
    nospace: bool,
    corrupt: bool,
    /// The recorded run, and whether its last defragmentation may be in progress.
    run: Option<DefragRun>,
    in_progress: bool,
    /// Whether the last run completed a short time ago.
    recently_completed: bool,
    /// The member that is being defragmented and unavailable.
    defragmenting: Option<MemberName>,
    /// The data of each member.
    data_hashes: BTreeMap<MemberName, u8>,
}

/// A fault of database files or data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataFault {
    /// Much of a file becomes free.
    FreeSpace(MemberName),
    /// All files are filled by old revisions.
    QuotaFilledByRevisions,
    /// All files are filled by keys.
    QuotaFilledByKeys,
    /// The data of a member differs, and etcd detects it.
    Corrupt(MemberName),
}

impl Model {
    /// The model with faults of database files and data.
    pub(crate) fn with_db_files(mut self) -> Self {
        self.db_files.enabled = true;
        self
    }

    pub(crate) const fn has_db_files(&self) -> bool {
        self.db_files.enabled
    }

    pub(super) fn data_faults(&self) -> Vec<DataFault> {
        if !self.db_files.enabled || self.bootstrap.cluster_id.is_none() {
            return Vec::new();
        }
        let up = || self.voters().map(|entry| &entry.name).filter(|name| self.is_up(name)).cloned();
        let mut all: Vec<DataFault> = up()
            .filter(|name| !self.db_files.free.contains(name))
            .map(DataFault::FreeSpace)
            .collect();
        if !self.db_files.nospace && self.has_quorum() {
            all.extend([DataFault::QuotaFilledByRevisions, DataFault::QuotaFilledByKeys]);
        }
        // etcd compares hashes only with a leader.
        if self.has_quorum() {
            all.extend(
                up().filter(|name| self.data_hash(name) == ORIGINAL_DATA).map(DataFault::Corrupt),
            );
        }
        all
    }

    pub(super) fn apply_data_fault(&mut self, fault: &DataFault) {
        let listed = || self.listed.iter().map(|entry| entry.name.clone()).collect();
        match fault {
            DataFault::FreeSpace(name) => {
                self.db_files.free.insert(name.clone());
            }
            DataFault::QuotaFilledByRevisions | DataFault::QuotaFilledByKeys => {
                self.db_files.over_quota = listed();
                self.db_files.nospace = true;
                self.db_files.old_revisions = true;
                self.db_files.user_keys |= *fault == DataFault::QuotaFilledByKeys;
            }
            DataFault::Corrupt(name) => {
                let next = self.db_files.data_hashes.values().max().map_or(1, |hash| hash + 1);
                self.db_files.data_hashes.insert(name.clone(), next);
                self.db_files.corrupt = true;
            }
        }
    }

    /// The user deletes the keys that filled the files.
    pub(super) const fn delete_keys(&mut self) {
        self.db_files.user_keys = false;
    }

    fn data_hash(&self, name: &MemberName) -> u8 {
        self.db_files.data_hashes.get(name).copied().unwrap_or(ORIGINAL_DATA)
    }

    pub(super) fn is_defragmenting(&self, name: &MemberName) -> bool {
        self.db_files.defragmenting.as_ref() == Some(name)
    }

    /// The hash that a member reports while the alarm is active.
    pub(super) fn reported_hash(&self, name: &MemberName) -> Option<u64> {
        (self.db_files.corrupt && self.is_up(name)).then(|| self.data_hash(name).into())
    }

    pub(super) fn should_defragment(&self, name: &MemberName) -> bool {
        let DbFiles { free, over_quota, old_revisions, user_keys, nospace, .. } = &self.db_files;
        if *nospace {
            over_quota.contains(name) && !old_revisions && !user_keys
        } else {
            free.contains(name)
        }
    }

    pub(super) fn quota(&self) -> Quota {
        match (self.db_files.nospace, self.db_files.over_quota.is_empty()) {
            (false, _) => Quota::Ok,
            (true, true) => Quota::Recovered,
            (true, false) => Quota::Exceeded,
        }
    }

    pub(super) const fn is_corrupt(&self) -> bool {
        self.db_files.corrupt
    }

    pub(super) fn defragmentation(&self) -> Defragmentation {
        let DbFiles { run, in_progress, recently_completed, nospace, old_revisions, .. } =
            &self.db_files;
        let is_nospace_run = run.as_ref().is_some_and(|run| run.trigger == DefragTrigger::NoSpace);
        // Without quorum only the record is known.
        let has_quorum = self.has_quorum();
        let compacts = has_quorum && *nospace && *old_revisions && !is_nospace_run;
        let compact_to = compacts.then_some(Revision(1));
        let should_defragment = || self.voters().any(|entry| self.should_defragment(&entry.name));
        let can_help = compact_to.is_some() || should_defragment();
        let trigger = if *nospace { DefragTrigger::NoSpace } else { DefragTrigger::Threshold };
        let last = run.as_ref().and_then(|run| run.completed.last());
        Defragmentation {
            due: (has_quorum && run.is_none() && !recently_completed && can_help)
                .then_some(trigger),
            in_progress: last.filter(|_| *in_progress).cloned(),
            compact_to,
            waiting_for_compaction: false,
            run: run.clone(),
        }
    }

    /// Forbids an action while members have different data.
    pub(super) fn forbid_while_corrupt(&mut self, doing: &str) {
        if self.db_files.corrupt {
            self.violation = Some(format!("{doing} while members have different data"));
        }
    }

    /// Whether a quorum of voters is up and has what clients wrote.
    fn majority_is_right(&self) -> bool {
        let is_right = |entry: &&Entry| {
            self.is_up(&entry.name) && self.data_hash(&entry.name) == ORIGINAL_DATA
        };
        let right = self.voters().filter(is_right);
        right.count() >= quorum(self.voters().count())
    }

    /// Forbids the removal of a member with the data of the majority.
    pub(super) fn forbid_removing_right_data(&mut self, name: &MemberName) {
        if self.db_files.corrupt
            && self.is_up(name)
            && self.data_hash(name) == ORIGINAL_DATA
            && self.majority_is_right()
        {
            self.violation = Some(format!("{name} is removed, and has the right data"));
        }
    }

    /// Whether no data has a majority.
    pub(crate) fn has_no_majority(&self) -> bool {
        let up = || self.voters().filter(|entry| self.is_up(&entry.name));
        let hashes = || up().map(|entry| self.data_hash(&entry.name));
        let needed = quorum(self.voters().count());
        self.db_files.corrupt
            && !hashes().any(|hash| hashes().filter(|other| *other == hash).count() >= needed)
    }

    fn current_run(&self) -> DefragRun {
        let trigger = self.defragmentation().due.unwrap_or(DefragTrigger::Threshold);
        self.db_files.run.clone().unwrap_or(DefragRun { trigger, completed: Vec::new() })
    }

    /// Records a defragmentation before it starts.
    fn record_run(&mut self, name: &MemberName) {
        let mut run = self.current_run();
        run.completed.push(name.clone());
        if run.completed.iter().filter(|done| *done == name).count() > MAX_RUNS_PER_MEMBER {
            self.violation = Some(format!("{name} is defragmented a third time"));
        }
        self.db_files.run = Some(run);
        self.db_files.in_progress = true;
    }

    pub(super) fn defragment(&mut self, name: &MemberName) {
        self.forbid_while_corrupt("a member is defragmented");
        if !self.voters().all(|entry| self.is_up(&entry.name)) {
            self.violation = Some(format!("{name} is defragmented while a voter is down"));
        }
        if self.listed.iter().any(|entry| entry.is_learner) {
            self.violation = Some(format!("{name} is defragmented while there is a learner"));
        }
        let id = self.listed.iter().find(|entry| entry.name == *name).map(|entry| entry.id);
        if self.leader == id && self.voters().count() > 1 {
            self.violation = Some(format!("{name} is defragmented while it is the leader"));
        }
        self.record_run(name);
        self.db_files.defragmenting = Some(name.clone());
    }

    pub(super) fn compact(&mut self) {
        self.forbid_while_corrupt("revisions are compacted");
        if !self.db_files.nospace {
            self.violation = Some("revisions are compacted, and no quota is exceeded".to_owned());
        }
        self.db_files.old_revisions = false;
        self.db_files.run =
            Some(DefragRun { trigger: DefragTrigger::NoSpace, completed: Vec::new() });
        self.db_files.in_progress = false;
    }

    pub(super) fn finish_defragmentation(&mut self) {
        self.db_files.run = None;
        self.db_files.in_progress = false;
        self.db_files.recently_completed = true;
    }

    pub(super) fn disarm_alarm(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::NoSpace => {
                if !self.db_files.over_quota.is_empty() {
                    self.violation =
                        Some("NOSPACE is disarmed, and a quota is exceeded".to_owned());
                }
                self.db_files.nospace = false;
            }
            Alarm::Corrupt => {
                let hashes: BTreeSet<u8> =
                    self.voters().map(|entry| self.data_hash(&entry.name)).collect();
                if hashes.len() > 1 {
                    self.violation =
                        Some(format!("CORRUPT is disarmed, and data differs: {hashes:?}"));
                }
                self.db_files.corrupt = false;
            }
        }
    }

    /// The model after the first of two calls of a step.
    pub(super) fn partially_defragmented(&self, plan: &Plan) -> Option<Self> {
        let mut half = self.apply(plan, plan.tasks.len());
        if let Step::Defragment(name) = &plan.step {
            half.record_run(name);
        } else if let Step::Compact(_) = &plan.step {
            half.db_files.old_revisions = false;
        } else {
            return None;
        }
        half.settle();
        Some(half)
    }

    /// A defragmentation takes until the end of the next reconciliation.
    pub(super) fn end_defragment(&mut self, name: &MemberName) {
        if !self.is_defragmenting(name) {
            return;
        }
        self.db_files.defragmenting = None;
        self.db_files.free.remove(name);
        if !self.db_files.old_revisions && !self.db_files.user_keys {
            self.db_files.over_quota.remove(name);
        }
    }

    pub(super) fn defragmenting(&self) -> Option<MemberName> {
        self.db_files.defragmenting.clone()
    }

    pub(super) fn settle_db_files(&mut self) {
        if let Some(name) = self.defragmenting() {
            self.end_defragment(&name);
        }
        self.db_files.in_progress = false;
        self.db_files.recently_completed = false;
    }

    pub(super) fn lose_defrag_status(&mut self) {
        self.db_files.run = None;
        self.db_files.in_progress = false;
        self.db_files.recently_completed = false;
    }

    pub(super) fn update_db_files(&mut self) {
        let listed: BTreeSet<MemberName> =
            self.listed.iter().map(|entry| entry.name.clone()).collect();
        let leader = self.voters().find(|entry| Some(entry.id) == self.leader);
        let leader = leader.map(|entry| entry.name.clone());
        let pods = self.pods.clone();
        let runs = |name: &MemberName| matches!(pods.get(name), Some(Process::Running { .. }));
        self.db_files.defragmenting = self.db_files.defragmenting.take().filter(|name| runs(name));
        self.db_files.free.retain(|name| listed.contains(name));
        self.db_files.over_quota.retain(|name| listed.contains(name));
        self.db_files.data_hashes.retain(|name, _| listed.contains(name));
        if self.db_files.nospace && (self.db_files.old_revisions || self.db_files.user_keys) {
            self.db_files.over_quota.extend(listed.iter().cloned());
        }
        // A learner gets the data of the leader, without free space.
        let data = leader.map_or(ORIGINAL_DATA, |name| self.data_hash(&name));
        if data != ORIGINAL_DATA {
            let learners = self.listed.iter().filter(|entry| entry.is_learner);
            let learners: Vec<MemberName> = learners.map(|entry| entry.name.clone()).collect();
            for name in learners {
                self.db_files.data_hashes.entry(name).or_insert(data);
            }
        }
    }

    pub(super) fn db_files_in_order(&self) -> bool {
        let DbFiles { free, nospace, corrupt, run, .. } = &self.db_files;
        free.is_empty() && !nospace && !corrupt && run.is_none()
    }
}
