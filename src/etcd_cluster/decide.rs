//! What to do next about a cluster. The order of the ladder is the policy, and reads as one: who is
//! paused is left alone; a cluster is formed before anything else; who shall sleep sleeps; nobody acts
//! without a quorum; who goes has gone before another comes; who comes has come before anybody is given
//! up; only a cluster that is well changes its size; and one of the right size changes what its members
//! are, one after the other, how they are called, and whether it asks who somebody is; and last it looks after
//! its files. Where members have different data nothing happens but what ends that; where a file is full, room is made before
//! members are changed.
//! Comes in: `Seen`. Goes out: a `Plan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod auth;
mod bootstrap;
mod corruption;
mod defragment;
mod heal;
mod join;
mod peer_tls;
mod pods;
mod removal;
mod rollout;
mod scale;
mod version_change;

use super::plan::{Plan, Reason, Step};
use super::state::{AuthState, EtcdState, ObservedState, Reading, Rollback, VersionProgress};

/// What a rule says.
type Decision = Option<(Step, Reason)>;
/// A rule about a cluster that was formed and answers.
type Rule = fn(&ObservedState, &EtcdState) -> Decision;

/// The first that speaks is heard.
const POLICY: [Rule; 19] = [
    corruption::rule,
    rollout::rollback,
    removal::rule,
    join::rule,
    unknown_members,
    heal::rule,
    defragment::in_progress,
    join::waiting,
    removal::blocked,
    scale::rule,
    version_change::revert,
    auth::revert,
    peer_tls::in_progress,
    defragment::reclaim_space,
    rollout::rule,
    peer_tls::rule,
    version_change::rule,
    auth::rule,
    defragment::rule,
];

/// Decides one pass.
#[must_use]
pub fn decide(state: &ObservedState) -> Plan {
    let wait = |reason| (Step::Wait, reason);
    if state.desired.paused {
        let (step, reason) = wait(Reason::Paused);
        return Plan { tasks: Vec::new(), step, reason };
    }
    let Some(formed) = state.bootstrap.cluster_id else { return bootstrap::plan(state) };
    if state.desired.replicas == 0 {
        let (step, reason) = wait(Reason::Hibernated);
        return Plan { tasks: pods::hibernate(state), step, reason };
    }
    let (step, reason) = match &state.etcd {
        // If members do not start with what is wanted, this may be the way to a quorum.
        Reading::Unknown => rollout::roll_back(state, None)
            .or_else(|| defragment::unavailable_alone(state))
            .unwrap_or_else(|| wait(Reason::QuorumLost)),
        Reading::Known(etcd) if etcd.cluster != formed => wait(Reason::ClusterIdMismatch),
        Reading::Known(etcd) => POLICY
            .iter()
            .find_map(|rule| rule(state, etcd))
            .unwrap_or_else(|| wait(idle_reason(state, etcd))),
    };
    // Pods come back whatever else is the case: without them nothing gets better.
    Plan { tasks: pods::tasks(state), step, reason }
}

/// What is the case when no rule speaks.
fn idle_reason(state: &ObservedState, etcd: &EtcdState) -> Reason {
    if !etcd.all_voters_healthy() {
        return Reason::MemberUnhealthy;
    }
    if etcd.auth == AuthState::RootPasswordMissing {
        return Reason::RootPasswordMissing;
    }
    match state.desired.version {
        VersionProgress::AtTarget if state.desired.rollback == Rollback::Active => {
            Reason::RolledBack
        }
        VersionProgress::AtTarget if state.desired.client_tls_transition => Reason::TlsTransition,
        VersionProgress::AtTarget if etcd.auth == AuthState::OperatorNotRecognized => {
            Reason::ConfiguringAuth
        }
        VersionProgress::AtTarget => Reason::Healthy,
        VersionProgress::MoreSteps | VersionProgress::Downgrading => Reason::PreparingVersionChange,
        VersionProgress::NoPath => Reason::NoUpgradePath,
    }
}

/// Whoever etcd lists and nobody here knows. If they are well, somebody brought them in, and a person
/// must say what they are for. If not, their EtcdMember was deleted, and their pod and volume with it.
fn unknown_members(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_known = |name| state.member(name).is_some() || state.orphaned_volumes.contains(name);
    let unknown = etcd.members.iter().find(|it| !is_known(&it.name))?;
    Some(match unknown.healthy {
        // It is none of ours, or nobody here made it.
        Reading::Known(true) | Reading::Unknown => (Step::Wait, Reason::UnknownMember),
        Reading::Known(false) if unknown.is_learner || etcd.survives_losing(unknown.id) => {
            (Step::RemoveMember(unknown.id), Reason::ReplacingMember)
        }
        Reading::Known(false) => (Step::Wait, Reason::ReplacementBlocked),
    })
}

#[cfg(test)]
pub(crate) mod tests;
