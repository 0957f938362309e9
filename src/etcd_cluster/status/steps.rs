//! The next step of a plan, in words.
//! Comes in: a plan. Goes out: a phrase. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::doors::how;
use crate::etcd_cluster::plan::{Chore, MadeOf, Plan, Step};
use crate::etcd_cluster::seen::{MemberId, Seen};

/// What comes next.
pub(crate) fn words(plan: &Plan, seen: &Seen) -> String {
    let name = |id: &MemberId| {
        let entry = seen.etcd.known().and_then(|etcd| etcd.list.iter().find(|it| it.id == *id));
        entry.map_or_else(|| format!("{:x}", id.0), |it| it.name.to_string())
    };
    match &plan.step {
        Step::Wait => plan.chores.first().map_or_else(|| "none".to_owned(), chore),
        Step::MakeJoiner(name) => format!("make the member {name}"),
        Step::AddLearner(name) => format!("let etcd know of {name}, as a learner"),
        Step::Promote(id) => format!("let {} vote", name(id)),
        Step::Retire(name) => format!("retire {name}"),
        Step::MoveLeader(id) => format!("let {} lead", name(id)),
        Step::Remove(id) => format!("remove {} from etcd's members", name(id)),
        Step::TakeBack(name) => format!("take the change back that {name} does not start with"),
        Step::AllowDowngrade => "let etcd bring its data down a minor version".to_owned(),
        Step::ForbidDowngrade => "let etcd stay at its minor version".to_owned(),
        Step::FillLog => "write entries that change nothing to etcd's log".to_owned(),
        Step::Readdress(name, scheme) => {
            format!("let the other members call {name} {}", how(*scheme))
        }
        Step::MakeUsers => "make root, the operator and the applications known to etcd".to_owned(),
        Step::EnableAuth => "let etcd ask for users".to_owned(),
        Step::DisableAuth => "let etcd ask for no users any more".to_owned(),
        Step::Compact(revision) => format!("give history up to revision {}", revision.0),
        Step::Defragment(name) => format!("let {name} rewrite its file"),
        Step::EndUpkeep => "write down that every file had its turn".to_owned(),
        Step::Disarm(alarm) => format!("end the alarm {}", alarm.word()),
        Step::Restart(name) => format!("make the pod of {name} anew"),
        Step::DeletePod(name) => format!("delete the pod of {name}"),
        Step::Forget(name) => format!("clear away what is left of {name}"),
    }
}

fn chore(chore: &Chore) -> String {
    match chore {
        Chore::RecordFounders(_) => "write down who founds the cluster".to_owned(),
        Chore::RecordAbandoned => "give the founders up".to_owned(),
        Chore::RecordBegun => "write down that founders may run".to_owned(),
        Chore::RecordFormed(_) => "write down which cluster was founded".to_owned(),
        Chore::Scrap(name) => format!("clear away the founder {name}"),
        Chore::MakeFounder(name) => format!("make the founder {name}"),
        Chore::Adopt(name) => format!("make the member {name} anew for its volume"),
        Chore::MakePod { member, told: _, of: MadeOf::Wanted } => {
            format!("make the pod of {member}")
        }
        Chore::MakePod { member, told: _, of: MadeOf::Before } => {
            format!("make the pod of {member} as those are that run")
        }
        Chore::RecordPod(name) => format!("write down that {name} may run"),
        Chore::LetGo(name) => format!("let the pod of {name} go"),
        Chore::ClearPod(name) => format!("clear away the pod of {name}, in which nothing runs"),
        Chore::Sleep(name) => format!("put {name} to sleep"),
    }
}
