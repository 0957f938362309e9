//! Versions and templates in the model: the desired version, the current step, what old versions
//! left in the raft log, and rollbacks.

use quorate::etcd_cluster::state::{Downgrade, MemberName, Rollback, VersionProgress};

use super::{Entry, Model, Process, Template};

/// How often entries are written until members have another snapshot.
const WRITES_PER_SNAPSHOT: u8 = 2;
/// The minor version that cannot read entries from before the previous one.
const LOG_SENSITIVE_MINOR: u8 = 2;

/// Minor versions, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Releases {
    /// The versions that a user may set; none changes if this is empty.
    choices: &'static [u8],
    /// Whether nothing else happens.
    quiet: bool,
    desired: u8,
    /// The recorded target of the current step.
    target: u8,
    /// The oldest version that wrote to the log since the last snapshot that all members have.
    oldest_in_log: u8,
    /// How often entries must be written until there is another snapshot.
    missing_writes: u8,
    /// etcd's cluster version: no older member may start.
    cluster_version: u8,
    /// The version that a downgrade is enabled for.
    downgrade_to: Option<u8>,
}

/// A rollback: the desired template, and the one in use instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordedRollback {
    desired: Template,
    previous: Template,
}

impl Model {
    /// The model with changes of the version.
    pub(crate) fn with_releases(mut self, choices: &'static [u8]) -> Self {
        self.releases.choices = choices;
        self
    }

    /// The model without other faults.
    pub(crate) fn quiet(mut self) -> Self {
        self.releases.quiet = true;
        self
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.releases.quiet
    }

    pub(crate) fn has_releases(&self) -> bool {
        !self.releases.choices.is_empty()
    }

    /// The versions that the user may set now: at most one below, and no reversal between two
    /// minors.
    pub(super) fn possible_versions(&self) -> impl Iterator<Item = u8> {
        let Releases { choices, desired, .. } = self.releases;
        let running = self.lowest_running();
        let choices = if self.bootstrap.cluster_id.is_some() { choices } else { &[] };
        let reverses =
            move |minor: u8| minor.cmp(&running) == running.cmp(&desired) && minor != running;
        let is_allowed =
            move |minor: &u8| *minor != desired && *minor + 1 >= running && !reverses(*minor);
        choices.iter().copied().filter(is_allowed)
    }

    pub(super) fn set_version(&mut self, minor: u8) {
        self.releases.desired = minor;
    }

    /// The template of the spec.
    fn desired_template(&self) -> Template {
        Template { minor: self.releases.desired, ..self.template }
    }

    /// The template in use instead of the spec.
    pub(super) fn rolled_back_to(&self) -> Option<Template> {
        let recorded = self.rollback_record;
        recorded
            .filter(|rollback| rollback.desired == self.desired_template())
            .map(|rollback| rollback.previous)
    }

    /// The template of new pods.
    pub(super) fn current_template(&self) -> Template {
        Template {
            minor: self.next_version(false),
            ..self.rolled_back_to().unwrap_or(self.template)
        }
    }

    /// The template of a healthy member that differs from the current one.
    pub(super) fn working_template(&self) -> Option<Template> {
        let others = self.voters().filter(|entry| self.is_up(&entry.name));
        let mut templates = others.filter_map(|entry| self.templates.get(&entry.name).copied());
        templates
            .find(|template| *template != self.current_template())
            .filter(|template| *template != self.desired_template())
    }

    pub(super) fn rollback(&self) -> Rollback {
        match (self.rolled_back_to(), self.working_template()) {
            (Some(_), _) => Rollback::Active,
            (None, Some(_)) => Rollback::Available,
            (None, None) => Rollback::Unavailable,
        }
    }

    pub(super) fn roll_back(&mut self, name: &MemberName) {
        if self.is_up(name) {
            self.violation = Some(format!("the spec is rolled back for {name}, which is up"));
        }
        let desired = self.desired_template();
        self.rollback_record =
            self.working_template().map(|previous| RecordedRollback { desired, previous });
    }

    /// The version of new pods, as in `UpgradePath::next`.
    fn next_version(&self, prepared: bool) -> u8 {
        let target = self.releases.target;
        let desired = self.target_version();
        let running = self.lowest_running();
        let step = desired.min(running + 1);
        let is_enabled = self.reported_downgrade() == Some(step);
        let has_started =
            if step < running { target <= step && is_enabled } else { target >= step };
        if step == running || has_started || prepared { step } else { running }
    }

    /// The version of the spec, or of the rollback.
    fn target_version(&self) -> u8 {
        self.rolled_back_to().map_or(self.releases.desired, |template| template.minor)
    }

    pub(super) fn version_progress(&self) -> VersionProgress {
        match self.target_version() {
            target if self.next_version(false) == target => VersionProgress::AtTarget,
            target if target < self.lowest_running() => VersionProgress::Downgrading,
            _ => VersionProgress::MoreSteps,
        }
    }

