//! The messages of conditions and Events: the state with numbers, what is waited for, and what the
//! user can do, with the command. Sentences are joined by ". "; none ends in a full stop.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(super) mod ca_rotation;
pub(super) mod certificate_source;
pub(super) mod defragmentation;
pub(super) mod pods;
pub(super) mod rollout;
pub(super) mod transport;

use std::time::Duration;

pub(crate) use pods::pod_problem;
use pods::{pod_problems, shorten};
use rollout::{no_upgrade_path, rolled_back, rolling_update, update_progress, version_change};

use super::StatusInput;
use crate::etcd_cluster::observe::etcd::MemberProbe;
use crate::etcd_cluster::plan::Reason;
use crate::etcd_cluster::state::{self, MemberName, Reading, quorum};

/// A part of the error with which etcd refuses requests under the alarm CORRUPT.
const CORRUPT_ERROR: &str = "corrupt cluster";
/// The longest message in a status, in characters.
const MAX_MESSAGE: usize = 1000;

/// Truncates a message to what a status holds.
pub(crate) fn truncate(text: &str) -> String {
    if text.chars().count() <= MAX_MESSAGE {
        return text.to_owned();
    }
    text.chars().take(MAX_MESSAGE.saturating_sub(3)).chain("...".chars()).collect()
}

/// The message of the cluster: its state, then pods that cannot run, then the last error.
pub(crate) fn message(input: &StatusInput<'_>) -> String {
    let mut sentences = vec![state_message(input)];
    if !matches!(input.plan.reason, Reason::Healthy | Reason::Hibernated) {
        sentences.extend(pod_problems(input));
    }
    if let Some(error) = &input.error {
        sentences.push(format!("Last attempt failed: {error}; retrying"));
    }
    truncate(&sentences.join(". "))
}

#[expect(clippy::too_many_lines, reason = "one arm per reason, most of them one line")]
fn state_message(input: &StatusInput<'_>) -> String {
    let state = input.state;
    let desired = state.desired.replicas;
    let remaining = state.remaining().count();
    let initial = state.bootstrap.members.len();
    match input.plan.reason {
        Reason::Paused => {
            "Reconciliation is paused (spec.paused is true). Set spec.paused to false to resume".to_owned()
        }
        Reason::CreatingMembers => format!("Creating {desired} initial members"),
        Reason::Bootstrapping => format!(
            "Bootstrapping: {}/{initial} initial members reachable, {} required",
            reachable(input),
            quorum(initial),
        ),
        Reason::BootstrapFailed => {
            "Bootstrap failed before the cluster was formed; recreating the initial members (no data was written)".to_owned()
        }
        Reason::RetainedVolumesExist => retained_volumes(input),
        Reason::PreviousClusterTerminating => previous_cluster(input),
        Reason::Hibernated => {
            "Hibernated: spec.replicas is 0, PVCs are kept. Set spec.replicas to resume".to_owned()
        }
        Reason::QuorumLost => quorum_lost(input),
        Reason::ClusterIdMismatch => cluster_id_mismatch(input),
        Reason::UnknownMember => format!(
            "etcd reports unknown members: {}. Reconciliation stopped. Remove them with `etcdctl member remove <id>`",
            list(&unknown_members(input)),
        ),
        Reason::RemovingMember => {
            format!("Removing member {}: member list, then pod and PVC", list(&leaving(input)))
        }
        Reason::RemovalBlocked => removal_blocked(input, "remove", &leaving(input)),
        Reason::AddingMember => format!(
            "Learner {} is catching up and will be promoted when in sync",
            list(&joining(input))
        ),
        Reason::LearnerFailed => {
            format!("Learner {} failed to start or catch up; replacing it", list(&joining(input)))
        }
        Reason::ReplacingMember => format!(
            "Replacing member {}: data lost or unhealthy for too long. {}",
            list(&unhealthy(input)),
            healthy_voters(input),
        ),
        Reason::ReplacementBlocked => format!(
            "{}. Recover another member first: see `kubectl -n {} describe pod`",
            removal_blocked(input, "replace", &unhealthy(input)),
            input.inputs.blueprint.namespace,
        ),
        Reason::RollingUpdate | Reason::RollingUpdateBlocked => rolling_update(input),
        Reason::PreparingVersionChange => version_change(input),
        Reason::TlsTransition | Reason::ConfiguringAuth | Reason::RootPasswordMissing => {
            transport::message(input)
        }
        Reason::Defragmenting => defragmentation::defragmenting(input),
        Reason::NoSpace => defragmentation::no_space(input),
        Reason::NoSpaceUnresolved => defragmentation::no_space_unresolved(input),
        Reason::CorruptMember => defragmentation::corrupt_member(input),
        Reason::CorruptionUnresolved => defragmentation::corruption_unresolved(input),
        Reason::UpdateFailed => format!(
            "{}. {} fails to start with the new template; rolling back, other members are unchanged",
            update_progress(input),
            list(&failing(input)),
        ),
        Reason::RolledBack => rolled_back(input),
        Reason::NoUpgradePath => no_upgrade_path(input),
        Reason::ScalingUp | Reason::ScalingDown => {
            format!("Scaling from {remaining} to {desired} members, one at a time")
        }
        Reason::MemberUnhealthy => member_unhealthy(input),
        Reason::Healthy => format!("{desired}/{desired} members are healthy"),
    }
}

