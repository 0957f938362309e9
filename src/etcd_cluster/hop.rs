//! Which release members are made of now, on the way to the one that is asked for.
//! Comes in: what is asked for, what runs, and what was being brought in. Goes out: a release. May touch: `api`; pure.
//! Within a minor version a change begins at once. A step to another minor version is written down before it begins:
//! members that were made anew meanwhile must not be a step further than the others.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::heard::{Heard, named_in};
use super::seen::{Course, Name, Reading};
use super::stock::{Stock, has_left, name_of};
use crate::api::etcd_member::EtcdMember;
use crate::api::etcd_version::path::path;
use crate::api::etcd_version::{Direction, Release, direction};
use crate::api::texts::ReportedVersion;

/// The way of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// What the user asks for.
    pub(crate) asked: Release,
    /// The oldest release that runs.
    pub(crate) runs: Option<Release>,
    /// What was being brought in.
    pub(crate) towards: Option<Release>,
    /// What etcd was told to go down to.
    pub(crate) lowered: Option<Release>,
}

impl Way {
    /// The way of a cluster. What members say of themselves counts first, then what they said last, and what is told
    /// of the cluster only if there is nothing else. Whoever etcd has struck from its list does not count, also if nobody can be
    /// asked for that list now: its object stays as long as its pod does, and what it ran may be long ago.
    pub(crate) fn of(asked: Release, stock: &Stock, heard: &Heard) -> Self {
        let status = stock.cluster.status.as_ref();
        let read = |it: Option<&ReportedVersion>| it.and_then(|it| Release::parse(it.as_str()));
        let counts = |it: &&EtcdMember| is_listed(heard, &name_of(*it)) && !has_left(it);
        let running = stock.members.iter().filter(counts);
        let oldest = running.filter_map(|it| release(heard, it)).min();
        Self {
            asked,
            runs: oldest.or_else(|| read(status.and_then(|it| it.current_version.known()))),
            towards: read(status.and_then(|it| it.target_version.known())),
            lowered: heard.lowered(),
        }
    }

    /// What members are made of now.
    pub(crate) fn now(self) -> Release {
        self.next(false)
    }

    /// What is brought in next. With data that is not in the form of what runs, no step to another minor version begins.
    pub(crate) fn next(self, settled: bool) -> Release {
        let Some(runs) = self.runs else { return self.asked };
        let hop = self.hop(runs);
        // A step to another minor version has begun when it was written down, and goes on. One down only as long as etcd
        // lets it: whoever came in against its will would not start.
        let is_let_down = self.lowered.is_some_and(|it| it.minor() == hop.minor());
        let has_begun = self.towards.is_some_and(|it| match direction(runs, hop) {
            Direction::Downgrade => it.minor() <= hop.minor() && is_let_down,
            Direction::Same | Direction::Patch | Direction::Upgrade => it.minor() >= hop.minor(),
        });
        if hop.minor() == runs.minor() || has_begun || settled { hop } else { runs }
    }

    /// What is brought in after that which is now, if there is more to come.
    pub(crate) fn after(self) -> Option<Release> {
        let next = self.next(true);
        (next != self.now()).then_some(next)
    }

    /// How far it is to what is asked for.
    pub(crate) fn course(self) -> Course {
        match self.runs {
            Some(runs) if self.asked != runs && self.hop(runs) == runs => Course::NoWay,
            Some(_) if self.now() == self.asked => Course::Reached,
            Some(runs) if direction(runs, self.asked) == Direction::Downgrade => Course::Down,
            Some(_) => Course::Further,
            None => Course::Reached,
        }
    }

    /// The first step. Where there is no way, all stays as it is.
    fn hop(self, runs: Release) -> Release {
        path(runs, self.asked).map_or(runs, |hops| hops.first().copied().unwrap_or(self.asked))
    }
}

/// Whether etcd has somebody in its list, or may have.
fn is_listed(heard: &Heard, name: &Name) -> bool {
    let Reading::Known(council) = &heard.council else { return true };
    let mut urls = council.list.iter().flat_map(|it| &it.peer_urls);
    urls.any(|url| named_in(url).as_ref() == Some(name))
}

