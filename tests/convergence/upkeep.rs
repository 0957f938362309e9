//! Members' files in this world, and whether members have the same data: what is free, what is full, whose turn it is, and who differs.

use std::collections::{BTreeMap, BTreeSet};

use quorate::etcd_cluster::plan::{Plan, Step};
use quorate::etcd_cluster::state::defragmentation::{
    Alarm, DefragRun, DefragTrigger, Defragmentation, Quota, Revision,
};
use quorate::etcd_cluster::state::{MemberName, quorum};

use super::{Process, World};

/// What clients wrote, and most have unless too much has happened.
const RIGHT: u8 = 0;
const MOST_TURNS: usize = 2;

#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is or is not the case")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Files {
    /// Whether any of this happens.
    may: bool,
    /// In whose files much is free.
    free: BTreeSet<MemberName>,
    /// Whose files have no room.
    large: BTreeSet<MemberName>,
    /// What makes them so large, besides what is free: history, and what people keep.
    history: bool,
    kept: bool,
    /// The alarms.
    full: bool,
    corrupt: bool,
    /// What was written down: the round, and that its last turn may not be over.
    round: Option<DefragRun>,
    until: bool,
    /// Whether the last round was a short while ago.
    recent: bool,
    /// Who rewrites its file, and answers nobody.
    rewriting: Option<MemberName>,
    /// Which data members have.
    copies: BTreeMap<MemberName, u8>,
}

/// What can happen to files and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// Much becomes free in a file.
    Free(MemberName),
    /// All files are full, of history.
    Full,
    /// All files are full, of what people keep.
    Stuffed,
    /// A member's data becomes another than the others', and etcd finds it.
    Differ(MemberName),
}

impl World {
    /// The same world, in which files grow and data differs.
    pub(crate) fn with_files(mut self) -> Self {
        self.files.may = true;
        self
    }

    pub(crate) const fn has_files(&self) -> bool {
        self.files.may
    }

    pub(super) fn mishaps(&self) -> Vec<Mishap> {
        if !self.files.may || self.record.cluster_id.is_none() {
            return Vec::new();
        }
        let up = || self.voters().map(|it| &it.name).filter(|it| self.is_up(it)).cloned();
        let mut all: Vec<Mishap> =
            up().filter(|it| !self.files.free.contains(it)).map(Mishap::Free).collect();
        if !self.files.full && self.answers() {
            all.extend([Mishap::Full, Mishap::Stuffed]);
        }
        // etcd compares when it has a leader.
        if self.answers() {
            all.extend(up().filter(|it| self.copy(it) == RIGHT).map(Mishap::Differ));
        }
        all
    }

    pub(super) fn befall(&mut self, mishap: &Mishap) {
        let listed = || self.list.iter().map(|it| it.name.clone()).collect();
        match mishap {
            Mishap::Free(name) => {
                self.files.free.insert(name.clone());
            }
            Mishap::Full | Mishap::Stuffed => {
                self.files.large = listed();
                self.files.full = true;
                self.files.history = true;
                self.files.kept |= *mishap == Mishap::Stuffed;
            }
            Mishap::Differ(name) => {
                let next = self.files.copies.values().max().map_or(1, |it| it + 1);
                self.files.copies.insert(name.clone(), next);
                self.files.corrupt = true;
            }
        }
    }

    /// The user deletes what filled the files.
    pub(super) const fn delete_keys(&mut self) {
        self.files.kept = false;
    }

    fn copy(&self, name: &MemberName) -> u8 {
        self.files.copies.get(name).copied().unwrap_or(RIGHT)
    }

    pub(super) fn is_rewriting(&self, name: &MemberName) -> bool {
        self.files.rewriting.as_ref() == Some(name)
    }

    /// What is said of a member's data: only while somebody asks, and it answers.
    pub(super) fn said_copy(&self, name: &MemberName) -> Option<u64> {
        (self.files.corrupt && self.is_up(name)).then(|| self.copy(name).into())
    }

