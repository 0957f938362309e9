//! Builds the observed state from the objects in Kubernetes, the probe of etcd, the recorded status
//! and the time.
//!
//! Guarantees: a member and its pod are matched by name, a member and its entry in etcd's list by
//! peer URL; nothing is ever matched by its position in a list.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use crate::api::etcd_cluster::v1::Medium;
use crate::api::etcd_cluster::v1::status::{BootstrapStatus, EtcdClusterStatus};
use crate::api::etcd_member::{self, EtcdMember};
use crate::api::etcd_types::Alarm;
use crate::api::extract::is_true;
use crate::etcd_cluster::observe::etcd::{EtcdProbe, MemberProbe, QuorumView, member_of_peer_url};
use crate::etcd_cluster::observe::objects::{ClusterObjects, flag, is_removed, name_of};
use crate::etcd_cluster::raft_log::{OldestWriter, RaftLogRequirement};
use crate::etcd_cluster::render::metadata::scheme;
use crate::etcd_cluster::render::{Blueprint, options};
use crate::etcd_cluster::rollback::{self, PreviousSpec};
use crate::etcd_cluster::state::defragmentation::Alarm as Kind;
use crate::etcd_cluster::state::{
    BootstrapRecord, ClusterId, DesiredState, Downgrade, EtcdState, Intent, ListedMember, Member,
    MemberId, MemberName, ObservedState, PodState, Reading, Rollback, TemplateState, VolumeState,
};
use crate::etcd_cluster::state::{health, pod};
use crate::etcd_cluster::tls::trust_hash::TrustHash;
use crate::etcd_cluster::transport::Scheme;
use crate::etcd_cluster::transport::observed::Transport;
use crate::etcd_cluster::version::UpgradePath;

/// A learner that is at most this many entries behind can be promoted without slowing down commits.
const MAX_LEARNER_LAG: u64 = 1000;

/// The inputs of the observed state.
pub(crate) struct StateInputs<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    pub(crate) objects: &'a ClusterObjects,
    pub(crate) probe: &'a EtcdProbe,
    /// The path to the version of the spec.
    pub(crate) path: UpgradePath,
    /// The template of members that run with another one than the desired one.
    pub(crate) previous: Option<&'a PreviousSpec>,
    pub(crate) now: Timestamp,
    /// When this process started to observe. Nothing is known to have lasted for longer.
    pub(crate) observing_since: Timestamp,
    /// Random candidates for names of new members.
    pub(crate) names: Vec<MemberName>,
    /// The hash of the trust bundle that pods should use, if known.
    pub(crate) trust: Option<&'a TrustHash>,
}

