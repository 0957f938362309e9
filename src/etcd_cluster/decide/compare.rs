//! Members have different data, or so it was found. Nothing else happens until they have the same again.
//! Comes in: a formed cluster whose alarm is raised, and which data each member has. Goes out: who is replaced, or that the alarm is
//! over. May touch: nothing; pure. What as many have as must agree is right: etcd acknowledges nothing else. Whoever has other data is
//! retired, one at a time, like one that is lost; and where no data has so many, a person decides.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Said, heal, leave, strangers};
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::upkeep::Alarm;
use crate::etcd_cluster::seen::{Etcd, Intent, Member, Registered, Seen, quorum};

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    if !etcd.corrupt {
        return None;
    }
    let Some(right) = most(etcd) else {
        return Some((Step::Wait, Because::DataDiffersBlocked));
    };
    if let Some(said) = leaving(seen, etcd, right) {
        return Some(said);
    }
    let differs = |it: &&Registered| it.copy.is_some_and(|it| it != right);
    if let Some(wrong) = etcd.list.iter().find(differs) {
        return Some(retired(seen, etcd, wrong));
    }
    if etcd.voters().all(|it| it.copy == Some(right)) {
        return Some((Step::Disarm(Alarm::Corrupt), Because::DataDiffers));
    }
    // Somebody could not be asked. If it is lost, the others have the same, and it is replaced as at any other time.
    let does_something = |(step, _): &(Step, Because)| *step != Step::Wait;
    let lost = heal::rule(seen, etcd).or_else(|| strangers(seen, etcd)).filter(does_something);
    Some(lost.unwrap_or((Step::Wait, Because::DataDiffers)))
}

/// The data that as many voters have as must agree.
pub(super) fn most(etcd: &Etcd) -> Option<u64> {
    let copies = || etcd.voters().filter_map(|it| it.copy);
    let needed = quorum(etcd.voters().count());
    copies().find(|copy| copies().filter(|it| it == copy).count() >= needed)
}

/// Whoever goes and has other data goes on its way. One that has the right data is needed to tell what is right.
fn leaving(seen: &Seen, etcd: &Etcd, right: u64) -> Said {
    let is_spared =
        |it: &&Member| etcd.entry(&it.name).is_none_or(|entry| entry.copy != Some(right));
    let goes = seen.members.iter().filter(|it| it.intent == Intent::Leave).filter(is_spared);
    let mut said = goes.filter_map(|it| leave::next(etcd, it));
    said.next().map(|(step, _)| (step, Because::DataDiffers))
}

fn retired(seen: &Seen, etcd: &Etcd, wrong: &Registered) -> (Step, Because) {
    let is_ours = seen.staying().any(|it| it.name == wrong.name);
    if is_ours && (wrong.learner || etcd.survives_losing(wrong.id)) {
        return (Step::Retire(wrong.name.clone()), Because::DataDiffers);
    }
    (Step::Wait, Because::DataDiffersBlocked)
}