/// What a member runs, or ran when it was last heard.
fn release(heard: &Heard, member: &EtcdMember) -> Option<Release> {
    let said = heard.standing(&name_of(member)).map(|it| it.version.as_str());
    let before = || member.status.as_ref()?.version.known().map(ReportedVersion::as_str);
    Release::parse(said.or_else(before)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Release> {
        Release::parse(text)
    }

    fn way(asked: &str, runs: &str, towards: &str) -> Way {
        let asked = read(asked).unwrap();
        Way { asked, runs: read(runs), towards: read(towards), lowered: None }
    }

    fn now(asked: &str, runs: &str, towards: &str) -> String {
        way(asked, runs, towards).now().to_string()
    }

    fn next(asked: &str, runs: &str, towards: &str, settled: bool) -> String {
        way(asked, runs, towards).next(settled).to_string()
    }

    #[test]
    fn a_cluster_that_never_ran_is_founded_with_what_is_asked_for() {
        assert_eq!(now("3.6.16", "", ""), "3.6.16");
        assert_eq!(next("3.6.16", "", "", false), "3.6.16");
    }

    #[test]
    fn a_patch_begins_at_once_and_can_be_taken_back() {
        assert_eq!(now("3.6.16", "3.6.10", "3.6.10"), "3.6.16");
        assert_eq!(now("3.6.10", "3.6.16", "3.6.16"), "3.6.10");
        assert_eq!(next("3.6.16", "3.6.10", "3.6.10", false), "3.6.16");
    }

    #[test]
    fn another_minor_begins_when_it_was_written_down() {
        assert_eq!(now("3.6.16", "3.5.35", "3.5.35"), "3.5.35");
        assert_eq!(next("3.6.16", "3.5.35", "3.5.35", true), "3.6.16");
        assert_eq!(now("3.6.16", "3.5.35", "3.6.16"), "3.6.16");
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
        let mut runs = "3.5.21".to_owned();
        let mut towards = runs.clone();
        let mut seen = Vec::new();
        while runs != "3.7.3" {
            towards = next("3.7.3", &runs, &towards, true);
            assert_eq!(now("3.7.3", &runs, &towards), towards);
            let further = way("3.7.3", &runs, &towards).course() == Course::Further;
            assert_eq!(further, towards != "3.7.3");
            runs.clone_from(&towards);
            seen.push(towards.clone());
        }
        assert_eq!(seen, ["3.5.35", "3.6.16", "3.7.3"]);
    }

    #[test]
    fn a_half_done_upgrade_is_taken_back_or_goes_on_to_a_later_release() {
        assert_eq!(now("3.5.35", "3.5.35", "3.6.16"), "3.5.35");
        assert_eq!(next("3.5.35", "3.5.35", "3.6.16", true), "3.5.35");
        assert_eq!(now("3.7.3", "3.5.35", "3.6.16"), "3.6.16");
    }

    #[test]
    fn another_patch_of_a_step_that_has_begun_turns_nobody_back() {
        assert_eq!(now("3.7.3", "3.6.16", "3.7.2"), "3.7.3");
        assert_eq!(next("3.7.3", "3.6.16", "3.7.2", false), "3.7.3");
    }

    #[test]
    fn a_way_down_begins_when_it_was_written_down() {
        assert_eq!(now("3.5.35", "3.6.16", "3.6.16"), "3.6.16");
        assert_eq!(way("3.5.35", "3.6.16", "3.6.16").course(), Course::Down);
        assert_eq!(next("3.5.35", "3.6.16", "3.6.16", false), "3.6.16");
        assert_eq!(next("3.5.35", "3.6.16", "3.6.16", true), "3.5.35");
        let told = Way { lowered: read("3.5.0"), ..way("3.5.35", "3.6.16", "3.5.35") };
        assert_eq!((told.now().to_string().as_str(), told.course()), ("3.5.35", Course::Reached));
        let not_told = way("3.5.35", "3.6.16", "3.5.35");
        assert_eq!(
            (not_told.now().to_string().as_str(), not_told.course()),
            ("3.6.16", Course::Down)
        );
        // The first member has gone down.
        assert_eq!(now("3.5.35", "3.5.35", "3.5.35"), "3.5.35");
    }

    #[test]
    fn a_way_down_is_taken_back_before_and_after_it_has_begun() {
        assert_eq!(now("3.6.16", "3.6.16", "3.5.35"), "3.6.16");
        assert_eq!(
            now("3.6.16", "3.5.35", "3.5.35"),
            "3.5.35",
            "up again it is a step like any other"
        );
        assert_eq!(next("3.6.16", "3.5.35", "3.5.35", true), "3.6.16");
    }

    #[test]
    fn where_there_is_no_way_it_says_so() {
        assert_eq!(way("3.5.35", "3.7.3", "3.7.3").course(), Course::NoWay);
        assert_eq!(way("3.5.20", "3.6.16", "3.6.16").course(), Course::NoWay);
        assert_eq!(way("3.6.16", "3.6.16", "3.6.16").course(), Course::Reached);
        assert_eq!(way("3.6.16", "", "").course(), Course::Reached);
    }

    #[test]
    fn where_there_is_no_way_nothing_changes() {
        assert_eq!(now("3.5.35", "3.7.3", "3.7.3"), "3.7.3");
        assert_eq!(next("3.5.20", "3.6.16", "3.6.16", true), "3.6.16");
    }
}