    /// The enabled downgrade. Only members that are new enough report it.
    fn reported_downgrade(&self) -> Option<u8> {
        let reports = |entry: &Entry| {
            let template = self.templates.get(&entry.name);
            self.is_up(&entry.name) && template.is_some_and(|template| template.minor > 0)
        };
        self.releases.downgrade_to.filter(|_| self.listed.iter().any(reports))
    }

    pub(super) fn downgrade(&self) -> Downgrade {
        match self.reported_downgrade() {
            None => Downgrade::None,
            Some(to) if to == self.target_version() => Downgrade::Requested,
            Some(_) => Downgrade::Unwanted,
        }
    }

    pub(super) fn enable_downgrade(&mut self) {
        let running = self.lowest_running();
        let all_same = self.listed.iter().all(|entry| self.templates[&entry.name].minor == running);
        if !all_same || !self.voters().all(|entry| self.is_up(&entry.name)) {
            self.violation = Some("a downgrade is enabled, and versions differ".to_owned());
        }
        // etcd rejects a second request.
        if self.releases.downgrade_to.is_none() {
            self.releases.downgrade_to = self.releases.cluster_version.checked_sub(1);
        }
    }

    pub(super) fn cancel_downgrade(&mut self) {
        self.releases.downgrade_to = None;
    }

    pub(super) fn raft_log_missing(&self) -> u64 {
        let Releases { oldest_in_log, missing_writes, .. } = self.releases;
        let is_next = self.next_version(true) == LOG_SENSITIVE_MINOR
            && self.next_version(false) < LOG_SENSITIVE_MINOR;
        let is_unreadable = is_next && oldest_in_log + 1 < LOG_SENSITIVE_MINOR;
        if is_unreadable { u64::from(missing_writes) } else { 0 }
    }

    pub(super) fn advance_raft_log(&mut self) {
        if !self.voters().all(|entry| self.is_up(&entry.name)) {
            self.violation = Some("entries are written while a voter is down".to_owned());
        }
        self.releases.missing_writes = self.releases.missing_writes.saturating_sub(1);
        if self.releases.missing_writes == 0 {
            self.releases.oldest_in_log = self.lowest_running();
        }
    }

    /// The lowest minor version of the pods of listed members.
    fn lowest_running(&self) -> u8 {
        let templates = self.listed.iter().filter_map(|entry| self.templates.get(&entry.name));
        templates.map(|template| template.minor).min().unwrap_or(self.releases.target)
    }

    /// Records the target of the next step at the end of a reconciliation, if all members are ready
    /// for it.
    pub(super) fn record_target(&mut self) {
        let running = self.lowest_running();
        let is_same = |entry: &Entry| {
            self.templates.get(&entry.name).is_some_and(|template| template.minor == running)
        };
        let all_same = !self.listed.is_empty()
            && self.listed.iter().all(|entry| self.is_up(&entry.name) && is_same(entry));
        let is_ready = match self.version_progress() {
            VersionProgress::Downgrading => self.downgrade() == Downgrade::Requested,
            VersionProgress::AtTarget | VersionProgress::MoreSteps | VersionProgress::NoPath => {
                self.raft_log_missing() == 0
            }
        };
        self.releases.target = self.next_version(all_same && is_ready);
    }

    /// Updates log and cluster version, and checks that running versions can read and join them.
    pub(super) fn check_versions(&mut self) {
        let running = self.pods.iter().filter(|pod| matches!(pod.1, Process::Running { .. }));
        let minors = running.filter_map(|(name, _)| Some(self.templates.get(name)?.minor));
        let minors: Vec<u8> = minors.collect();
        let highest = minors.iter().copied().max().unwrap_or(0);
        if minors.iter().any(|minor| highest - minor > 1) {
            self.violation = Some(format!("members of minors {minors:?} run together"));
        }
        let running = self.lowest_running();
        if running <= self.releases.oldest_in_log {
            self.releases.oldest_in_log = running;
            self.releases.missing_writes = WRITES_PER_SNAPSHOT;
        }
        self.update_cluster_version(&minors);
        if highest == LOG_SENSITIVE_MINOR && self.releases.oldest_in_log + 1 < LOG_SENSITIVE_MINOR {
            self.violation = Some("a member starts with a log that it cannot read".to_owned());
        }
    }

    /// The cluster version follows the members up, and down if a downgrade is enabled.
    fn update_cluster_version(&mut self, minors: &[u8]) {
        let running = self.lowest_running();
        let all =
            !self.listed.is_empty() && self.listed.iter().all(|entry| self.is_up(&entry.name));
        let Releases { cluster_version, downgrade_to, .. } = &mut self.releases;
        match *downgrade_to {
            Some(to) if all && minors.iter().all(|minor| *minor == to) => *downgrade_to = None,
            Some(to) => *cluster_version = to,
            None if all => *cluster_version = running.max(*cluster_version),
            None => {}
        }
        if minors.iter().any(|minor| minor < cluster_version) {
            self.violation =
                Some(format!("minors {minors:?} run with cluster version {cluster_version}"));
        }
    }

    pub(super) fn has_desired_version(&self) -> bool {
        self.lowest_running() == self.releases.desired
    }
}
