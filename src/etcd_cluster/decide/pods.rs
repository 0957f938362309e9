//! Pods that are missing, pods that wait, and volumes that nobody looks after.
//! Comes in: the members. Goes out: chores. May touch: nothing; pure.
//! Only the first pod of a member may found or join, and it waits until it was written down that there
//! is one. Every other comes back to data that is there; the agent in it refuses if there is none.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::told::Told;
use crate::etcd_cluster::plan::Chore;
use crate::etcd_cluster::seen::{Etcd, Intent, Member, Name, Pod, Reading, Seen, Volume};

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

/// Whether etcd lists somebody, or may.
fn is_needed(seen: &Seen, name: &Name) -> bool {
    seen.etcd.known().is_none_or(|etcd| etcd.entry(name).is_some())
}

fn chore(seen: &Seen, member: &Member) -> Option<Chore> {
    let name = || member.name.clone();
    match member.pod {
        Reading::Known(Pod::None) => {
            Some(Chore::MakePod { member: name(), told: told(seen, member)? })
        }
        Reading::Known(Pod::Gated) if member.intent == Intent::Leave => None,
        Reading::Known(Pod::Gated) if member.had_pod => Some(Chore::LetGo(name())),
        Reading::Known(Pod::Gated) => Some(Chore::RecordPod(name())),
        Reading::Known(Pod::Ended) => Some(Chore::ClearPod(name())),
        // It waits for what the old spec asks for. Whoever comes to found or to join has rules of their own.
        Reading::Known(Pod::Started) if member.is_stale() && is_voter(seen, member) => {
            Some(Chore::ClearPod(name()))
        }
        Reading::Known(Pod::Started | Pod::Refuses | Pod::Going) | Reading::Unknown => None,
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
    if member.intent == Intent::Leave && !is_needed(seen, &member.name) {
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
        (Intent::Join, None) | (Intent::Leave, _) => None,
    }
}
