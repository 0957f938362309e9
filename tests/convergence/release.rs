//! What members are made of in this world: which release the user asks for, which one is brought in, what an old one has left in
//! the log, and what was taken back because nobody starts with it.

use quorate::etcd_cluster::state::{Downgrade, MemberName, Rollback, VersionProgress};

use super::{Process, Recipe, World};

/// So many times entries are written until members have made another snapshot.
const ENOUGH: u8 = 2;
/// The minor version that cannot read what those before the last wrote.
const FORGETFUL: u8 = 2;

/// Minor versions, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Releases {
    /// Those that a user may ask for; there are no others if this is empty.
    choice: &'static [u8],
    /// Whether nothing else happens than that users ask for them.
    calm: bool,
    asked: u8,
    /// What was written down as the step that is taken.
    towards: u8,
    /// The oldest that has written to the log since the last snapshot that all have.
    in_log: u8,
    /// How often more must be written until there is another.
    lacks: u8,
    /// The cluster's own minor version: nobody older may come in.
    cluster: u8,
    /// Where etcd was told to go down to.
    lowered: Option<u8>,
}

/// A change that was taken back: what the user asked for, and what members are made of instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TakenBack {
    refused: Recipe,
    instead: Recipe,
}

impl World {
    /// The same world, in which users ask for these.
    pub(crate) fn with_releases(mut self, choice: &'static [u8]) -> Self {
        self.releases.choice = choice;
        self
    }

    /// The same world, in which nothing else happens than that.
    pub(crate) fn calm(mut self) -> Self {
        self.releases.calm = true;
        self
    }

    pub(super) fn is_calm(&self) -> bool {
        self.releases.calm
    }

    pub(crate) fn has_releases(&self) -> bool {
        !self.releases.choice.is_empty()
    }

    /// What the user may ask for now: down by one, and nobody turns round between two.
    pub(super) fn may_ask_for(&self) -> impl Iterator<Item = u8> {
        let Releases { choice, asked, .. } = self.releases;
        let runs = self.runs();
        let choice = if self.record.cluster_id.is_some() { choice } else { &[] };
        let turns_round = move |it: u8| it.cmp(&runs) == runs.cmp(&asked) && it != runs;
        let may = move |it: &u8| *it != asked && *it + 1 >= runs && !turns_round(*it);
        choice.iter().copied().filter(may)
    }

    pub(super) fn ask_for(&mut self, minor: u8) {
        self.releases.asked = minor;
    }

    /// What the user asks for.
    fn asked(&self) -> Recipe {
        Recipe { minor: self.releases.asked, ..self.recipe }
    }

    /// What members are made of instead of what the user asks for.
    pub(super) fn instead(&self) -> Option<Recipe> {
        self.taken_back.filter(|it| it.refused == self.asked()).map(|it| it.instead)
    }

    /// What members are made of now.
    pub(super) fn holds(&self) -> Recipe {
        Recipe { minor: self.next(false), ..self.instead().unwrap_or(self.recipe) }
    }

    /// What worked: what somebody is made of who is well and was made otherwise.
    pub(super) fn worked(&self) -> Option<Recipe> {
        let others = self.voters().filter(|it| self.is_up(&it.name));
        let mut made = others.filter_map(|it| self.made_of.get(&it.name).copied());
        made.find(|it| *it != self.holds()).filter(|it| *it != self.asked())
    }

    pub(super) fn way_back(&self) -> Rollback {
        match (self.instead(), self.worked()) {
            (Some(_), _) => Rollback::Active,
            (None, Some(_)) => Rollback::Available,
            (None, None) => Rollback::Unavailable,
        }
    }

    pub(super) fn take_back(&mut self, name: &MemberName) {
        if self.is_up(name) {
            self.broken = Some(format!("a change is taken back for {name}, which is up"));
        }
        let refused = self.asked();
        self.taken_back = self.worked().map(|instead| TakenBack { refused, instead });
    }

    /// What members are made of now, and what they are when all is settled: as `hop` has it.
    fn next(&self, settled: bool) -> u8 {
        let towards = self.releases.towards;
        let asked = self.goal();
        let runs = self.runs();
        let hop = asked.min(runs + 1);
        let is_let_down = self.lowered() == Some(hop);
        let has_begun = if hop < runs { towards <= hop && is_let_down } else { towards >= hop };
        if hop == runs || has_begun || settled { hop } else { runs }
    }

    /// What the user asks for, or what is there instead.
    fn goal(&self) -> u8 {
        self.instead().map_or(self.releases.asked, |it| it.minor)
    }

    pub(super) fn course(&self) -> VersionProgress {
        match self.goal() {
            goal if self.next(false) == goal => VersionProgress::AtTarget,
            goal if goal < self.runs() => VersionProgress::Downgrading,
            _ => VersionProgress::MoreSteps,
        }
    }

