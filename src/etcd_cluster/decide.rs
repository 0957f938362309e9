//! What to do next about a cluster. The order of the ladder is the policy, and reads as one: who is
//! paused is left alone; a cluster is formed before anything else; who shall sleep sleeps; nobody acts
//! without a quorum; who goes has gone before another comes; who comes has come before anybody is given
//! up; only a cluster that is well changes its size; and one of the right size changes what its members
//! are, one after the other, how they are called, and whether it asks who somebody is; and last it looks after
//! its files. Where members have different data nothing happens but what ends that; where a file is full, room is made before
//! members are changed.
//! Comes in: `Seen`. Goes out: a `Plan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod compare;
mod form;
mod heal;
mod join;
mod leave;
mod pods;
mod roll;
mod scale;
mod settle;
mod switch;
mod tend;
mod users;

use super::plan::{Because, Plan, Step};
use super::seen::{Auth, Course, Etcd, Reading, Seen, WayBack};

/// What a rule says.
type Said = Option<(Step, Because)>;
/// A rule about a cluster that was formed and answers.
type Rule = fn(&Seen, &Etcd) -> Said;

/// The first that speaks is heard.
const LADDER: [Rule; 19] = [
    compare::rule,
    roll::taken_back,
    leave::rule,
    join::rule,
    strangers,
    heal::rule,
    tend::begun,
    join::waiting,
    leave::blocked,
    scale::rule,
    settle::withdrawn,
    users::withdrawn,
    switch::begun,
    tend::no_space,
    roll::rule,
    switch::rule,
    settle::rule,
    users::rule,
    tend::rule,
];

/// Decides one pass.
#[must_use]
pub fn decide(seen: &Seen) -> Plan {
    let wait = |because| (Step::Wait, because);
    if seen.wanted.paused {
        let (step, because) = wait(Because::Paused);
        return Plan { chores: Vec::new(), step, because };
    }
    let Some(formed) = seen.record.formed else { return form::plan(seen) };
    if seen.wanted.replicas == 0 {
        let (step, because) = wait(Because::Asleep);
        return Plan { chores: pods::put_to_sleep(seen), step, because };
    }
    let (step, because) = match &seen.etcd {
        // If members do not start with what is wanted, this may be the way to a quorum.
        Reading::Unknown => roll::take_back(seen, None)
            .or_else(|| tend::alone(seen))
            .unwrap_or_else(|| wait(Because::QuorumLost)),
        Reading::Known(etcd) if etcd.cluster != formed => wait(Because::ForeignCluster),
        Reading::Known(etcd) => LADDER
            .iter()
            .find_map(|rule| rule(seen, etcd))
            .unwrap_or_else(|| wait(rest(seen, etcd))),
    };
    // Pods come back whatever else is the case: without them nothing gets better.
    Plan { chores: pods::chores(seen), step, because }
}

/// What is the case when no rule speaks.
fn rest(seen: &Seen, etcd: &Etcd) -> Because {
    if !etcd.all_voters_are_well() {
        return Because::MemberUnwell;
    }
    if etcd.auth == Auth::NoPassword {
        return Because::AuthBlocked;
    }
    match seen.wanted.course {
        Course::Reached if seen.wanted.way_back == WayBack::Taken => Because::TakenBack,
        Course::Reached if seen.wanted.clients_move => Because::Switching,
        Course::Reached if etcd.auth == Auth::Unnamed => Because::ChangingAuth,
        Course::Reached => Because::Well,
        Course::Further | Course::Down => Because::Settling,
        Course::NoWay => Because::Unreachable,
    }
}

/// Whoever etcd lists and nobody here knows. If they are well, somebody brought them in, and a person
/// must say what they are for. If not, their EtcdMember was deleted, and their pod and volume with it.
fn strangers(seen: &Seen, etcd: &Etcd) -> Said {
    let is_known = |name| seen.member(name).is_some() || seen.orphans.contains(name);
    let stranger = etcd.list.iter().find(|it| !is_known(&it.name))?;
    Some(match stranger.healthy {
        // It is none of ours, or nobody here made it.
        Reading::Known(true) | Reading::Unknown => (Step::Wait, Because::ForeignMember),
        Reading::Known(false) if stranger.learner || etcd.survives_losing(stranger.id) => {
            (Step::Remove(stranger.id), Because::MemberLost)
        }
        Reading::Known(false) => (Step::Wait, Because::MemberLostBlocked),
    })
}

#[cfg(test)]
pub(crate) mod tests;
