//! Which release members are made of now, on the way to the one that is asked for.
//! Comes in: what is asked for, what runs, and what was being brought in. Goes out: a release. May touch: `api`; pure.
//! Within a minor version a change begins at once. A step to another minor version is written down before it begins:
//! members that were made anew meanwhile must not be a step further than the others.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::observe::etcd::{EtcdProbe, member_of_peer_url};
use super::observe::objects::{ClusterObjects, is_removed, name_of};
use super::state::{MemberName, Reading, VersionProgress};
use crate::api::etcd_member::EtcdMember;
use crate::api::etcd_version::path::path;
use crate::api::etcd_version::{Direction, Release, direction};
use crate::api::strings::ReportedVersion;

/// The way of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpgradePath {
    /// What the user asks for.
    pub(crate) spec: Release,
    /// The oldest release that runs.
    pub(crate) lowest_running: Option<Release>,
    /// What was being brought in.
    pub(crate) target: Option<Release>,
    /// What etcd was told to go down to.
    pub(crate) downgrade_to: Option<Release>,
}

impl UpgradePath {
    /// The way of a cluster. What members say of themselves counts first, then what they said last, and what is told
    /// of the cluster only if there is nothing else. Whoever etcd has struck from its list does not count, also if nobody can be
    /// asked for that list now: its object stays as long as its pod does, and what it ran may be long ago.
    pub(crate) fn new(spec: Release, objects: &ClusterObjects, probe: &EtcdProbe) -> Self {
        let status = objects.cluster.status.as_ref();
        let read = |it: Option<&ReportedVersion>| it.and_then(|it| Release::parse(it.as_str()));
        let counts = |it: &&EtcdMember| is_listed(probe, &name_of(*it)) && !is_removed(it);
        let running = objects.members.iter().filter(counts);
        let oldest = running.filter_map(|it| release(probe, it)).min();
        Self {
            spec,
            lowest_running: oldest
                .or_else(|| read(status.and_then(|it| it.current_version.known()))),
            target: read(status.and_then(|it| it.target_version.known())),
            downgrade_to: probe.downgrade_target(),
        }
    }

    /// What members are made of now.
    pub(crate) fn effective(self) -> Release {
        self.next(false)
    }

    /// What is brought in next. With data that is not in the form of what runs, no step to another minor version begins.
    pub(crate) fn next(self, prepared: bool) -> Release {
        let Some(lowest_running) = self.lowest_running else { return self.spec };
        let step = self.first_step(lowest_running);
        // A step to another minor version has begun when it was written down, and goes on. One down only as long as etcd
        // lets it: whoever came in against its will would not start.
        let downgrade_enabled = self.downgrade_to.is_some_and(|it| it.minor() == step.minor());
        let has_started = self.target.is_some_and(|it| match direction(lowest_running, step) {
            Direction::Downgrade => it.minor() <= step.minor() && downgrade_enabled,
            Direction::Same | Direction::Patch | Direction::Upgrade => it.minor() >= step.minor(),
        });
        if step.minor() == lowest_running.minor() || has_started || prepared {
            step
        } else {
            lowest_running
        }
    }

    /// What is brought in after that which is now, if there is more to come.
    pub(crate) fn following(self) -> Option<Release> {
        let next = self.next(true);
        (next != self.effective()).then_some(next)
    }

    /// How far it is to what is asked for.
    pub(crate) fn progress(self) -> VersionProgress {
        match self.lowest_running {
            Some(lowest_running)
                if self.spec != lowest_running
                    && self.first_step(lowest_running) == lowest_running =>
            {
                VersionProgress::NoPath
            }
            Some(_) if self.effective() == self.spec => VersionProgress::AtTarget,
            Some(lowest_running)
                if direction(lowest_running, self.spec) == Direction::Downgrade =>
            {
                VersionProgress::Downgrading
            }
            Some(_) => VersionProgress::MoreSteps,
            None => VersionProgress::AtTarget,
        }
    }

    /// The first step. Where there is no way, all stays as it is.
    fn first_step(self, lowest_running: Release) -> Release {
        path(lowest_running, self.spec)
            .map_or(lowest_running, |steps| steps.first().copied().unwrap_or(self.spec))
    }
}

/// Whether etcd has somebody in its list, or may have.
fn is_listed(probe: &EtcdProbe, name: &MemberName) -> bool {
    let Reading::Known(council) = &probe.quorum else { return true };
    let mut urls = council.members.iter().flat_map(|it| &it.peer_urls);
    urls.any(|url| member_of_peer_url(url).as_ref() == Some(name))
}

