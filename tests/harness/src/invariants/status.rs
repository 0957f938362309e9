//! Where the reported status of an EtcdCluster differs from the state of its members. No clock and
//! no client.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::etcd::{MemberList, MemberProbe};

/// How long the status may lag behind.
const STATUS_GRACE: Duration = Duration::from_secs(15);
/// A quorum that is unavailable for twenty seconds may return, and is not reported as lost yet.
const QUORUM_LOST_GRACE: Duration = Duration::from_secs(40);

/// A message for each mismatch, with how long the mismatch may last.
pub(super) type Mismatches = BTreeMap<String, Duration>;

/// What the object reports.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportedStatus {
    /// `spec.replicas`.
    desired: i64,
    /// Whether the object is being deleted: then the status is not updated any more.
    terminating: bool,
    pub(super) cluster_id: Option<u64>,
    leader: Option<String>,
    ready: Option<i64>,
    members: BTreeMap<String, ReportedMember>,
    conditions: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
struct ReportedMember {
    id: Option<u64>,
    role: Option<String>,
    version: Option<String>,
    healthy: Option<bool>,
}

/// The state of each member.
#[derive(Clone, Debug, Default)]
pub(super) struct ActualState {
    pub(super) probes: BTreeMap<String, Option<MemberProbe>>,
}

impl ReportedStatus {
    pub(super) fn read(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let id = |value: &Value| u64::from_str_radix(value.as_str()?, 16).ok();
        let at = |path: &str| object.pointer(path).cloned().unwrap_or_default();
        let list = |path: &str| at(path).as_array().cloned().unwrap_or_default();
        let field = |of: &Value, name: &str| of.get(name).cloned().unwrap_or_default();
        let member = |of: &Value| {
            let reported = ReportedMember {
                id: id(&field(of, "id")),
                role: text(&field(of, "role")),
                version: text(&field(of, "version")),
                healthy: field(of, "healthy").as_bool(),
            };
            (text(&field(of, "name")).unwrap_or_default(), reported)
        };
        let condition = |of: &Value| Some((text(&field(of, "type"))?, text(&field(of, "status"))?));
        Self {
            desired: at("/spec/replicas").as_i64().unwrap_or(3),
            terminating: object.pointer("/metadata/deletionTimestamp").is_some(),
            cluster_id: id(&at("/status/clusterID")),
            leader: text(&at("/status/leader")),
            ready: at("/status/readyReplicas").as_i64(),
            members: list("/status/members").iter().map(member).collect(),
            conditions: list("/status/conditions").iter().filter_map(condition).collect(),
        }
    }

    fn condition(&self, kind: &str) -> Option<bool> {
        match self.conditions.get(kind)?.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }
}

impl ActualState {
    /// The member list of a member whose linearizable read succeeded.
    fn list(&self) -> Option<&MemberList> {
        self.probes.values().flatten().find_map(|probe| probe.list.as_ref())
    }

    fn reads_linearizably(&self, member: &str) -> bool {
        let probe = self.probes.get(member).and_then(Option::as_ref);
        probe.is_some_and(|probe| probe.linearizable_read_ok)
    }

    fn leader(&self) -> Option<&str> {
        let leads = |(_, probe): &(&String, &Option<MemberProbe>)| {
            probe.as_ref().is_some_and(|probe| probe.linearizable_read_ok && probe.is_leader())
        };
        self.probes.iter().find(leads).map(|(name, _)| name.as_str())
    }
}

/// Every mismatch, with a message that stays the same while it lasts.
pub(super) fn mismatches(reported: &ReportedStatus, actual: &ActualState) -> Mismatches {
    let mut found = Mismatches::new();
    // A hibernated or terminating cluster has no members to probe, and one before its bootstrap
    // reports none.
    if reported.desired == 0 || reported.terminating || reported.cluster_id.is_none() {
        return found;
    }
    member_mismatches(reported, actual, &mut found);
    cluster_mismatches(reported, actual, &mut found);
    found
}

fn member_mismatches(reported: &ReportedStatus, actual: &ActualState, found: &mut Mismatches) {
    let mut add = |message: String| {
        found.insert(message, STATUS_GRACE);
    };
    for (name, member) in &reported.members {
        let probe = actual.probes.get(name).and_then(Option::as_ref);
        match (member.healthy, actual.reads_linearizably(name)) {
            (Some(true), false) if !probe.is_some_and(|probe| probe.is_learner) => {
                add(format!("{name} is reported healthy, and its linearizable read fails"));
            }
            (Some(false), true) => {
                add(format!("{name} is reported unhealthy, and its linearizable read succeeds"));
            }
            _ => {}
        }
        let Some(probe) = probe else { continue };
        if member.id.is_some_and(|id| id != probe.id) {
            add(format!("{name} is reported with a wrong ID"));
        }
        if member.version.as_ref().is_some_and(|version| *version != probe.version) {
            add(format!("{name} is reported with a wrong version"));
        }
        let learner = member.role.as_deref().map(|role| role == "Learner");
        let known = member.role.as_deref() != Some("Unknown");
        if known && learner.is_some_and(|learner| learner != probe.is_learner) {
            add(format!("{name} is reported with a wrong role"));
        }
    }
    let Some(list) = actual.list() else { return };
    for member in &list.members {
        if !reported.members.contains_key(&member.name) {
            add(format!("{} is listed by etcd and not reported", member.name));
        }
    }
    for (name, member) in &reported.members {
        if member.id.is_some() && list.id_of(name).is_none() {
            add(format!("{name} is reported and not listed by etcd"));
        }
    }
}

fn cluster_mismatches(reported: &ReportedStatus, actual: &ActualState, found: &mut Mismatches) {
    let list = actual.list();
    let voters =
        || list.into_iter().flat_map(|list| &list.members).filter(|member| !member.is_learner);
    let is_healthy = |name: &str| actual.reads_linearizably(name);
    let healthy = i64::try_from(voters().filter(|member| is_healthy(&member.name)).count());
    let healthy = healthy.unwrap_or_default();
    let all_healthy = voters().all(|member| is_healthy(&member.name));
    let full = i64::try_from(voters().count()) == Ok(reported.desired);
    let mut wrong = |is: bool, message: &str| {
        if is {
            found.insert(message.to_owned(), STATUS_GRACE);
        }
    };
    wrong(
        reported.condition("Ready") == Some(true) && !(list.is_some() && full && all_healthy),
        "Ready is True, and not every desired voter is healthy",
    );
    wrong(
        reported.condition("Available") == Some(true) && list.is_none(),
        "Available is True, and no linearizable read succeeds",
    );
    wrong(
        reported.condition("Available") == Some(false) && list.is_some(),
        "Available is False, and a linearizable read succeeds",
    );
    wrong(
        reported.condition("QuorumLost") == Some(true) && list.is_some(),
        "QuorumLost is True, and a linearizable read succeeds",
    );
    wrong(
        list.is_some() && reported.ready.is_some_and(|ready| ready != healthy),
        "readyReplicas is not the number of healthy voters",
    );
    wrong(
        list.is_some_and(|list| reported.cluster_id.is_some_and(|id| id != list.cluster)),
        "clusterID is not the cluster ID of etcd",
    );
    let leader = actual.leader();
    wrong(
        leader.is_some() && reported.leader.is_some() && reported.leader.as_deref() != leader,
        "leader is not the leader of etcd",
    );
    if reported.condition("QuorumLost") != Some(true) && list.is_none() {
        let message = "QuorumLost is not True, and no linearizable read succeeds";
        found.insert(message.to_owned(), QUORUM_LOST_GRACE);
    }
}

#[cfg(test)]
mod tests;
