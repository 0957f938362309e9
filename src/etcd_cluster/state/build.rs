//! Makes one look out of many: what Kubernetes has, what etcd says, what was written down, and the time.
//! Comes in: `ClusterObjects`, `EtcdProbe`. Goes out: `Seen`. May touch: `api`, Kubernetes' own types; pure.
//! A member and its pod belong together by name, and a member and etcd's entry by peer URL; nothing is
//! ever matched by its place in a list.
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

/// A learner so many entries behind votes without being a burden.
const MAX_LEARNER_LAG: u64 = 1000;

/// What one look is made of.
pub(crate) struct StateInputs<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    pub(crate) objects: &'a ClusterObjects,
    pub(crate) probe: &'a EtcdProbe,
    /// Which release it is on its way to.
    pub(crate) path: UpgradePath,
    /// What members are made of that run otherwise than is wanted.
    pub(crate) previous: Option<&'a PreviousSpec>,
    pub(crate) now: Timestamp,
    /// Since when this process looks. For what was before, nobody can say that it lasted.
    pub(crate) observing_since: Timestamp,
    /// Names that could be given to members, in no order.
    pub(crate) names: Vec<MemberName>,
    /// Whom pods should trust, if that is known.
    pub(crate) trust: Option<&'a TrustHash>,
}

