//! The etcd version that members run next, on the upgrade path to the version of the spec.
//!
//! Crash safety: a patch starts at once, a step to another minor version only after it is recorded.
//! So a pod that is recreated in between is never one step ahead of the others.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::observe::etcd::{EtcdProbe, member_of_peer_url};
use super::observe::objects::{ClusterObjects, is_removed, name_of};
use super::state::{MemberName, Reading, VersionProgress};
use crate::api::etcd_member::EtcdMember;
use crate::api::etcd_version::path::path;
use crate::api::etcd_version::{Direction, Release, direction};
use crate::api::strings::ReportedVersion;

/// The upgrade path of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpgradePath {
    /// The version of the spec.
    pub(crate) spec: Release,
    /// The lowest version that runs.
    pub(crate) lowest_running: Option<Release>,
    /// The recorded target of the current step.
    pub(crate) target: Option<Release>,
    /// The version that a downgrade is enabled for in etcd.
    pub(crate) downgrade_to: Option<Release>,
}

impl UpgradePath {
    /// The upgrade path of a cluster. The running version is what members report, else what they
    /// last reported, else what the cluster's status has. Removed members do not count, even if no
    /// quorum is reachable: their objects stay as long as their pods, and their version may be old.
    pub(crate) fn new(spec: Release, objects: &ClusterObjects, probe: &EtcdProbe) -> Self {
        let status = objects.cluster.status.as_ref();
        let parse = |version: Option<&ReportedVersion>| {
            Release::parse(version.map(ReportedVersion::as_str)?)
        };
        let counts =
            |member: &&EtcdMember| is_listed(probe, &name_of(*member)) && !is_removed(member);
        let running = objects.members.iter().filter(counts);
        let lowest = running.filter_map(|member| release(probe, member)).min();
        Self {
            spec,
            lowest_running: lowest
                .or_else(|| parse(status.and_then(|status| status.current_version.known()))),
            target: parse(status.and_then(|status| status.target_version.known())),
            downgrade_to: probe.downgrade_target(),
        }
    }

    /// The version that pods are created with now.
    pub(crate) fn effective(self) -> Release {
        self.next(false)
    }

    /// The version that comes next. A step to another minor version starts only if `prepared`, that
    /// is, once the data has the storage version of the running release.
    pub(crate) fn next(self, prepared: bool) -> Release {
        let Some(lowest_running) = self.lowest_running else { return self.spec };
        let step = self.first_step(lowest_running);
        // A recorded step to another minor version continues. A downgrade continues only while it
        // is enabled in etcd: otherwise a member of the lower version would not start.
        let downgrade_enabled =
            self.downgrade_to.is_some_and(|release| release.minor() == step.minor());
        let has_started = self.target.is_some_and(|target| match direction(lowest_running, step) {
            Direction::Downgrade => target.minor() <= step.minor() && downgrade_enabled,
            Direction::Same | Direction::Patch | Direction::Upgrade => {
                target.minor() >= step.minor()
            }
        });
        if step.minor() == lowest_running.minor() || has_started || prepared {
            step
        } else {
            lowest_running
        }
    }

    /// The version after the effective one, if the path continues.
    pub(crate) fn following(self) -> Option<Release> {
        let next = self.next(true);
        (next != self.effective()).then_some(next)
    }

    /// How far the cluster is on the path.
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

    /// The first step of the path. Without a path the version does not change.
    fn first_step(self, lowest_running: Release) -> Release {
        path(lowest_running, self.spec)
            .map_or(lowest_running, |steps| steps.first().copied().unwrap_or(self.spec))
    }
}

/// Whether etcd lists a member, or may.
fn is_listed(probe: &EtcdProbe, name: &MemberName) -> bool {
    let Reading::Known(view) = &probe.quorum else { return true };
    let mut urls = view.members.iter().flat_map(|listed| &listed.peer_urls);
    urls.any(|url| member_of_peer_url(url).as_ref() == Some(name))
}

