//! As many members as are wanted, one by one, and only while all are well.
//! Comes in: a formed cluster in which nobody comes or goes. Goes out: who comes or goes next.
//! May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::cmp::Ordering;

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Etcd, Intent, Member, Seen};

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    let is_expected = |it: &&Member| it.intent == Intent::Join && etcd.entry(&it.name).is_none();
    match seen.staying().count().cmp(&seen.wanted.replicas) {
        Ordering::Equal => None,
        Ordering::Less if seen.staying().any(|it| is_expected(&it)) => None,
        Ordering::Less => {
            let name = seen.free_names.first()?;
            etcd.all_voters_are_well().then(|| (Step::MakeJoiner(name.clone()), Because::TooFew))
        }
        Ordering::Greater => {
            let goes = expendable(seen, etcd)?;
            Some((Step::Retire(goes.name.clone()), Because::TooMany))
        }
    }
}

/// Who goes: whoever has not come yet, else the youngest that does not lead, else the leader. The last
/// one never does: its data would go with it.
fn expendable<'a>(seen: &'a Seen, etcd: &Etcd) -> Option<&'a Member> {
    let youngest_first = || seen.members.iter().rev().filter(|it| !it.intent.goes());
    if let Some(expected) = youngest_first().find(|it| etcd.entry(&it.name).is_none()) {
        return Some(expected);
    }
    if !etcd.all_voters_are_well() {
        return None;
    }
    let can_go =
        |it: &&Member| etcd.entry(&it.name).is_some_and(|entry| etcd.survives_losing(entry.id));
    let leads = |it: &Member| etcd.entry(&it.name).is_some_and(|entry| etcd.leads(entry.id));
    let followers = youngest_first().filter(can_go).find(|it| !leads(it));
    followers.or_else(|| youngest_first().find(can_go))
}