    pub(super) fn is_worth(&self, name: &MemberName) -> bool {
        let Files { free, large, history, kept, full, .. } = &self.files;
        if *full { large.contains(name) && !history && !kept } else { free.contains(name) }
    }

    pub(super) fn space(&self) -> Quota {
        match (self.files.full, self.files.large.is_empty()) {
            (false, _) => Quota::Ok,
            (true, true) => Quota::Recovered,
            (true, false) => Quota::Exceeded,
        }
    }

    pub(super) const fn is_corrupt(&self) -> bool {
        self.files.corrupt
    }

    pub(super) fn upkeep(&self) -> Defragmentation {
        let Files { round, until, recent, full, history, .. } = &self.files;
        let is_rescue = round.as_ref().is_some_and(|it| it.trigger == DefragTrigger::NoSpace);
        // Where nobody agrees, nothing but what was written down is known.
        let answers = self.serves();
        let history = (answers && *full && *history && !is_rescue).then_some(Revision(1));
        let can_help = history.is_some() || self.voters().any(|it| self.is_worth(&it.name));
        let occasion = if *full { DefragTrigger::NoSpace } else { DefragTrigger::Threshold };
        let last = round.as_ref().and_then(|it| it.completed.last());
        Defragmentation {
            due: (answers && round.is_none() && !recent && can_help).then_some(occasion),
            in_progress: last.filter(|_| *until).cloned(),
            compact_to: history,
            waiting_for_compaction: false,
            run: round.clone(),
        }
    }

    /// Nothing of this may happen while members have different data.
    pub(super) fn must_have_the_same(&mut self, doing: &str) {
        if self.files.corrupt {
            self.broken = Some(format!("{doing} while members have different data"));
        }
    }

    /// Whether so many voters have what clients wrote as must agree, among those that answer.
    fn most_are_right(&self) -> bool {
        let right = self.voters().filter(|it| self.is_up(&it.name) && self.copy(&it.name) == RIGHT);
        right.count() >= quorum(self.voters().count())
    }

    /// Who has what most have is not removed while others differ.
    pub(super) fn must_be_wrong(&mut self, name: &MemberName) {
        if self.files.corrupt
            && self.is_up(name)
            && self.copy(name) == RIGHT
            && self.most_are_right()
        {
            self.broken = Some(format!("{name} is removed, and has the right data"));
        }
    }

    /// Whether nobody could tell which data is right.
    pub(crate) fn has_no_majority(&self) -> bool {
        let up = || self.voters().filter(|it| self.is_up(&it.name)).map(|it| self.copy(&it.name));
        let needed = quorum(self.voters().count());
        self.files.corrupt && !up().any(|copy| up().filter(|it| *it == copy).count() >= needed)
    }

    fn round(&self) -> DefragRun {
        let occasion = self.upkeep().due.unwrap_or(DefragTrigger::Threshold);
        self.files.round.clone().unwrap_or(DefragRun { trigger: occasion, completed: Vec::new() })
    }

    /// Whose turn it is, is written down first.
    fn note_turn(&mut self, name: &MemberName) {
        let mut round = self.round();
        round.completed.push(name.clone());
        if round.completed.iter().filter(|it| *it == name).count() > MOST_TURNS {
            self.broken = Some(format!("{name} has a third turn"));
        }
        self.files.round = Some(round);
        self.files.until = true;
    }

    pub(super) fn defragment(&mut self, name: &MemberName) {
        self.must_have_the_same("a file is rewritten");
        if !self.voters().all(|it| self.is_up(&it.name)) {
            self.broken = Some(format!("{name} rewrites its file beside a voter that is silent"));
        }
        if self.list.iter().any(|it| it.learner) {
            self.broken = Some(format!("{name} rewrites its file while somebody learns"));
        }
        let id = self.list.iter().find(|it| it.name == *name).map(|it| it.id);
        if self.leader == id && self.voters().count() > 1 {
            self.broken = Some(format!("{name} rewrites its file while it leads"));
        }
        self.note_turn(name);
        self.files.rewriting = Some(name.clone());
    }