/// The version that a member runs, or ran when it was last reachable.
fn release(probe: &EtcdProbe, member: &EtcdMember) -> Option<Release> {
    let reported = probe.status(&name_of(member)).map(|status| status.version.as_str());
    let recorded = || member.status.as_ref()?.version.known().map(ReportedVersion::as_str);
    Release::parse(reported.or_else(recorded)?)
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
    fn new_cluster_is_bootstrapped_with_the_version_of_the_spec() {
        assert_eq!(effective("3.6.16", "", ""), "3.6.16");
        assert_eq!(next("3.6.16", "", "", false), "3.6.16");
    }

    #[test]
    fn patch_starts_at_once_and_can_be_reverted() {
        assert_eq!(effective("3.6.16", "3.6.10", "3.6.10"), "3.6.16");
        assert_eq!(effective("3.6.10", "3.6.16", "3.6.16"), "3.6.10");
        assert_eq!(next("3.6.16", "3.6.10", "3.6.10", false), "3.6.16");
    }

    #[test]
    fn minor_step_starts_after_it_is_recorded() {
        assert_eq!(effective("3.6.16", "3.5.35", "3.5.35"), "3.5.35");
        assert_eq!(next("3.6.16", "3.5.35", "3.5.35", true), "3.6.16");
        assert_eq!(effective("3.6.16", "3.5.35", "3.6.16"), "3.6.16");
    }

    #[test]
    fn minor_step_starts_only_when_it_is_prepared() {
        assert_eq!(next("3.7.3", "3.6.16", "3.6.16", false), "3.6.16");
        assert_eq!(next("3.7.3", "3.6.16", "3.6.16", true), "3.7.3");
        // A started step continues: an updated member does not report the old storage version any
        // more.
        assert_eq!(next("3.7.3", "3.6.16", "3.7.3", false), "3.7.3");
    }

    #[test]
    fn long_path_is_taken_step_by_step() {
        let mut lowest_running = "3.5.21".to_owned();
        let mut target = lowest_running.clone();
        let mut versions = Vec::new();
        while lowest_running != "3.7.3" {
            target = next("3.7.3", &lowest_running, &target, true);
            assert_eq!(effective("3.7.3", &lowest_running, &target), target);
            let progress = path_of("3.7.3", &lowest_running, &target).progress();
            assert_eq!(progress == VersionProgress::MoreSteps, target != "3.7.3");
            lowest_running.clone_from(&target);
            versions.push(target.clone());
        }
        assert_eq!(versions, ["3.5.35", "3.6.16", "3.7.3"]);
    }

    #[test]
    fn unfinished_upgrade_can_be_reverted_or_continue_to_a_later_version() {
        assert_eq!(effective("3.5.35", "3.5.35", "3.6.16"), "3.5.35");
        assert_eq!(next("3.5.35", "3.5.35", "3.6.16", true), "3.5.35");
        assert_eq!(effective("3.7.3", "3.5.35", "3.6.16"), "3.6.16");
    }

    #[test]
    fn another_patch_of_a_started_step_is_no_step_back() {
        assert_eq!(effective("3.7.3", "3.6.16", "3.7.2"), "3.7.3");
        assert_eq!(next("3.7.3", "3.6.16", "3.7.2", false), "3.7.3");
    }

    #[test]
    fn downgrade_starts_after_it_is_recorded_and_enabled() {
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
        // The first member is downgraded.
        assert_eq!(effective("3.5.35", "3.5.35", "3.5.35"), "3.5.35");
    }

    #[test]
    fn downgrade_can_be_reverted_before_and_after_it_started() {
        assert_eq!(effective("3.6.16", "3.6.16", "3.5.35"), "3.6.16");
        assert_eq!(effective("3.6.16", "3.5.35", "3.5.35"), "3.5.35", "an upgrade like any other");
        assert_eq!(next("3.6.16", "3.5.35", "3.5.35", true), "3.6.16");
    }

    #[test]
    fn missing_path_is_reported() {
        assert_eq!(path_of("3.5.35", "3.7.3", "3.7.3").progress(), VersionProgress::NoPath);
        assert_eq!(path_of("3.5.20", "3.6.16", "3.6.16").progress(), VersionProgress::NoPath);
        assert_eq!(path_of("3.6.16", "3.6.16", "3.6.16").progress(), VersionProgress::AtTarget);
        assert_eq!(path_of("3.6.16", "", "").progress(), VersionProgress::AtTarget);
    }

    #[test]
    fn without_a_path_the_version_does_not_change() {
        assert_eq!(effective("3.5.35", "3.7.3", "3.7.3"), "3.7.3");
        assert_eq!(next("3.5.20", "3.6.16", "3.6.16", true), "3.6.16");
    }
}
