//! How the members of one cluster are reached, as its objects show it.
//! Comes in: the spec, the objects, the time. Goes out: `Doors`. May touch: `api`, Kubernetes' own types; pure.
//! What a pod takes is read from what it was told, so pods of every release can be read; how members call each other stands in
//! each EtcdMember; what applications are told, and since when, stands in the status of the cluster.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::{Open, Scheme, needs_keys, of_newcomer, open, told_first, told_next};
use crate::api::etcd_cluster::checked::EtcdCluster;
use crate::api::etcd_cluster::v1::status::ClientLine;
use crate::api::etcd_member::EtcdMember;
use crate::api::field::Field;
use crate::etcd_cluster::render::metadata::scheme;
use crate::etcd_cluster::seen::{Etcd, Name, Reading, Seen};
use crate::etcd_cluster::stock::{Stock, flag, name_of};

/// So long members take both ways after applications were told of the new one. A kubelet takes up to two minutes until what
/// is in a Secret is in the pods that mount it.
pub(crate) const OVERLAP: Duration = Duration::from_mins(2);

/// Where applications could not be told, their time begins anew so often.
const RENEWED: SignedDuration = SignedDuration::from_mins(1);

const CLIENTS: &str = "listen-client-urls";
const PEERS: &str = "listen-peer-urls";
const KEYS: &str = "peer-cert-file";

/// How the members of a cluster are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doors {
    /// Whom pods that are made now take as clients.
    pub(crate) clients: Open,
    /// How applications are told to call, and the operator's own words for where members are.
    pub(crate) told: Scheme,
    /// When they were told so, if that was written down.
    since: Option<Timestamp>,
    /// Whether members have certificates for each other.
    pub(crate) keys: bool,
    /// How the others call each member.
    pub(crate) peers: BTreeMap<Name, Scheme>,
    /// How they call one that comes.
    pub(crate) newcomer: Scheme,
    /// Until when clients have time to follow, if there is anything that they must leave.
    pub(crate) until: Option<Timestamp>,
    /// What applications shall be told.
    wanted: Scheme,
}

impl Doors {
    /// The doors of a cluster.
    pub(crate) fn of(spec: &EtcdCluster, stock: &Stock, now: Timestamp) -> Self {
        let (wanted, peer) = (scheme(&spec.client_tls), scheme(&spec.peer_tls));
        let pods: Vec<Open> = staying(stock).filter_map(taken_by).collect();
        let line = stock.cluster.status.as_ref().map(|it| it.clients.clone().or_empty());
        let ClientLine { scheme: written, since } = line.unwrap_or_default();
        let written = written.known().and_then(|it| Scheme::read(it.as_str()));
        let since = since.known().and_then(|it| it.as_str().parse().ok());
        let told = written.unwrap_or_else(|| told_first(wanted, &pods));
        let end = since.and_then(until).filter(|it| *it > now);
        let clients = open(wanted, told, end.is_some(), &pods);
        let peers: BTreeMap<Name, Scheme> = stock.members.iter().filter_map(called).collect();
        let all_have_keys = staying(stock).all(has_keys);
        let listening = staying(stock).filter_map(|it| Scheme::read(flag(it, PEERS)?));
        Self {
            clients,
            told,
            since,
            keys: needs_keys(peer, peers.values().copied().chain(listening)),
            newcomer: of_newcomer(peer, all_have_keys),
            peers,
            until: end.filter(|_| told == wanted && clients == Open::Both),
            wanted,
        }
    }

    /// The same, if applications were told only now what stands in the status, or could not be: their time begins now, unless somebody
    /// has ended the old way already.
    pub(crate) fn told_late(self, stock: &Stock, now: Timestamp) -> Self {
        let mut pods = staying(stock).filter_map(taken_by).peekable();
        let is_open = pods.peek().is_some() && pods.all(|it| it == Open::Both);
        // As long as most of it is left, nothing is written: what fails may fail again and again.
        let has_begun = |it: &Timestamp| now.duration_since(*it) > RENEWED;
        if self.told != self.wanted || !self.since.as_ref().is_some_and(has_begun) || !is_open {
            return self;
        }
        Self { clients: Open::Both, since: Some(now), until: until(now), ..self }
    }

    /// Whether clients shall call in another way, or have time to follow.
    pub(crate) fn is_on_its_way(&self) -> bool {
        self.told != self.wanted || self.until.is_some()
    }

    /// What is written down about clients at the end of a pass; nothing before there is a cluster that they could call.
    pub(crate) fn line(&self, seen: &Seen, stock: &Stock, now: Timestamp) -> Field<ClientLine> {
        if seen.record.formed.is_none() {
            return Field::Absent;
        }
        let pods: Vec<Open> = staying(stock).filter_map(taken_by).collect();
        let all_are_well = match &seen.etcd {
            Reading::Known(etcd) => Etcd::all_voters_are_well(etcd),
            Reading::Unknown => false,
        };
        let told = told_next(self.wanted, self.told, all_are_well, &pods);
        let since = self.since.filter(|_| told == self.told).unwrap_or(now);
        Field::Known(ClientLine {
            scheme: Field::Known(told.word().into()),
            since: Field::Known(since.to_string().into()),
        })
    }
}

/// Until when both ways are taken, if applications were told then.
fn until(told: Timestamp) -> Option<Timestamp> {
    let overlap = SignedDuration::try_from(OVERLAP).unwrap_or(SignedDuration::ZERO);
    told.saturating_add(overlap).ok()
}

/// The pods that are not on their way out. One on a lost node is so for ever, and nobody waits for it.
fn staying(stock: &Stock) -> impl Iterator<Item = &Pod> {
    stock.pods.iter().filter(|it| it.metadata.deletion_timestamp.is_none())
}

/// Whom a pod takes as clients.
pub(crate) fn taken_by(pod: &Pod) -> Option<Open> {
    let told = flag(pod, CLIENTS)?;
    let schemes: Vec<Scheme> = told.split(',').filter_map(Scheme::read).collect();
    match (schemes.contains(&Scheme::Http), schemes.contains(&Scheme::Https)) {
        (true, true) => Some(Open::Both),
        (true, false) => Some(Open::Only(Scheme::Http)),
        (false, true) => Some(Open::Only(Scheme::Https)),
        (false, false) => None,
    }
}

/// How the operator calls who is in a pod: protected, wherever that is possible.
pub(crate) fn way_to(pod: &Pod) -> Scheme {
    taken_by(pod).filter(|it| !it.takes(Scheme::Https)).map_or(Scheme::Https, |_| Scheme::Http)
}

/// Whether a pod has certificates for other members.
pub(crate) fn has_keys(pod: &Pod) -> bool {
    flag(pod, KEYS).is_some()
}

/// A member, and how the others call it.
fn called(member: &EtcdMember) -> Option<(Name, Scheme)> {
    Some((name_of(member), Scheme::read(member.spec.peer_url.known()?.as_str())?))
}
