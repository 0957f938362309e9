//! The transport of one cluster as its objects show it: which schemes pods listen on, how members
//! dial each other, and which client scheme is advertised.
//!
//! What a pod listens on is read from its flags, so pods of every operator release can be read. The
//! peer scheme of a member is in its EtcdMember, the advertised client scheme in the cluster's
//! status.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::{
    ClientListeners, Scheme, initial_scheme, listeners, needs_peer_certs, new_member_scheme,
    next_scheme,
};
use crate::api::etcd_cluster::v1::status::ClientTlsStatus;
use crate::api::etcd_cluster::validated::EtcdCluster;
use crate::api::etcd_member::EtcdMember;
use crate::api::field::Field;
use crate::etcd_cluster::observe::objects::{ClusterObjects, flag, name_of};
use crate::etcd_cluster::render::metadata::scheme;
use crate::etcd_cluster::state::{EtcdState, MemberName, ObservedState, Reading};

/// How long members accept both schemes after the new one was advertised. A kubelet takes up to two
/// minutes to update a mounted Secret.
pub(crate) const OVERLAP: Duration = Duration::from_mins(2);

/// The overlap is restarted at most this often while the client Secret cannot be written.
const OVERLAP_RESTART_GRACE: SignedDuration = SignedDuration::from_mins(1);

const CLIENT_URLS_FLAG: &str = "listen-client-urls";
const PEER_URLS_FLAG: &str = "listen-peer-urls";
const PEER_CERT_FLAG: &str = "peer-cert-file";

/// The transport of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transport {
    /// The client schemes that new pods listen on.
    pub(crate) client_listeners: ClientListeners,
    /// The scheme advertised to clients.
    pub(crate) advertised: Scheme,
    /// When it was advertised, if that was recorded.
    advertised_since: Option<Timestamp>,
    /// Whether members have peer certificates.
    pub(crate) peer_certs: bool,
    /// The peer scheme of each member.
    pub(crate) peer_schemes: BTreeMap<MemberName, Scheme>,
    /// The peer scheme of a member that is added now.
    pub(crate) new_member_scheme: Scheme,
    /// When the overlap ends, while the old scheme is still accepted.
    pub(crate) overlap_end: Option<Timestamp>,
    /// The client scheme of the spec.
    desired: Scheme,
}

impl Transport {
    /// The transport of a cluster.
    pub(crate) fn observe(spec: &EtcdCluster, objects: &ClusterObjects, now: Timestamp) -> Self {
        let (desired, desired_peer) = (scheme(&spec.client_tls), scheme(&spec.peer_tls));
        let pods: Vec<ClientListeners> = active_pods(objects).filter_map(listeners_of).collect();
        let recorded =
            objects.cluster.status.as_ref().map(|status| status.client_tls.clone().or_default());
        let ClientTlsStatus { scheme: recorded, last_transition_time: since } =
            recorded.unwrap_or_default();
        let recorded = recorded.known().and_then(|scheme| Scheme::parse(scheme.as_str()));
        let advertised_since = since.known().and_then(|time| time.as_str().parse().ok());
        let advertised = recorded.unwrap_or_else(|| initial_scheme(desired, &pods));
        let end = advertised_since.and_then(overlap_end).filter(|end| *end > now);
        let client_listeners = listeners(desired, advertised, end.is_some(), &pods);
        let peer_schemes: BTreeMap<MemberName, Scheme> =
            objects.members.iter().filter_map(peer_scheme).collect();
        let all_have_certs = active_pods(objects).all(has_peer_certs);
        let listening =
            active_pods(objects).filter_map(|pod| Scheme::parse(flag(pod, PEER_URLS_FLAG)?));
        let in_use = peer_schemes.values().copied().chain(listening);
        Self {
            client_listeners,
            advertised,
            advertised_since,
            peer_certs: needs_peer_certs(desired_peer, in_use),
            new_member_scheme: new_member_scheme(desired_peer, all_have_certs),
            peer_schemes,
            overlap_end: end
                .filter(|_| advertised == desired && client_listeners == ClientListeners::Both),
            desired,
        }
    }

