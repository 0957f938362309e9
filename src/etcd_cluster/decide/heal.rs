//! A voter that will not come back by itself is retired, if the others can do without it.
//! Comes in: a formed cluster. Goes out: whom to retire. May touch: nothing; pure.
//! It goes before its successor comes: a successor that came first would raise the number that must
//! agree while one of them is dead.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Said, pods, roll};
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Etcd, Intent, Member, Pod, Reading, Seen};

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    let mut blocked = false;
    for member in seen.staying() {
        match verdict(seen, etcd, member) {
            Verdict::Retire => {
                return Some((Step::Retire(member.name.clone()), Because::MemberLost));
            }
            Verdict::Blocked => blocked = true,
            Verdict::Keep => {}
        }
    }
    blocked.then_some((Step::Wait, Because::MemberLostBlocked))
}

enum Verdict {
    Keep,
    Retire,
    Blocked,
}

fn verdict(seen: &Seen, etcd: &Etcd, member: &Member) -> Verdict {
    let Some(entry) = etcd.entry(&member.name) else {
        // A founder that somebody struck from the list. Joiners have a rule of their own.
        return if member.intent == Intent::Bootstrap { Verdict::Retire } else { Verdict::Keep };
    };
    // Who answers is not lost, whatever its objects look like.
    // Whose pod was made from what was taken back gets another one first.
    let gets_another = pods::is_unfit(seen, member) && member.pod == Reading::Known(Pod::Started);
    let is_to_blame = !roll::is_its_fault(seen, Some(etcd), member);
    let is_given_up = member.given_up && !gets_another && is_to_blame;
    let is_lost = is_given_up || member.has_lost_its_data(&seen.wanted);
    if entry.learner || !is_lost || entry.healthy != Reading::Known(false) {
        return Verdict::Keep;
    }
    if etcd.survives_losing(entry.id) { Verdict::Retire } else { Verdict::Blocked }
}
