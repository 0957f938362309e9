//! Pods that are missing, pods that wait, and volumes that nobody looks after.
//! Comes in: the members. Goes out: chores. May touch: nothing; pure.
//! Only the first pod of a member may found or join, and it waits until it was written down that there
//! is one. Every other comes back to data that is there; the agent in it refuses if there is none.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::roll::shows_that_it_works;
use crate::api::told::Told;
use crate::etcd_cluster::plan::{Chore, MadeOf};
use crate::etcd_cluster::seen::{
    Etcd, Intent, Made, Member, Name, Pod, Reading, Seen, Volume, WayBack,
};

pub(super) fn chores(seen: &Seen) -> Vec<Chore> {
    let adopted = seen.orphans.iter().filter(|name| is_needed(seen, name)).cloned();
    let pods = seen.members.iter().filter_map(|member| chore(seen, member));
    adopted.map(Chore::Adopt).chain(pods).collect()
}

/// Ends every pod. The volumes stay, and the members come back to them.
pub(super) fn put_to_sleep(seen: &Seen) -> Vec<Chore> {
    let runs = |it: &&Member| match it.pod {
        Reading::Known(Pod::Gated | Pod::Started | Pod::Refuses | Pod::Ended) => true,
        Reading::Known(Pod::None | Pod::Going) | Reading::Unknown => false,
    };
    seen.members.iter().filter(runs).map(|it| Chore::Sleep(it.name.clone())).collect()
}

/// Whether etcd lists somebody, or may. When nobody can be asked, who was seen to have left still has.
fn is_needed(seen: &Seen, name: &Name) -> bool {
    let has_left = || seen.member(name).is_some_and(|it| it.intent == Intent::Left);
    seen.etcd.known().map_or_else(|| !has_left(), |etcd| etcd.entry(name).is_some())
}

fn chore(seen: &Seen, member: &Member) -> Option<Chore> {
    let name = || member.name.clone();
    match member.pod {
        Reading::Known(Pod::None) => {
            let told = told(seen, member)?;
            Some(Chore::MakePod { member: name(), told, of: made_of(seen, member) })
        }
        Reading::Known(Pod::Gated) if member.intent.goes() => None,
        Reading::Known(Pod::Gated) if member.had_pod => Some(Chore::LetGo(name())),
        Reading::Known(Pod::Gated) => Some(Chore::RecordPod(name())),
        Reading::Known(Pod::Ended) => Some(Chore::ClearPod(name())),
        // It waits for what the old spec asks for. Whoever comes to found or to join has rules of their own.
        Reading::Known(Pod::Started) if is_unfit(seen, member) && is_voter(seen, member) => {
            Some(Chore::ClearPod(name()))
        }
        Reading::Known(Pod::Started | Pod::Refuses | Pod::Going) | Reading::Unknown => None,
    }
}

/// What a pod of this member is made of, if it is made now. While nobody has shown that a change works, one member tries it out;
/// all others come back as those are made that run, so that a bad change never has more than one.
pub(super) fn made_of(seen: &Seen, member: &Member) -> MadeOf {
    // Of those that etcd does not list a pod may be left on a lost node, for ever.
    let counts = |it: &&Member| it.name != member.name && is_needed(seen, &it.name);
    let others = || seen.members.iter().filter(counts);
    let is_shown = || others().any(|it| shows_that_it_works(seen.etcd.known(), it));
    let is_known = seen.wanted.way_back == WayBack::Known;
    if is_known && others().any(|it| tries_before(seen, it, member)) && !is_shown() {
        MadeOf::Before
    } else {
        MadeOf::Wanted
    }
}

/// Whether one tries out what is wanted, or does so before another. Of those who lack a pod it is the first; but one whose pod is
/// being cleared away still has a change that did not start, and tries the next one as soon as it is gone.
fn tries_before(seen: &Seen, one: &Member, other: &Member) -> bool {
    let lacks_pod = |it: &Member| it.pod == Reading::Known(Pod::None);
    let first = seen.members.iter().find(|it| lacks_pod(it) && is_needed(seen, &it.name));
    let is_next = first.is_some_and(|it| it.name == one.name);
    let has_started = one.pod == Reading::Known(Pod::Started);
    let is_cleared = || has_started && one.made == Made::Stale && is_voter(seen, one);
    if lacks_pod(one) {
        is_next || !lacks_pod(other)
    } else {
        one.made == Made::AsWanted || is_cleared()
    }
}

/// Whether nothing runs in a member's pod, and another would be made otherwise.
pub(super) fn is_unfit(seen: &Seen, member: &Member) -> bool {
    match member.made {
        Made::Stale => true,
        // It has not come back as it was, either.
        Made::AsBefore => member.fails && made_of(seen, member) == MadeOf::Wanted,
        Made::AsWanted | Made::Outdated => false,
    }
}

fn is_voter(seen: &Seen, member: &Member) -> bool {
    let listed = |etcd: &Etcd| etcd.entry(&member.name).is_some_and(|it| !it.learner);
    let is_founding = seen.record.formed.is_none() && !seen.record.founders.is_empty();
    !is_founding && seen.etcd.known().is_none_or(listed)
}

/// What a new pod of this member is told; nothing if there must be none now.
fn told(seen: &Seen, member: &Member) -> Option<Told> {
    // Who goes is needed until etcd has struck it from its list.
    if member.intent.goes() && !is_needed(seen, &member.name) {
        return None;
    }
    if member.had_pod {
        let has_data = member.volume == Reading::Known(Volume::There) && seen.wanted.durable;
        return has_data.then_some(Told::Return);
    }
    if member.volume.known() == Some(&Volume::Going) {
        return None;
    }
    match (member.intent, seen.record.formed) {
        (Intent::Bootstrap, None) => Some(Told::Found),
        // The others formed the cluster without it. It has never run, so it has nothing to forget.
        (Intent::Bootstrap | Intent::Join, Some(_)) => {
            let etcd = seen.etcd.known()?;
            etcd.entry(&member.name).map(|_| Told::Join)
        }
        (Intent::Join, None) | (Intent::Leave | Intent::Left, _) => None,
    }
}