impl StateInputs<'_> {
    /// One look.
    pub(crate) fn build(&self) -> ObservedState {
        let Self { blueprint, objects: stock, probe: heard, names, .. } = self;
        let spec = blueprint.spec;
        let wanted = DesiredState {
            replicas: usize::from(spec.replicas),
            paused: spec.paused,
            persistent: spec.storage.medium == Medium::Disk,
            version: self.path.progress(),
            rollback: match (rollback::active(&stock.cluster), self.previous) {
                (Some(_), _) => Rollback::Active,
                (None, Some(_)) => Rollback::Available,
                (None, None) => Rollback::Unavailable,
            },
            peer_scheme: scheme(&spec.peer_tls),
            client_tls_transition: blueprint.transport.is_some_and(Transport::is_changing),
        };
        let is_free = |name: &&MemberName| {
            stock.member(name).is_none() && stock.pod(name).is_none() && stock.pvc(name).is_none()
        };
        ObservedState {
            desired: wanted,
            bootstrap: record(&stock.cluster.status.clone().unwrap_or_default()),
            members: stock.oldest_first().into_iter().filter_map(|it| self.member(it)).collect(),
            orphaned_volumes: self.volumes_without_member(|claim| stock.is_ours(claim)),
            retained_volumes: self.volumes_without_member(|claim| !stock.is_ours(claim)),
            previous_cluster_objects: stock.previous_cluster_objects.clone(),
            etcd: match &heard.quorum {
                Reading::Known(council) => Reading::Known(self.etcd(council)),
                Reading::Unknown => Reading::Unknown,
            },
            candidate_names: names.iter().filter(is_free).cloned().collect(),
            defragmentation: self.upkeep(),
        }
    }

    /// Whether a pod was made as others are that run otherwise than is wanted.
    fn matches_previous(&self, name: &MemberName, pod: &k8s_openapi::api::core::v1::Pod) -> bool {
        self.previous.is_some_and(|before| {
            let blueprint = Blueprint { spec: &before.spec, ..*self.blueprint };
            !pod::template_differs(&blueprint, name, pod)
        })
    }

    /// Volumes without an EtcdMember. What is on its way out is as good as gone: nobody can use it any more.
    fn volumes_without_member(
        &self,
        of: impl Fn(&PersistentVolumeClaim) -> bool,
    ) -> Vec<MemberName> {
        let stays = |it: &&PersistentVolumeClaim| it.metadata.deletion_timestamp.is_none();
        let claims = self.objects.pvcs.iter().filter(stays).filter(|it| of(it));
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
        // Whoever deletes an EtcdMember deletes its pod and, one day, this object; it is as good as gone.
        let pod = self.objects.pod(&name);
        let volume = match self.objects.pvc(&name) {
            None => VolumeState::Missing,
            Some(claim) if claim.metadata.deletion_timestamp.is_some() => VolumeState::Terminating,
            Some(_) => VolumeState::Present,
        };
        let trusts_others = |pod: &_| self.trust.is_some_and(|it| it.differs(pod));
        let differs = pod.is_some_and(|pod| {
            pod::template_differs(self.blueprint, &name, pod) || trusts_others(pod)
        });
        // Who is heard runs, whatever the kubelet has told so far. Who has run and does not now comes back by itself.
        let attempts = self.blueprint.spec.repair.recreate_attempts;
        let cannot_run = self.probe.status(&name).is_none()
            && pod.is_some_and(|pod| !pod::has_run(pod) || pod::is_crash_looping(pod, attempts));
        let made = match (differs, cannot_run) {
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
            template: made,
            replacement_due: health::is_replacement_due(self, object, pod),
            failing: health::is_failing(self, object, pod),
            peer_scheme: self.blueprint.peer_scheme(&name),
            name,
        })
    }

    fn etcd(&self, council: &QuorumView) -> EtcdState {
        let QuorumView {
            queried_member: _,
            cluster_id: cluster,
            leader,
            members: list,
            alarms,
            revision: _,
        } = council;
        let entry = |it: &crate::api::etcd_types::MemberEntry| {
            // One that is called in another way than it should be is ours all the same.
            let by = |scheme, name: &MemberName| {
                it.peer_urls.contains(&self.blueprint.peer_url_with(scheme, name))
            };
            let ours = |name: &MemberName| by(Scheme::Http, name) || by(Scheme::Https, name);
            let named = it.peer_urls.iter().find_map(|url| member_of_peer_url(url)).filter(ours);
            let peer = it.peer_urls.iter().find_map(|url| Scheme::parse(url)).unwrap_or_default();
            // Nobody has asked one that is none of ours, so nobody knows how it is.
            let healthy = match &named {
                Some(name) => Reading::Known(self.is_healthy(name, it.id, it.is_learner)),
                None => Reading::Unknown,
            };
            let stranger =
                || MemberName(it.peer_urls.first().cloned().unwrap_or(format!("{:x}", it.id)));
            let name = named.unwrap_or_else(stranger);
            let file = self.db_file(&name, it.id);
            ListedMember {
                id: MemberId(it.id),
                is_learner: it.is_learner,
                healthy,
                peer_scheme: peer,
                should_defragment: file.is_some_and(|it| self.should_defragment(council, it)),
                data_hash: self.probe.data_hashes.get(&name).copied(),
                name,
            }
        };
        EtcdState {
            cluster: ClusterId(*cluster),
            leader: (*leader != 0).then_some(MemberId(*leader)),
            members: list.iter().map(entry).collect(),
            blocking_alarm: alarms.iter().any(|it| self.blocks_disruption(it)),
            quota: self.space(council),
            corrupt: alarms.iter().any(|it| it.alarm_type == Kind::Corrupt.name()),
            downgrade: self.lowering(),
            raft_log_missing: self
                .raft_log_requirement()
                .map_or(0, |it| it.missing_entries(self.probe)),
            auth: self.probe.auth,
        }
    }

    /// Whether etcd was told to go down, and whether that is where it shall go.
    fn lowering(&self) -> Downgrade {
        match self.path.downgrade_to {
            None => Downgrade::None,
            Some(target) if target.minor() == self.path.spec.minor() => Downgrade::Requested,
            Some(_) => Downgrade::Unwanted,
        }
    }

    /// What the next release needs of the log, if another comes in after the one that is brought in now.
    pub(crate) fn raft_log_requirement(&self) -> Option<RaftLogRequirement> {
        let next = self.path.following()?;
        let before = self.objects.cluster.status.clone().unwrap_or_default();
        // Who was made with another count goes by that one until it is made anew.
        let running = self
            .objects
            .pods
            .iter()
            .filter_map(|it| flag(it, options::SNAPSHOT_COUNT_FLAG)?.parse().ok());
        let asked = u64::from(options::snapshot_count(self.blueprint.spec));
        let snapshot_count = running.fold(asked, u64::max);
        Some(RaftLogRequirement {
            next,
            snapshot_count,
            oldest_writer: OldestWriter::observe(&before, self.probe),
        })
    }

    /// Whether an alarm forbids to disturb anybody. Without space a new release must not come in; but more space for
    /// etcd may need a restart.
    fn blocks_disruption(&self, alarm: &Alarm) -> bool {
        let differs = self.path.lowest_running.is_some_and(|it| it != self.path.effective());
        // On the way down the first who has come is the oldest, and is as it should be.
        let changes_release = differs || self.path.downgrade_to.is_some();
        alarm.alarm_type != Kind::NoSpace.name() || changes_release
    }

    /// Whether a voter is heard, and the others agree without it.
    pub(crate) fn is_isolated(&self, name: &MemberName) -> bool {
        let voice = self.probe.members.get(name);
        let votes = |it: &MemberProbe| it.status.as_ref().is_some_and(|it| !it.is_learner);
        self.probe.quorum.known().is_some()
            && voice.is_some_and(|it| votes(it) && !it.linearizable_read_ok)
    }

    /// Whether a member answers as it should. An answer under its name from somebody else is none of its.
    fn is_healthy(&self, name: &MemberName, id: u64, learner: bool) -> bool {
        let Some(voice) = self.probe.members.get(name) else { return false };
        let Some(standing) = &voice.status else { return false };
        if standing.member != id {
            return false;
        }
        if !learner {
            return voice.linearizable_read_ok;
        }
        self.probe.max_raft_index().saturating_sub(standing.applied_index) <= MAX_LEARNER_LAG
    }
}

/// What the status says that is never decided twice.
pub(crate) fn record(status: &EtcdClusterStatus) -> BootstrapRecord {
    let BootstrapStatus { members, started: begun, aborted: abandoned } =
        status.bootstrap.clone().or_default();
    let founders = members.into_known().unwrap_or_default();
    let formed = status.cluster_id.known().and_then(|id| u64::from_str_radix(id.as_str(), 16).ok());
    BootstrapRecord {
        members: founders.into_iter().map(|it| MemberName(it.as_str().to_owned())).collect(),
        started: is_true(&begun),
        aborted: is_true(&abandoned),
        cluster_id: formed.map(ClusterId),
    }
}

/// The uid of an object, or nothing that any object has.
pub(crate) fn uid<K: ResourceExt>(object: &K) -> String {
    object.uid().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests;