fn cluster_id_mismatch(input: &StatusInput<'_>) -> String {
    let reported = input.state.etcd.known().map(|etcd| etcd.cluster);
    let id = |id: Option<state::ClusterId>| {
        id.map_or_else(|| "an unknown ID".to_owned(), |id| format!("{:x}", id.0))
    };
    format!(
        "Cluster ID mismatch: members report {}, expected {}. Reconciliation stopped; remove the other etcd cluster that is reachable \
         at the members' addresses",
        id(reported),
        id(input.state.bootstrap.cluster_id),
    )
}

/// Why a member cannot be removed: the health of the other voters.
fn removal_blocked(input: &StatusInput<'_>, verb: &str, names: &[String]) -> String {
    let others = || {
        let voters = input.state.etcd.known().into_iter().flat_map(state::EtcdState::voters);
        voters.filter(|voter| !names.contains(&voter.name.to_string()))
    };
    format!(
        "Cannot {verb} {}: {}/{} other voters are healthy, {} required for quorum",
        list(names),
        others().filter(|voter| voter.is_healthy()).count(),
        others().count(),
        quorum(others().count()),
    )
}

/// The number of healthy voters.
pub(super) fn healthy_voters(input: &StatusInput<'_>) -> String {
    let voters = || input.state.etcd.known().into_iter().flat_map(state::EtcdState::voters);
    let healthy = voters().filter(|voter| voter.is_healthy()).count();
    format!("{healthy}/{} voters are healthy", voters().count())
}

fn member_unhealthy(input: &StatusInput<'_>) -> String {
    let names = unhealthy(input);
    let first = names.first().map(|name| MemberName(name.clone()));
    let probe = first.and_then(|name| input.inputs.probe.members.get(&name));
    let error = probe.and_then(|probe| probe.error.as_deref()).map(shorten);
    let is_reachable = probe.is_some_and(|probe| probe.status.is_some());
    let state = if is_reachable { "unhealthy" } else { "unreachable" };
    let cause = error.map(|error| format!(" ({error})")).unwrap_or_default();
    let after = duration(input.inputs.blueprint.spec.repair.replace_after);
    format!(
        "Member {} is {state}{cause} and is replaced after {after} (spec.repair.replaceAfterSeconds). {}",
        list(&names),
        healthy_voters(input),
    )
}

/// A duration in whole minutes, or in seconds.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 && seconds.rem_euclid(60) == 0 {
        format!("{}m", seconds.div_euclid(60))
    } else {
        format!("{seconds}s")
    }
}

