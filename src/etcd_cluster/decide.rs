//! Decides the next step of a cluster, as a pure function of the observed state. The order of
//! `POLICY` is the policy:
//!
//! - a paused cluster is not touched; bootstrap comes before anything else; a cluster with 0
//!   replicas is hibernated; without quorum nothing but a rollback is decided;
//! - while data is corrupt, nothing is done but replacing corrupt members;
//! - a removal is finished before a member is added, and an addition before a member is replaced;
//! - a cluster is scaled only while all voters are healthy, and only at its desired size are
//!   members updated one at a time, peer URLs switched, and authentication configured;
//! - space is reclaimed before members are updated if a quota is exceeded; otherwise
//!   defragmentation comes last.
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

/// What a rule decides, if it applies.
type Decision = Option<(Step, Reason)>;
/// A rule about a cluster that is bootstrapped and has quorum.
type Rule = fn(&ObservedState, &EtcdState) -> Decision;

/// The first rule that applies decides.
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

/// Decides the tasks and the step of one reconciliation.
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
        // If members do not start with the desired template, a rollback may restore quorum.
        Reading::Unknown => rollout::roll_back(state, None)
            .or_else(|| defragment::unavailable_alone(state))
            .unwrap_or_else(|| wait(Reason::QuorumLost)),
        Reading::Known(etcd) if etcd.cluster != formed => wait(Reason::ClusterIdMismatch),
        Reading::Known(etcd) => POLICY
            .iter()
            .find_map(|rule| rule(state, etcd))
            .unwrap_or_else(|| wait(idle_reason(state, etcd))),
    };
    // Pods are recreated whatever the step is: without them nothing recovers.
    Plan { tasks: pods::tasks(state), step, reason }
}

/// The reason if no rule applies.
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

/// Members that etcd lists and that have no object. A healthy one was added by another party, and
/// the user must decide. An unhealthy one lost its EtcdMember, its pod and its volume by deletion.
fn unknown_members(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_known = |name| state.member(name).is_some() || state.orphaned_volumes.contains(name);
    let unknown = etcd.members.iter().find(|entry| !is_known(&entry.name))?;
    Some(match unknown.healthy {
        // Not managed by this operator.
        Reading::Known(true) | Reading::Unknown => (Step::Wait, Reason::UnknownMember),
        Reading::Known(false) if unknown.is_learner || etcd.survives_losing(unknown.id) => {
            (Step::RemoveMember(unknown.id), Reason::ReplacingMember)
        }
        Reading::Known(false) => (Step::Wait, Reason::ReplacementBlocked),
    })
}

#[cfg(test)]
pub(crate) mod tests;