    /// What etcd was told to go down to. Only those who are new enough can say it.
    fn lowered(&self) -> Option<u8> {
        let says = self.list.iter().any(|it| {
            self.is_up(&it.name) && self.made_of.get(&it.name).is_some_and(|it| it.minor > 0)
        });
        self.releases.lowered.filter(|_| says)
    }

    pub(super) fn lowering(&self) -> Downgrade {
        match self.lowered() {
            None => Downgrade::None,
            Some(to) if to == self.goal() => Downgrade::Requested,
            Some(_) => Downgrade::Unwanted,
        }
    }

    pub(super) fn allow_downgrade(&mut self) {
        let is_one = self.list.iter().all(|it| self.made_of[&it.name].minor == self.runs());
        if !is_one || !self.voters().all(|it| self.is_up(&it.name)) {
            self.broken = Some("a downgrade begins, and not all run the same".to_owned());
        }
        // etcd refuses what it was told already.
        if self.releases.lowered.is_none() {
            self.releases.lowered = self.releases.cluster.checked_sub(1);
        }
    }

    pub(super) fn forbid_downgrade(&mut self) {
        self.releases.lowered = None;
    }

    pub(super) fn log_lacks(&self) -> u64 {
        let Releases { in_log, lacks, .. } = self.releases;
        let forgets = self.next(true) == FORGETFUL && self.next(false) < FORGETFUL;
        if forgets && in_log + 1 < FORGETFUL { u64::from(lacks) } else { 0 }
    }

    pub(super) fn fill_log(&mut self) {
        if !self.voters().all(|it| self.is_up(&it.name)) {
            self.broken = Some("entries are written while a voter is down".to_owned());
        }
        self.releases.lacks = self.releases.lacks.saturating_sub(1);
        if self.releases.lacks == 0 {
            self.releases.in_log = self.runs();
        }
    }

    /// The oldest minor version that a listed member has a pod of.
    fn runs(&self) -> u8 {
        let made = self.list.iter().filter_map(|it| self.made_of.get(&it.name));
        made.map(|it| it.minor).min().unwrap_or(self.releases.towards)
    }

    /// At the end of a pass it is written down which release comes next, if all run the one before.
    pub(super) fn tell(&mut self) {
        let runs = self.runs();
        let is_new = |name| self.made_of.get(name).is_some_and(|it| it.minor == runs);
        let mut all = self.list.iter();
        let all = all.all(|it| self.is_up(&it.name) && is_new(&it.name)) && !self.list.is_empty();
        let is_ready = match self.course() {
            VersionProgress::Downgrading => self.lowering() == Downgrade::Requested,
            VersionProgress::AtTarget | VersionProgress::MoreSteps | VersionProgress::NoPath => {
                self.log_lacks() == 0
            }
        };
        self.releases.towards = self.next(all && is_ready);
    }

    /// What the releases of those who run do to the log, and whether they get on with it and with each other.
    pub(super) fn live_with_releases(&mut self) {
        let running = self.pods.iter().filter(|it| matches!(it.1, Process::Running { .. }));
        let minors = running.filter_map(|(name, _)| Some(self.made_of.get(name)?.minor));
        let minors: Vec<u8> = minors.collect();
        let highest = minors.iter().copied().max().unwrap_or(0);
        if minors.iter().any(|it| highest - it > 1) {
            self.broken = Some(format!("members of {minors:?} meet"));
        }
        let runs = self.runs();
        if runs <= self.releases.in_log {
            self.releases.in_log = runs;
            self.releases.lacks = ENOUGH;
        }
        self.live_with_one_version(&minors);
        if highest == FORGETFUL && self.releases.in_log + 1 < FORGETFUL {
            self.broken = Some("a member starts on a log that it cannot read".to_owned());
        }
    }

    /// The cluster's own version follows its members up, and down where it was told to.
    fn live_with_one_version(&mut self, minors: &[u8]) {
        let runs = self.runs();
        let all = !self.list.is_empty() && self.list.iter().all(|it| self.is_up(&it.name));
        let Releases { cluster, lowered, .. } = &mut self.releases;
        match *lowered {
            Some(to) if all && minors.iter().all(|it| *it == to) => *lowered = None,
            Some(to) => *cluster = to,
            None if all => *cluster = runs.max(*cluster),
            None => {}
        }
        if minors.iter().any(|it| it < cluster) {
            self.broken = Some(format!("{minors:?} run in a cluster of {cluster}"));
        }
    }

    pub(super) fn has_what_is_asked_for(&self) -> bool {
        self.runs() == self.releases.asked
    }
}