    /// Restarts the overlap if the client Secret was written only now, or could not be written,
    /// unless a pod has already dropped the old scheme.
    pub(crate) fn restart_overlap(self, objects: &ClusterObjects, now: Timestamp) -> Self {
        let mut pods = active_pods(objects).filter_map(listeners_of).peekable();
        let all_accept_both = pods.peek().is_some() && pods.all(|pod| pod == ClientListeners::Both);
        // While most of the overlap is left, nothing is written: a write that fails may fail again
        // and again.
        let is_due = |since: &Timestamp| now.duration_since(*since) > OVERLAP_RESTART_GRACE;
        if self.advertised != self.desired
            || !self.advertised_since.as_ref().is_some_and(is_due)
            || !all_accept_both
        {
            return self;
        }
        Self {
            client_listeners: ClientListeners::Both,
            advertised_since: Some(now),
            overlap_end: overlap_end(now),
            ..self
        }
    }

    /// Whether the client scheme is being changed, or the overlap has not ended.
    pub(crate) fn is_changing(&self) -> bool {
        self.advertised != self.desired || self.overlap_end.is_some()
    }

    /// The client scheme to record at the end of a reconciliation; absent before bootstrap.
    pub(crate) fn client_status(
        &self,
        state: &ObservedState,
        objects: &ClusterObjects,
        now: Timestamp,
    ) -> Field<ClientTlsStatus> {
        if state.bootstrap.cluster_id.is_none() {
            return Field::Absent;
        }
        let pods: Vec<ClientListeners> = active_pods(objects).filter_map(listeners_of).collect();
        let all_healthy = match &state.etcd {
            Reading::Known(etcd) => EtcdState::all_voters_healthy(etcd),
            Reading::Unknown => false,
        };
        let advertised = next_scheme(self.desired, self.advertised, all_healthy, &pods);
        let since = self.advertised_since.filter(|_| advertised == self.advertised).unwrap_or(now);
        Field::Known(ClientTlsStatus {
            scheme: Field::Known(advertised.as_str().into()),
            last_transition_time: Field::Known(since.to_string().into()),
        })
    }
}

/// When the overlap ends that started at this time.
fn overlap_end(advertised: Timestamp) -> Option<Timestamp> {
    let overlap = SignedDuration::try_from(OVERLAP).unwrap_or(SignedDuration::ZERO);
    advertised.saturating_add(overlap).ok()
}

/// The pods that are not terminating. A pod on a lost node terminates for ever, and is not waited
/// for.
fn active_pods(objects: &ClusterObjects) -> impl Iterator<Item = &Pod> {
    objects.pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none())
}

/// The client schemes that a pod listens on.
pub(crate) fn listeners_of(pod: &Pod) -> Option<ClientListeners> {
    let urls = flag(pod, CLIENT_URLS_FLAG)?;
    let schemes: Vec<Scheme> = urls.split(',').filter_map(Scheme::parse).collect();
    match (schemes.contains(&Scheme::Http), schemes.contains(&Scheme::Https)) {
        (true, true) => Some(ClientListeners::Both),
        (true, false) => Some(ClientListeners::Only(Scheme::Http)),
        (false, true) => Some(ClientListeners::Only(Scheme::Https)),
        (false, false) => None,
    }
}

/// The scheme with which the operator dials the member in a pod: TLS wherever it is accepted.
pub(crate) fn operator_scheme(pod: &Pod) -> Scheme {
    let plaintext_only = listeners_of(pod).filter(|listeners| !listeners.accepts(Scheme::Https));
    plaintext_only.map_or(Scheme::Https, |_| Scheme::Http)
}

/// Whether a pod has peer certificates.
pub(crate) fn has_peer_certs(pod: &Pod) -> bool {
    flag(pod, PEER_CERT_FLAG).is_some()
}

/// A member and its peer scheme.
fn peer_scheme(member: &EtcdMember) -> Option<(MemberName, Scheme)> {
    Some((name_of(member), Scheme::parse(member.spec.peer_url.known()?.as_str())?))
}
