//! A member that goes: first from the lead, then from etcd's list, then its pod, then what is left.
//! Comes in: a formed cluster. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Etcd, Member, Pod, Reading, Registered, Seen};

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    leaving(seen).find_map(|member| next(etcd, member))
}

/// When nobody who goes can go yet. Others speak before this: who has lost its data must not wait for
/// one that cannot go because of it. Nobody waits for the pod of one that has gone: its node may be
/// lost, and it is never deleted by force.
pub(super) fn blocked(seen: &Seen, etcd: &Etcd) -> Said {
    let is_listed = |it: &&Member| etcd.entry(&it.name).is_some();
    leaving(seen).find(is_listed).map(|_| (Step::Wait, Because::LeavingBlocked))
}

fn leaving(seen: &Seen) -> impl Iterator<Item = &Member> {
    seen.members.iter().filter(|it| it.intent.goes())
}

/// The next step of one that goes.
pub(super) fn next(etcd: &Etcd, member: &Member) -> Said {
    match etcd.entry(&member.name) {
        Some(entry) => struck(etcd, entry),
        None => cleared(member).map(|step| (step, Because::Leaving)),
    }
}

fn struck(etcd: &Etcd, entry: &Registered) -> Said {
    if entry.learner {
        return Some((Step::Remove(entry.id), Because::Leaving));
    }
    if !etcd.survives_losing(entry.id) {
        return None;
    }
    let heir = etcd.voters().find(|it| it.id != entry.id && it.is_well())?;
    // Without this the others would have to find out by themselves.
    let step =
        if etcd.leads(entry.id) { Step::MoveLeader(heir.id) } else { Step::Remove(entry.id) };
    Some((step, Because::Leaving))
}

/// etcd does not know it any more, so nothing of it is needed.
fn cleared(member: &Member) -> Option<Step> {
    match member.pod {
        Reading::Known(Pod::None) => Some(Step::Forget(member.name.clone())),
        Reading::Known(Pod::Gated | Pod::Started | Pod::Refuses | Pod::Ended) => {
            Some(Step::DeletePod(member.name.clone()))
        }
        Reading::Known(Pod::Going) | Reading::Unknown => None,
    }
}