fn previous_cluster(input: &StatusInput<'_>) -> String {
    let names: Vec<String> =
        input.state.previous_cluster_objects.iter().map(ToString::to_string).collect();
    let (cluster, namespace) = (input.inputs.blueprint.name, input.inputs.blueprint.namespace);
    format!(
        "Waiting for {} members of a previous cluster {cluster} to terminate: {}. If that cluster was deleted with deletionPolicy Disconnect, \
         delete them (kubectl -n {namespace} delete etcdmember {}) or rename this cluster",
        names.len(),
        list(&names),
        names.join(" "),
    )
}

fn retained_volumes(input: &StatusInput<'_>) -> String {
    let names: Vec<String> = input.state.retained_volumes.iter().map(ToString::to_string).collect();
    let (cluster, namespace) = (input.inputs.blueprint.name, input.inputs.blueprint.namespace);
    format!(
        "{} PVCs of a previous cluster {cluster} exist and are not reused. To start with empty data, delete them: kubectl -n {namespace} \
         delete pvc {}. To keep the PVCs, rename this cluster",
        names.len(),
        names.join(" "),
    )
}

fn quorum_lost(input: &StatusInput<'_>) -> String {
    let namespace = input.inputs.blueprint.namespace;
    let is_corrupt = |probe: &MemberProbe| {
        let error = probe.error.as_deref();
        probe.status.is_some() && error.is_some_and(|error| error.contains(CORRUPT_ERROR))
    };
    if input.inputs.probe.members.values().any(is_corrupt) {
        return "CORRUPT alarm: members have different data and etcd rejects all requests. Reconciliation stopped. Keep all PVCs, compare \
                the members with `etcdctl endpoint hashkv`, and disarm the alarm with `etcdctl alarm disarm` when the member with the \
                correct data is known"
            .to_owned();
    }
    let voters = input.state.members.iter().filter(|member| !member.intent.is_leaving()).count();
    format!(
        "Quorum lost: {}/{voters} members reachable, {} required. No member is removed or replaced until quorum is restored; members rejoin \
         when their pods run with their PVCs. See `kubectl -n {namespace} describe pod`; if PVCs are lost, restore a backup",
        reachable(input),
        quorum(voters),
    )
}

fn reachable(input: &StatusInput<'_>) -> usize {
    input.inputs.probe.members.values().filter(|probe| probe.status.is_some()).count()
}

fn unknown_members(input: &StatusInput<'_>) -> Vec<String> {
    let Reading::Known(etcd) = &input.state.etcd else { return Vec::new() };
    let unknown = etcd.members.iter().filter(|entry| input.state.member(&entry.name).is_none());
    unknown.map(|entry| entry.name.to_string()).collect()
}

fn leaving(input: &StatusInput<'_>) -> Vec<String> {
    let leaving = input.state.members.iter().filter(|member| member.intent.is_leaving());
    leaving.map(|member| member.name.to_string()).collect()
}

fn joining(input: &StatusInput<'_>) -> Vec<String> {
    let is_voter = |name: &MemberName| {
        let etcd = input.state.etcd.known();
        etcd.and_then(|etcd| etcd.entry(name)).is_some_and(|entry| !entry.is_learner)
    };
    let is_joining =
        |member: &&state::Member| member.intent == state::Intent::Join && !is_voter(&member.name);
    let joining = input.state.members.iter().filter(is_joining);
    joining.map(|member| member.name.to_string()).collect()
}

fn unhealthy(input: &StatusInput<'_>) -> Vec<String> {
    let Reading::Known(etcd) = &input.state.etcd else { return Vec::new() };
    let unhealthy = etcd.voters().filter(|voter| !voter.is_healthy());
    unhealthy.map(|voter| voter.name.to_string()).collect()
}

/// The members that fail to start with the current template.
fn failing(input: &StatusInput<'_>) -> Vec<String> {
    let failing = input.state.remaining().filter(|member| member.failing);
    failing.map(|member| member.name.to_string()).collect()
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "(unknown)".to_owned() } else { names.join(", ") }
}