    pub(super) fn compact(&mut self) {
        self.must_have_the_same("history is given up");
        if !self.files.full {
            self.broken = Some("history is given up, and there is room".to_owned());
        }
        self.files.history = false;
        self.files.round =
            Some(DefragRun { trigger: DefragTrigger::NoSpace, completed: Vec::new() });
        self.files.until = false;
    }

    pub(super) fn end_upkeep(&mut self) {
        self.files.round = None;
        self.files.until = false;
        self.files.recent = true;
    }

    pub(super) fn disarm(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::NoSpace => {
                if !self.files.large.is_empty() {
                    self.broken = Some("an alarm is ended, and there is no room".to_owned());
                }
                self.files.full = false;
            }
            Alarm::Corrupt => {
                let copies: BTreeSet<u8> = self.voters().map(|it| self.copy(&it.name)).collect();
                if copies.len() > 1 {
                    self.broken = Some(format!("an alarm is ended, and data differs: {copies:?}"));
                }
                self.files.corrupt = false;
            }
        }
    }

    /// A step of which one call was made, and no other.
    pub(super) fn half_tended(&self, plan: &Plan) -> Option<Self> {
        let mut half = self.after(plan, plan.tasks.len());
        if let Step::Defragment(name) = &plan.step {
            half.note_turn(name);
        } else if let Step::Compact(_) = &plan.step {
            half.files.history = false;
        } else {
            return None;
        }
        half.live();
        Some(half)
    }

    /// Whoever rewrote its file when a pass began is done when it is over.
    pub(super) fn rewritten(&mut self, name: &MemberName) {
        if !self.is_rewriting(name) {
            return;
        }
        self.files.rewriting = None;
        self.files.free.remove(name);
        if !self.files.history && !self.files.kept {
            self.files.large.remove(name);
        }
    }

    pub(super) fn busy(&self) -> Option<MemberName> {
        self.files.rewriting.clone()
    }

    pub(super) fn files_rest(&mut self) {
        if let Some(name) = self.busy() {
            self.rewritten(&name);
        }
        self.files.until = false;
        self.files.recent = false;
    }

    pub(super) fn forget_round(&mut self) {
        self.files.round = None;
        self.files.until = false;
        self.files.recent = false;
    }

    pub(super) fn live_with_files(&mut self) {
        let listed: BTreeSet<MemberName> = self.list.iter().map(|it| it.name.clone()).collect();
        let leads = self.voters().find(|it| Some(it.id) == self.leader).map(|it| it.name.clone());
        let pods = self.pods.clone();
        let runs = |name: &MemberName| matches!(pods.get(name), Some(Process::Running { .. }));
        self.files.rewriting = self.files.rewriting.take().filter(|it| runs(it));
        self.files.free.retain(|it| listed.contains(it));
        self.files.large.retain(|it| listed.contains(it));
        self.files.copies.retain(|it, _| listed.contains(it));
        if self.files.full && (self.files.history || self.files.kept) {
            self.files.large.extend(listed.iter().cloned());
        }
        // Whoever comes copies what the leader has, and nothing is free in that.
        let right = leads.map_or(RIGHT, |it| self.copy(&it));
        if right != RIGHT {
            let new: Vec<MemberName> =
                self.list.iter().filter(|it| it.learner).map(|it| it.name.clone()).collect();
            for name in new {
                self.files.copies.entry(name).or_insert(right);
            }
        }
    }

    pub(super) fn is_tidy(&self) -> bool {
        let Files { free, full, corrupt, round, .. } = &self.files;
        free.is_empty() && !full && !corrupt && round.is_none()
    }
}
