//! Makes one look out of many: what Kubernetes has, what etcd says, what was written down, and the time.
//! Comes in: `Stock`, `Heard`. Goes out: `Seen`. May touch: `api`, Kubernetes' own types; pure.
//! A member and its pod belong together by name, and a member and etcd's entry by peer URL; nothing is
//! ever matched by its place in a list.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod health;
pub(crate) mod pod;
pub(crate) mod upkeep;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use super::doors::Scheme;
use super::doors::found::Doors;
use super::heard::{Council, Heard, Voice, named_in};
use super::hop::Way;
use super::identity::trust::Trust;
use super::log::{Need, Written};
use super::render::metadata::scheme;
use super::render::{Blueprint, tune};
use super::seen::upkeep::Alarm as Kind;
use super::seen::{
    ClusterId, Etcd, Intent, Lowering, Made, Member, MemberId, Name, Pod, Reading, Record,
    Registered, Seen, Volume, Wanted, WayBack,
};
use super::stock::{Stock, flag, has_left, name_of};
use super::undo::{self, Before};
use crate::api::etcd_cluster::v1::Medium;
use crate::api::etcd_cluster::v1::status::{EtcdClusterStatus, Founding};
use crate::api::etcd_member::{self, EtcdMember};
use crate::api::etcd_says::Alarm;
use crate::api::plain::is_true;

/// A learner so many entries behind votes without being a burden.
const NEAR_ENOUGH: u64 = 1000;

/// What one look is made of.
pub(crate) struct Look<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    pub(crate) stock: &'a Stock,
    pub(crate) heard: &'a Heard,
    /// Which release it is on its way to.
    pub(crate) way: Way,
    /// What members are made of that run otherwise than is wanted.
    pub(crate) before: Option<&'a Before>,
    pub(crate) now: Timestamp,
    /// Since when this process looks. For what was before, nobody can say that it lasted.
    pub(crate) since: Timestamp,
    /// Names that could be given to members, in no order.
    pub(crate) names: Vec<Name>,
    /// Whom pods should trust, if that is known.
    pub(crate) trust: Option<&'a Trust>,
}

