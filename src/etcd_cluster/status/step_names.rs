//! The name of the next step of a plan in `status.plan.step`, Events and logs: an imperative with
//! the name of the member.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::etcd_cluster::plan::{Plan, PodTemplate, Step, Task};
use crate::etcd_cluster::state::{MemberId, ObservedState};

/// The name of the next step, or the string `None`.
pub(crate) fn step_name(plan: &Plan, state: &ObservedState) -> String {
    let name = |id: &MemberId| {
        let mut entries = state.etcd.known().into_iter().flat_map(|etcd| &etcd.members);
        let entry = entries.find(|entry| entry.id == *id);
        entry.map_or_else(|| format!("{:x}", id.0), |entry| entry.name.to_string())
    };
    match &plan.step {
        Step::Wait => plan.tasks.first().map_or_else(|| "None".to_owned(), task_name),
        Step::CreateMember(name) => format!("Create member {name}"),
        Step::AddLearner(name) => format!("Add learner {name}"),
        Step::PromoteLearner(id) => format!("Promote learner {}", name(id)),
        Step::MarkForRemoval(name) => format!("Mark member {name} for removal"),
        Step::MoveLeader(id) => format!("Move leader to {}", name(id)),
        Step::RemoveMember(id) => format!("Remove member {} from etcd", name(id)),
        Step::RollBack(name) => format!("Roll back the update that {name} fails to start with"),
        Step::EnableDowngrade => "Enable the etcd downgrade".to_owned(),
        Step::CancelDowngrade => "Cancel the etcd downgrade".to_owned(),
        Step::AdvanceRaftLog => "Advance the raft log to force snapshots".to_owned(),
        Step::UpdatePeerUrl(name, scheme) => {
            format!("Update peer URL of {name} to {}", scheme.as_str())
        }
        Step::EnsureUsers => "Ensure etcd users root, operator and applications".to_owned(),
        Step::EnableAuth => "Enable authentication".to_owned(),
        Step::DisableAuth => "Disable authentication".to_owned(),
        Step::Compact(revision) => format!("Compact to revision {}", revision.0),
        Step::Defragment(name) => format!("Defragment {name}"),
        Step::FinishDefragmentation => "Finish defragmentation".to_owned(),
        Step::DisarmAlarm(alarm) => format!("Disarm alarm {}", alarm.name()),
        Step::RecreatePod(name) => format!("Recreate pod {name}"),
        Step::DeletePod(name) => format!("Delete pod {name}"),
        Step::DeleteMember(name) => format!("Delete member {name}"),
    }
}

fn task_name(task: &Task) -> String {
    match task {
        Task::RecordBootstrapMembers(_) => "Record the initial members".to_owned(),
        Task::AbortBootstrap => "Abort the bootstrap".to_owned(),
        Task::RecordBootstrapStarted => "Record that the bootstrap started".to_owned(),
        Task::RecordClusterId(_) => "Record the cluster ID".to_owned(),
        Task::DeleteBootstrapMember(name) => format!("Delete initial member {name}"),
        Task::CreateBootstrapMember(name) => format!("Create initial member {name}"),
        Task::AdoptVolume(name) => format!("Recreate member {name} for its PVC"),
        Task::CreatePod { member, start_mode: _, template: PodTemplate::Desired } => {
            format!("Create pod {member}")
        }
        Task::CreatePod { member, start_mode: _, template: PodTemplate::Previous } => {
            format!("Create pod {member} from the previous template")
        }
        Task::MarkStarted(name) => format!("Record that {name} may start"),
        Task::RemoveSchedulingGate(name) => format!("Remove scheduling gate from pod {name}"),
        Task::DeleteInactivePod(name) => format!("Delete inactive pod {name}"),
        Task::Hibernate(name) => format!("Hibernate {name}"),
    }
}
