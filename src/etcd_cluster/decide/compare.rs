//! Members have different data, or so it was found. Nothing else happens until they have the same again.
//! Comes in: a formed cluster whose alarm is raised, and which data each member has. Goes out: who is replaced, or that the alarm is
//! over. May touch: nothing; pure. What as many have as must agree is right: etcd acknowledges nothing else. Whoever has other data is
//! retired, one at a time, like one that is lost; and where no data has so many, a person decides.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Said, heal, leave, roll, strangers};
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::upkeep::Alarm;
use crate::etcd_cluster::seen::{Etcd, Intent, Member, Registered, Seen, quorum};

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    if !etcd.corrupt {
        return None;
    }
    let Some(right) = most(etcd) else {
        let because = if can_become_most(seen, etcd) {
            Because::DataDiffers
        } else {
            Because::DataDiffersBlocked
        };
        return Some((Step::Wait, because));
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
    // Or it does not start with what is wanted of it.
    let failing = || roll::taken_back(seen, etcd);
    // One that is well and yet cannot be compared may never be.
    let is_unlike = |it: &Registered| it.copy.is_none() && it.is_well();
    let because = if etcd.voters().any(is_unlike) {
        Because::DataDiffersBlocked
    } else {
        Because::DataDiffers
    };
    Some(lost.or_else(failing).unwrap_or((Step::Wait, because)))
}

/// The data that as many voters have as must agree.
pub(super) fn most(etcd: &Etcd) -> Option<u64> {
    let copies = || etcd.voters().filter_map(|it| it.copy);
    let needed = quorum(etcd.voters().count());
    copies().find(|copy| copies().filter(|it| it == copy).count() >= needed)
}

/// Whether so many may have the same that must agree, once those are back who do not answer now.
fn can_become_most(seen: &Seen, etcd: &Etcd) -> bool {
    let copies = || etcd.voters().filter_map(|it| it.copy);
    let same = |copy: u64| copies().filter(|it| *it == copy).count();
    let comes_back = |it: &&Registered| {
        let is_given_up = seen.member(&it.name).is_none_or(|it| it.given_up);
        it.copy.is_none() && !it.is_well() && !is_given_up
    };
    let away = etcd.voters().filter(comes_back).count();
    let most = copies().map(same).max().unwrap_or(0);
    away > 0 && most.saturating_add(away) >= quorum(etcd.voters().count())
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
    if !seen.staying().any(|it| it.name == wrong.name) {
        return (Step::Wait, Because::DataDiffersBlocked);
    }
    // Without those who are well the others could not agree: they have to come back first.
    let can_go = wrong.learner || etcd.survives_losing(wrong.id);
    let step = if can_go { Step::Retire(wrong.name.clone()) } else { Step::Wait };
    (step, Because::DataDiffers)
}