impl Look<'_> {
    /// One look.
    pub(crate) fn seen(&self) -> Seen {
        let Self { blueprint, stock, heard, names, .. } = self;
        let spec = blueprint.spec;
        let wanted = Wanted {
            replicas: usize::from(spec.replicas),
            paused: spec.paused,
            durable: spec.storage.medium == Medium::Disk,
            course: self.way.course(),
            way_back: match (undo::stands(&stock.cluster), self.before) {
                (Some(_), _) => WayBack::Taken,
                (None, Some(_)) => WayBack::Known,
                (None, None) => WayBack::Unknown,
            },
            peers: scheme(&spec.peer_tls),
            clients_move: blueprint.doors.is_some_and(Doors::is_on_its_way),
        };
        let is_free = |name: &&Name| {
            stock.member(name).is_none() && stock.pod(name).is_none() && stock.claim(name).is_none()
        };
        Seen {
            wanted,
            record: record(&stock.cluster.status.clone().unwrap_or_default()),
            members: stock.oldest_first().into_iter().filter_map(|it| self.member(it)).collect(),
            orphans: self.left_alone(|claim| stock.is_ours(claim)),
            retained: self.left_alone(|claim| !stock.is_ours(claim)),
            predecessors: stock.predecessors.clone(),
            etcd: match &heard.council {
                Reading::Known(council) => Reading::Known(self.etcd(council)),
                Reading::Unknown => Reading::Unknown,
            },
            free_names: names.iter().filter(is_free).cloned().collect(),
            upkeep: self.upkeep(),
        }
    }

    /// Whether a pod was made as others are that run otherwise than is wanted.
    fn is_as_before(&self, name: &Name, pod: &k8s_openapi::api::core::v1::Pod) -> bool {
        self.before.is_some_and(|before| {
            let blueprint = Blueprint { spec: &before.spec, ..*self.blueprint };
            !pod::differs(&blueprint, name, pod)
        })
    }

    /// Volumes without an EtcdMember. What is on its way out is as good as gone: nobody can use it any more.
    fn left_alone(&self, of: impl Fn(&PersistentVolumeClaim) -> bool) -> Vec<Name> {
        let stays = |it: &&PersistentVolumeClaim| it.metadata.deletion_timestamp.is_none();
        let claims = self.stock.claims.iter().filter(stays).filter(|it| of(it));
        claims.map(name_of).filter(|name| self.stock.member(name).is_none()).collect()
    }

    fn member(&self, object: &EtcdMember) -> Option<Member> {
        let name = name_of(object);
        let intent = match object.spec.intent.known()? {
            etcd_member::Intent::Bootstrap => Intent::Bootstrap,
            etcd_member::Intent::Join => Intent::Join,
            etcd_member::Intent::Leave if has_left(object) => Intent::Left,
            etcd_member::Intent::Leave => Intent::Leave,
        };
        // Whoever deletes an EtcdMember deletes its pod and, one day, this object; it is as good as gone.
        let pod = self.stock.pod(&name);
        let volume = match self.stock.claim(&name) {
            None => Volume::None,
            Some(claim) if claim.metadata.deletion_timestamp.is_some() => Volume::Going,
            Some(_) => Volume::There,
        };
        let trusts_others = |pod: &_| self.trust.is_some_and(|it| it.differs(pod));
        let differs =
            pod.is_some_and(|pod| pod::differs(self.blueprint, &name, pod) || trusts_others(pod));
        // Who is heard runs, whatever the kubelet has told so far. Who has run and does not now comes back by itself.
        let attempts = self.blueprint.spec.repair.recreate_attempts;
        let cannot_run = self.heard.standing(&name).is_none()
            && pod.is_some_and(|pod| !pod::has_run(pod) || pod::crashes(pod, attempts));
        let made = match (differs, cannot_run) {
            (false, _) => Made::AsWanted,
            (true, true) if pod.is_some_and(|pod| self.is_as_before(&name, pod)) => Made::AsBefore,
            (true, true) => Made::Stale,
            (true, false) => Made::Outdated,
        };
        Some(Member {
            intent,
            had_pod: is_true(&object.spec.started),
            pod: Reading::Known(pod.map_or(Pod::None, pod::state)),
            volume: Reading::Known(volume),
            made,
            given_up: health::is_given_up(self, object, pod),
            fails: health::fails(self, object, pod),
            address: self.blueprint.peer_scheme(&name),
            name,
        })
    }

    fn etcd(&self, council: &Council) -> Etcd {
        let Council { spokesman: _, cluster, leader, list, alarms, revision: _ } = council;
        let entry = |it: &crate::api::etcd_says::Listed| {
            // One that is called in another way than it should be is ours all the same.
            let by = |scheme, name: &Name| {
                it.peer_urls.contains(&self.blueprint.peer_url_by(scheme, name))
            };
            let ours = |name: &Name| by(Scheme::Http, name) || by(Scheme::Https, name);
            let named = it.peer_urls.iter().find_map(|url| named_in(url)).filter(ours);
            let peer = it.peer_urls.iter().find_map(|url| Scheme::read(url)).unwrap_or_default();
            // Nobody has asked one that is none of ours, so nobody knows how it is.
            let healthy = match &named {
                Some(name) => Reading::Known(self.is_well(name, it.id, it.is_learner)),
                None => Reading::Unknown,
            };
            let stranger = || Name(it.peer_urls.first().cloned().unwrap_or(format!("{:x}", it.id)));
            let name = named.unwrap_or_else(stranger);
            let file = self.file(&name, it.id);
            Registered {
                id: MemberId(it.id),
                learner: it.is_learner,
                healthy,
                peer,
                worth: file.is_some_and(|it| self.is_worth(council, it)),
                copy: self.heard.copies.get(&name).copied(),
                name,
            }
        };
        Etcd {
            cluster: ClusterId(*cluster),
            leader: (*leader != 0).then_some(MemberId(*leader)),
            list: list.iter().map(entry).collect(),
            alarmed: alarms.iter().any(|it| self.is_grave(it)),
            space: self.space(council),
            corrupt: alarms.iter().any(|it| it.word == Kind::Corrupt.word()),
            lowering: self.lowering(),
            log_lacks: self.need().map_or(0, |it| it.lacks(self.heard)),
            auth: self.heard.auth,
        }
    }

    /// Whether etcd was told to go down, and whether that is where it shall go.
    fn lowering(&self) -> Lowering {
        match self.way.lowered {
            None => Lowering::No,
            Some(target) if target.minor() == self.way.asked.minor() => Lowering::AsWanted,
            Some(_) => Lowering::Unwanted,
        }
    }

    /// What the next release needs of the log, if another comes in after the one that is brought in now.
    pub(crate) fn need(&self) -> Option<Need> {
        let next = self.way.after()?;
        let before = self.stock.cluster.status.clone().unwrap_or_default();
        // Who was made with another count goes by that one until it is made anew.
        let running =
            self.stock.pods.iter().filter_map(|it| flag(it, tune::SNAPSHOT_COUNT)?.parse().ok());
        let asked = u64::from(tune::snapshot_count(self.blueprint.spec));
        let snapshot_count = running.fold(asked, u64::max);
        Some(Need { next, snapshot_count, written: Written::now(&before, self.heard) })
    }

    /// Whether an alarm forbids to disturb anybody. Without space a new release must not come in; but more space for
    /// etcd may need a restart.
    fn is_grave(&self, alarm: &Alarm) -> bool {
        let differs = self.way.runs.is_some_and(|it| it != self.way.now());
        // On the way down the first who has come is the oldest, and is as it should be.
        let changes_release = differs || self.way.lowered.is_some();
        alarm.word != Kind::NoSpace.word() || changes_release
    }

    /// Whether a voter is heard, and the others agree without it.
    pub(crate) fn is_left_out(&self, name: &Name) -> bool {
        let voice = self.heard.voices.get(name);
        let votes = |it: &Voice| it.standing.as_ref().is_some_and(|it| !it.is_learner);
        self.heard.council.known().is_some() && voice.is_some_and(|it| votes(it) && !it.agrees)
    }

    /// Whether a member answers as it should. An answer under its name from somebody else is none of its.
    fn is_well(&self, name: &Name, id: u64, learner: bool) -> bool {
        let Some(voice) = self.heard.voices.get(name) else { return false };
        let Some(standing) = &voice.standing else { return false };
        if standing.member != id {
            return false;
        }
        if !learner {
            return voice.agrees;
        }
        self.heard.furthest().saturating_sub(standing.applied_index) <= NEAR_ENOUGH
    }
}

/// What the status says that is never decided twice.
pub(crate) fn record(status: &EtcdClusterStatus) -> Record {
    let Founding { members, begun, abandoned } = status.founding.clone().or_empty();
    let founders = members.into_known().unwrap_or_default();
    let formed = status.cluster_id.known().and_then(|id| u64::from_str_radix(id.as_str(), 16).ok());
    Record {
        founders: founders.into_iter().map(|it| Name(it.as_str().to_owned())).collect(),
        begun: is_true(&begun),
        abandoned: is_true(&abandoned),
        formed: formed.map(ClusterId),
    }
}

/// The uid of an object, or nothing that any object has.
pub(crate) fn uid<K: ResourceExt>(object: &K) -> String {
    object.uid().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests;