impl StateInputs<'_> {
    /// Builds the observed state.
    pub(crate) fn build(&self) -> ObservedState {
        let Self { blueprint, objects, probe, names, .. } = self;
        let spec = blueprint.spec;
        let desired = DesiredState {
            replicas: usize::from(spec.replicas),
            paused: spec.paused,
            persistent: spec.storage.medium == Medium::Disk,
            version: self.path.progress(),
            rollback: match (rollback::active(&objects.cluster), self.previous) {
                (Some(_), _) => Rollback::Active,
                (None, Some(_)) => Rollback::Available,
                (None, None) => Rollback::Unavailable,
            },
            peer_scheme: scheme(&spec.peer_tls),
            client_tls_transition: blueprint.transport.is_some_and(Transport::is_changing),
        };
        let is_free = |name: &&MemberName| {
            objects.member(name).is_none()
                && objects.pod(name).is_none()
                && objects.pvc(name).is_none()
        };
        ObservedState {
            desired,
            bootstrap: record(&objects.cluster.status.clone().unwrap_or_default()),
            members: objects
                .oldest_first()
                .into_iter()
                .filter_map(|member| self.member(member))
                .collect(),
            orphaned_volumes: self.volumes_without_member(|claim| objects.is_ours(claim)),
            retained_volumes: self.volumes_without_member(|claim| !objects.is_ours(claim)),
            previous_cluster_objects: objects.previous_cluster_objects.clone(),
            etcd: match &probe.quorum {
                Reading::Known(view) => Reading::Known(self.etcd(view)),
                Reading::Unknown => Reading::Unknown,
            },
            candidate_names: names.iter().filter(is_free).cloned().collect(),
            defragmentation: self.defragmentation(),
        }
    }

    /// Whether a pod was created from the template that other members still run with.
    fn matches_previous(&self, name: &MemberName, pod: &k8s_openapi::api::core::v1::Pod) -> bool {
        self.previous.is_some_and(|previous| {
            let blueprint = Blueprint { spec: &previous.spec, ..*self.blueprint };
            !pod::template_differs(&blueprint, name, pod)
        })
    }

    /// Volumes without an EtcdMember. One that is being deleted cannot be used any more.
    fn volumes_without_member(
        &self,
        is_selected: impl Fn(&PersistentVolumeClaim) -> bool,
    ) -> Vec<MemberName> {
        let stays = |claim: &&PersistentVolumeClaim| claim.metadata.deletion_timestamp.is_none();
        let claims = self.objects.pvcs.iter().filter(stays).filter(|claim| is_selected(claim));
        claims.map(name_of).filter(|name| self.objects.member(name).is_none()).collect()
    }

    fn member(&self, object: &EtcdMember) -> Option<Member> {
        let name = name_of(object);
        let intent = match object.spec.intent.known()? {
            etcd_member::Intent::Bootstrap => Intent::Bootstrap,
            etcd_member::Intent::Join => Intent::Join,
            etcd_member::Intent::Leave if is_removed(object) => Intent::Removed,
            etcd_member::Intent::Leave => Intent::Leave,
        };
        // Deletion of the EtcdMember is ignored here: its pod is deleted with it, and then the
        // object.
        let pod = self.objects.pod(&name);
        let volume = match self.objects.pvc(&name) {
            None => VolumeState::Missing,
            Some(claim) if claim.metadata.deletion_timestamp.is_some() => VolumeState::Terminating,
            Some(_) => VolumeState::Present,
        };
        let trust_differs = |pod: &_| self.trust.is_some_and(|trust| trust.differs(pod));
        let differs = pod.is_some_and(|pod| {
            pod::template_differs(self.blueprint, &name, pod) || trust_differs(pod)
        });
        // A reachable etcd runs, whatever the kubelet reports so far. One that has run before and
        // does not run now is restarted by the kubelet.
        let attempts = self.blueprint.spec.repair.recreate_attempts;
        let cannot_run = self.probe.status(&name).is_none()
            && pod.is_some_and(|pod| !pod::has_run(pod) || pod::is_crash_looping(pod, attempts));
        let template = match (differs, cannot_run) {
            (false, _) => TemplateState::UpToDate,
            (true, true) if pod.is_some_and(|pod| self.matches_previous(&name, pod)) => {
                TemplateState::PreviousNotRunning
            }
            (true, true) => TemplateState::StaleNotRunning,
            (true, false) => TemplateState::Outdated,
        };
        Some(Member {
            intent,
            started: is_true(&object.spec.started),
            pod: Reading::Known(pod.map_or(PodState::Missing, pod::pod_state)),
            volume: Reading::Known(volume),
            template,
            replacement_due: health::is_replacement_due(self, object, pod),
            failing: health::is_failing(self, object, pod),
            peer_scheme: self.blueprint.peer_scheme(&name),
            name,
        })
    }

    fn etcd(&self, view: &QuorumView) -> EtcdState {
        let QuorumView { queried_member: _, cluster_id, leader, members, alarms, revision: _ } =
            view;
        let entry = |listed: &crate::api::etcd_types::MemberEntry| {
            // A member with the other scheme in its peer URL is managed, too.
            let has_url = |scheme, name: &MemberName| {
                listed.peer_urls.contains(&self.blueprint.peer_url_with(scheme, name))
            };
            let is_managed =
                |name: &MemberName| has_url(Scheme::Http, name) || has_url(Scheme::Https, name);
            let mut urls = listed.peer_urls.iter();
            let managed = urls.find_map(|url| member_of_peer_url(url)).filter(is_managed);
            let mut urls = listed.peer_urls.iter();
            let peer_scheme = urls.find_map(|url| Scheme::parse(url)).unwrap_or_default();
            // An unknown member was not probed, so its health is unknown.
            let healthy = match &managed {
                Some(name) => Reading::Known(self.is_healthy(name, listed.id, listed.is_learner)),
                None => Reading::Unknown,
            };
            let unknown = || {
                let url = listed.peer_urls.first().cloned();
                MemberName(url.unwrap_or(format!("{:x}", listed.id)))
            };
            let name = managed.unwrap_or_else(unknown);
            let file = self.db_file(&name, listed.id);
            ListedMember {
                id: MemberId(listed.id),
                is_learner: listed.is_learner,
                healthy,
                peer_scheme,
                should_defragment: file.is_some_and(|file| self.should_defragment(view, file)),
                data_hash: self.probe.data_hashes.get(&name).copied(),
                name,
            }
        };
        EtcdState {
            cluster: ClusterId(*cluster_id),
            leader: (*leader != 0).then_some(MemberId(*leader)),
            members: members.iter().map(entry).collect(),
            blocking_alarm: alarms.iter().any(|alarm| self.blocks_disruption(alarm)),
            quota: self.quota(view),
            corrupt: alarms.iter().any(|alarm| alarm.alarm_type == Kind::Corrupt.name()),
            downgrade: self.downgrade(),
            raft_log_missing: self
                .raft_log_requirement()
                .map_or(0, |requirement| requirement.missing_entries(self.probe)),
            auth: self.probe.auth,
        }
    }

    /// Whether a downgrade is enabled in etcd, and whether the spec has that minor version.
    fn downgrade(&self) -> Downgrade {
        match self.path.downgrade_to {
            None => Downgrade::None,
            Some(target) if target.minor() == self.path.spec.minor() => Downgrade::Requested,
            Some(_) => Downgrade::Unwanted,
        }
    }

    /// What the next version requires of the raft log, if another one follows the effective
    /// version.
    pub(crate) fn raft_log_requirement(&self) -> Option<RaftLogRequirement> {
        let next = self.path.following()?;
        let status = self.objects.cluster.status.clone().unwrap_or_default();
        // A pod with another snapshot count uses that one until it is recreated.
        let running = self
            .objects
            .pods
            .iter()
            .filter_map(|pod| flag(pod, options::SNAPSHOT_COUNT_FLAG)?.parse().ok());
        let desired = u64::from(options::snapshot_count(self.blueprint.spec));
        let snapshot_count = running.fold(desired, u64::max);
        Some(RaftLogRequirement {
            next,
            snapshot_count,
            oldest_writer: OldestWriter::observe(&status, self.probe),
        })
    }

    /// Whether an alarm forbids disruption of members. NOSPACE forbids a version change only:
    /// raising the quota needs a restart.
    fn blocks_disruption(&self, alarm: &Alarm) -> bool {
        let effective = self.path.effective();
        let differs = self.path.lowest_running.is_some_and(|running| running != effective);
        // During a downgrade the first updated member already runs the effective version.
        let changes_release = differs || self.path.downgrade_to.is_some();
        alarm.alarm_type != Kind::NoSpace.name() || changes_release
    }

    /// Whether a voter is reachable, but not part of the quorum that the other voters have.
    pub(crate) fn is_isolated(&self, name: &MemberName) -> bool {
        let is_voter =
            |probe: &MemberProbe| probe.status.as_ref().is_some_and(|status| !status.is_learner);
        let probe = self.probe.members.get(name);
        self.probe.quorum.known().is_some()
            && probe.is_some_and(|probe| is_voter(probe) && !probe.linearizable_read_ok)
    }

    /// Whether a member is healthy. A response from another member ID at its address does not
    /// count.
    fn is_healthy(&self, name: &MemberName, id: u64, learner: bool) -> bool {
        let Some(probe) = self.probe.members.get(name) else { return false };
        let Some(status) = &probe.status else { return false };
        if status.member != id {
            return false;
        }
        if !learner {
            return probe.linearizable_read_ok;
        }
        self.probe.max_raft_index().saturating_sub(status.applied_index) <= MAX_LEARNER_LAG
    }
}

/// What the status records of the bootstrap.
pub(crate) fn record(status: &EtcdClusterStatus) -> BootstrapRecord {
    let BootstrapStatus { members, started, aborted } = status.bootstrap.clone().or_default();
    let members = members.into_known().unwrap_or_default();
    let cluster_id =
        status.cluster_id.known().and_then(|id| u64::from_str_radix(id.as_str(), 16).ok());
    BootstrapRecord {
        members: members.into_iter().map(|name| MemberName(name.as_str().to_owned())).collect(),
        started: is_true(&started),
        aborted: is_true(&aborted),
        cluster_id: cluster_id.map(ClusterId),
    }
}

/// The uid of an object, or the empty string, which no object has.
pub(crate) fn uid<K: ResourceExt>(object: &K) -> String {
    object.uid().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests;
