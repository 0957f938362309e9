//! Members that run as they were made once are made anew, one at a time: who does not answer first, the leader last.
//! Comes in: a formed cluster in which nobody comes or goes. Goes out: whose pod is next. May touch: nothing; pure.
//! Before anybody is disturbed, so many others have proven to be well, with a read that needs a quorum, that they can
//! do without. So whoever does not come back is the only one that was touched.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Said, pods};
use crate::etcd_cluster::plan::{Because, MadeOf, Step};
use crate::etcd_cluster::seen::{
    Etcd, Made, Member, Pod, Reading, Registered, Seen, WayBack, quorum,
};

/// With fewer voters than these, data that is in memory would be in one place only.
const COPIES: usize = 3;

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    let voters = || seen.staying().filter_map(|it| Some((it, voter(etcd, it)?)));
    let behind = || voters().filter(|(it, _)| it.is_outdated());
    let outdated = || behind().map(|(_, entry)| entry);
    let first = outdated().next()?;
    let wait = || Some((Step::Wait, Because::Rolling));
    // Whose pod is on its way out may still answer, and is not to be counted on.
    if voters().any(|(it, _)| it.pod != Reading::Known(Pod::Started)) {
        return wait();
    }
    if etcd.alarmed {
        return Some((Step::Wait, Because::RollingBlocked));
    }
    // Who is down may be down because of what was taken back since. While another tries out what is wanted, it would come
    // back as it is.
    let is_down = |it: &Registered| it.healthy == Reading::Known(false);
    let can_change = |it: &Member| pods::made_of(seen, it) == MadeOf::Wanted;
    let mut down = behind().filter(|(it, entry)| is_down(entry) && can_change(it));
    if let Some((_, down)) = down.find(|(_, entry)| can_spare(seen, etcd, entry)) {
        return Some(renew(seen, etcd, down));
    }
    if voters().any(|(it, _)| it.given_up) {
        return Some((Step::Wait, Because::RollingBlocked));
    }
    let is_tried = !behind().all(|(it, _)| can_change(it));
    if is_tried || !etcd.all_voters_are_well() || !can_spare(seen, etcd, first) {
        return wait();
    }
    if let Some(follower) = outdated().find(|it| !etcd.leads(it.id)) {
        return Some(renew(seen, etcd, follower));
    }
    // All others are as they should be, and one of them leads from now on.
    match etcd.voters().find(|it| it.id != first.id) {
        Some(heir) => Some((Step::MoveLeader(heir.id), Because::Rolling)),
        None => Some(renew(seen, etcd, first)),
    }
}

/// A change that the first one to try it does not start with is taken back.
pub(super) fn taken_back(seen: &Seen, etcd: &Etcd) -> Said {
    take_back(seen, Some(etcd))
}

/// The same, also where no quorum answers.
pub(super) fn take_back(seen: &Seen, etcd: Option<&Etcd>) -> Said {
    let mut failing = seen.staying().filter(|it| it.fails && is_its_fault(seen, etcd, it));
    let failing = failing.next().filter(|_| seen.wanted.way_back == WayBack::Known)?;
    Some((Step::TakeBack(failing.name.clone()), Because::ChangeFails))
}

/// Another pod for a member; or another member, if its data would end with its pod.
fn renew(seen: &Seen, etcd: &Etcd, entry: &Registered) -> (Step, Because) {
    if seen.wanted.durable {
        return (Step::Restart(entry.name.clone()), Because::Rolling);
    }
    if etcd.voters().count() >= COPIES && etcd.survives_losing(entry.id) {
        return (Step::Retire(entry.name.clone()), Because::Rolling);
    }
    (Step::Wait, Because::RollingBlocked)
}

/// Whether the others agree without this one. Of one or two nobody can be spared; but that is what was asked for.
fn can_spare(seen: &Seen, etcd: &Etcd, entry: &Registered) -> bool {
    let (all, others) = (etcd.voters().count(), etcd.voters().filter(|it| it.id != entry.id));
    let well = others.filter(|it| it.is_well()).count();
    let is_small = all < COPIES && seen.wanted.replicas < COPIES;
    well >= quorum(all) || is_small && well.saturating_add(1) == all
}

/// Whether a member fails because of what is being rolled out: replacing it would bring the same failure back, and would
/// cost a member for each try. If another one runs well that was made so, it fails for reasons of its own.
pub(super) fn is_its_fault(seen: &Seen, etcd: Option<&Etcd>, member: &Member) -> bool {
    // Its pod does not start, or is refused.
    let is_tried = match member.pod {
        Reading::Known(Pod::Started) => true,
        Reading::Known(Pod::None) => member.fails && pods::made_of(seen, member) == MadeOf::Wanted,
        Reading::Known(Pod::Gated | Pod::Refuses | Pod::Going | Pod::Ended) | Reading::Unknown => {
            false
        }
    };
    member.made == Made::AsWanted
        && is_tried
        && seen.staying().any(Member::is_outdated)
        && !seen.staying().any(|it| it.name != member.name && shows_that_it_works(etcd, it))
}

/// Whether a member is as it is wanted, and well.
pub(super) fn shows_that_it_works(etcd: Option<&Etcd>, member: &Member) -> bool {
    let entry = etcd.and_then(|etcd| voter(etcd, member));
    member.made == Made::AsWanted && entry.is_some_and(Registered::is_well)
}

fn voter<'a>(etcd: &'a Etcd, member: &Member) -> Option<&'a Registered> {
    etcd.entry(&member.name).filter(|it| !it.learner)
}