/// What a member runs, or ran when it was last heard.
fn release(probe: &EtcdProbe, member: &EtcdMember) -> Option<Release> {
    let reported = probe.status(&name_of(member)).map(|it| it.version.as_str());
    let before = || member.status.as_ref()?.version.known().map(ReportedVersion::as_str);
    Release::parse(reported.or_else(before)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Release> {
        Release::parse(text)
    }

    fn path_of(spec: &str, lowest_running: &str, target: &str) -> UpgradePath {
        let spec = read(spec).unwrap();
        UpgradePath {
            spec,
            lowest_running: read(lowest_running),
            target: read(target),
            downgrade_to: None,
        }
    }

    fn effective(spec: &str, lowest_running: &str, target: &str) -> String {
        path_of(spec, lowest_running, target).effective().to_string()
    }

    fn next(spec: &str, lowest_running: &str, target: &str, prepared: bool) -> String {
        path_of(spec, lowest_running, target).next(prepared).to_string()
    }

    #[test]
    fn a_cluster_that_never_ran_is_founded_with_what_is_asked_for() {
        assert_eq!(effective("3.6.16", "", ""), "3.6.16");
        assert_eq!(next("3.6.16", "", "", false), "3.6.16");
    }

    #[test]
    fn a_patch_begins_at_once_and_can_be_taken_back() {
        assert_eq!(effective("3.6.16", "3.6.10", "3.6.10"), "3.6.16");
        assert_eq!(effective("3.6.10", "3.6.16", "3.6.16"), "3.6.10");
        assert_eq!(next("3.6.16", "3.6.10", "3.6.10", false), "3.6.16");
    }

    #[test]
    fn another_minor_begins_when_it_was_written_down() {
        assert_eq!(effective("3.6.16", "3.5.35", "3.5.35"), "3.5.35");
        assert_eq!(next("3.6.16", "3.5.35", "3.5.35", true), "3.6.16");
        assert_eq!(effective("3.6.16", "3.5.35", "3.6.16"), "3.6.16");
    }

    #[test]
    fn it_begins_only_when_the_data_has_the_form_of_what_runs() {
        assert_eq!(next("3.7.3", "3.6.16", "3.6.16", false), "3.6.16");
        assert_eq!(next("3.7.3", "3.6.16", "3.6.16", true), "3.7.3");
        // What has begun goes on: a member of the new release is never asked what form its data has.
        assert_eq!(next("3.7.3", "3.6.16", "3.7.3", false), "3.7.3");
    }

    #[test]
    fn a_long_way_goes_step_by_step() {
        let mut lowest_running = "3.5.21".to_owned();
        let mut target = lowest_running.clone();
        let mut state = Vec::new();
        while lowest_running != "3.7.3" {
            target = next("3.7.3", &lowest_running, &target, true);
            assert_eq!(effective("3.7.3", &lowest_running, &target), target);
            let further =
                path_of("3.7.3", &lowest_running, &target).progress() == VersionProgress::MoreSteps;
            assert_eq!(further, target != "3.7.3");
            lowest_running.clone_from(&target);
            state.push(target.clone());
        }
        assert_eq!(state, ["3.5.35", "3.6.16", "3.7.3"]);
    }

    #[test]
    fn a_half_done_upgrade_is_taken_back_or_goes_on_to_a_later_release() {
        assert_eq!(effective("3.5.35", "3.5.35", "3.6.16"), "3.5.35");
        assert_eq!(next("3.5.35", "3.5.35", "3.6.16", true), "3.5.35");
        assert_eq!(effective("3.7.3", "3.5.35", "3.6.16"), "3.6.16");
    }

    #[test]
    fn another_patch_of_a_step_that_has_begun_turns_nobody_back() {
        assert_eq!(effective("3.7.3", "3.6.16", "3.7.2"), "3.7.3");
        assert_eq!(next("3.7.3", "3.6.16", "3.7.2", false), "3.7.3");
    }

    #[test]
    fn a_way_down_begins_when_it_was_written_down() {
        assert_eq!(effective("3.5.35", "3.6.16", "3.6.16"), "3.6.16");
        assert_eq!(path_of("3.5.35", "3.6.16", "3.6.16").progress(), VersionProgress::Downgrading);
        assert_eq!(next("3.5.35", "3.6.16", "3.6.16", false), "3.6.16");
        assert_eq!(next("3.5.35", "3.6.16", "3.6.16", true), "3.5.35");
        let enabled =
            UpgradePath { downgrade_to: read("3.5.0"), ..path_of("3.5.35", "3.6.16", "3.5.35") };
        assert_eq!(
            (enabled.effective().to_string().as_str(), enabled.progress()),
            ("3.5.35", VersionProgress::AtTarget)
        );
        let not_enabled = path_of("3.5.35", "3.6.16", "3.5.35");
        assert_eq!(
            (not_enabled.effective().to_string().as_str(), not_enabled.progress()),
            ("3.6.16", VersionProgress::Downgrading)
        );
        // The first member has gone down.
        assert_eq!(effective("3.5.35", "3.5.35", "3.5.35"), "3.5.35");
    }

    #[test]
    fn a_way_down_is_taken_back_before_and_after_it_has_begun() {
        assert_eq!(effective("3.6.16", "3.6.16", "3.5.35"), "3.6.16");
        assert_eq!(
            effective("3.6.16", "3.5.35", "3.5.35"),
            "3.5.35",
            "up again it is a step like any other"
        );
        assert_eq!(next("3.6.16", "3.5.35", "3.5.35", true), "3.6.16");
    }

    #[test]
    fn where_there_is_no_way_it_says_so() {
        assert_eq!(path_of("3.5.35", "3.7.3", "3.7.3").progress(), VersionProgress::NoPath);
        assert_eq!(path_of("3.5.20", "3.6.16", "3.6.16").progress(), VersionProgress::NoPath);
        assert_eq!(path_of("3.6.16", "3.6.16", "3.6.16").progress(), VersionProgress::AtTarget);
        assert_eq!(path_of("3.6.16", "", "").progress(), VersionProgress::AtTarget);
    }

    #[test]
    fn where_there_is_no_way_nothing_changes() {
        assert_eq!(effective("3.5.35", "3.7.3", "3.7.3"), "3.7.3");
        assert_eq!(next("3.5.20", "3.6.16", "3.6.16", true), "3.6.16");
    }
}
