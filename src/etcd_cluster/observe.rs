//! Reads the objects of a cluster, from the stores of the watches or from the API server, and
//! probes etcd. Stores may be stale: they can show that nothing is to be done, and nothing else.

pub(super) mod auth;
pub(super) mod etcd;
pub(super) mod objects;
pub(super) mod peer_rtt;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};

use super::observe::etcd::{EtcdProbe, MemberProbe, QuorumView};
use super::observe::objects::{ClusterObjects, name_of};
use super::state::defragmentation::Alarm as AlarmType;
use super::state::pod::{has_ended, is_ending};
use super::state::{MemberName, Reading};
use super::transport::Scheme;
use super::transport::observed::operator_scheme;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::EtcdMember;
use crate::api::etcd_types::{DataHash, EndpointStatus};
use crate::api::names;
use crate::clients::error::ApiError;
use crate::clients::etcd::{Credentials, EtcdError, MemberClient, MemberEndpoint};
use crate::clients::objects::Objects;

/// A member that takes longer to respond is unhealthy.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The most characters of an error in a status.
const MAX_ERROR_LENGTH: usize = 160;

/// The stores of the watches.
#[derive(Clone)]
pub(super) struct Stores {
    pub(super) members: Store<EtcdMember>,
    pub(super) pods: Store<Pod>,
    pub(super) pvcs: Store<PersistentVolumeClaim>,
    pub(super) services: Store<Service>,
    pub(super) pdbs: Store<PodDisruptionBudget>,
}

impl Stores {
    /// The objects of a cluster in the stores.
    pub(super) fn objects(&self, cluster: &EtcdCluster) -> ClusterObjects {
        ClusterObjects {
            members: from_store(&self.members, cluster),
            pods: from_store(&self.pods, cluster),
            pvcs: from_store(&self.pvcs, cluster),
            services: from_store(&self.services, cluster),
            pdbs: from_store(&self.pdbs, cluster),
            cluster: cluster.clone(),
            previous_members: Vec::new(),
        }
        .without_previous_cluster()
    }
}

fn from_store<K>(store: &Store<K>, cluster: &EtcdCluster) -> Vec<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let (name, namespace) = (cluster.name_any(), cluster.namespace());
    let belongs = |object: &K| {
        object.meta().namespace == namespace
            && object.labels().get(names::CLUSTER_LABEL) == Some(&name)
    };
    store.state().iter().filter(|object| belongs(object)).map(|object| K::clone(object)).collect()
}

/// The cluster that the label of an object names.
pub(super) fn owning_cluster<K>(object: &K) -> Option<ObjectRef<EtcdCluster>>
where
    K: kube::Resource,
{
    let cluster = object.labels().get(names::CLUSTER_LABEL)?;
    Some(ObjectRef::new(cluster).within(&object.namespace()?))
}

/// The objects of a cluster in the API server; none if the cluster no longer exists.
pub(super) async fn read_objects(
    objects: &Objects,
    cluster: &EtcdCluster,
) -> Result<Option<ClusterObjects>, ApiError> {
    let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    let labels = format!("{}={name}", names::CLUSTER_LABEL);
    let (found, members, pods, pvcs, services, pdbs) = futures::try_join!(
        objects.get::<EtcdCluster>(&namespace, &name),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
    )?;
    let same = found.filter(|live| live.metadata.uid == cluster.metadata.uid);
    Ok(same.map(|cluster| {
        ClusterObjects {
            cluster,
            members,
            pods,
            pvcs,
            services,
            pdbs,
            previous_members: Vec::new(),
        }
        .without_previous_cluster()
    }))
}

/// The clients of the members of a cluster.
pub(super) struct MemberClients(Vec<(MemberName, MemberClient)>);

impl MemberClients {
    /// The client of a member.
    pub(super) fn to(&self, name: &MemberName) -> Option<&MemberClient> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, client)| client)
    }
}

/// Probes every member whose pod has an address.
pub(super) async fn probe_etcd(
    objects: &ClusterObjects,
    credentials: Option<&Credentials>,
    now: Timestamp,
) -> (EtcdProbe, MemberClients) {
    let endpoints = objects.pods.iter().filter_map(|pod| member_endpoint(objects, pod, now));
    let results = join_all(endpoints.map(|(name, endpoint)| {
        // A plaintext connection uses no credentials.
        let credentials = credentials.filter(|_| !endpoint.plaintext);
        probe_member(name, endpoint, credentials)
    }))
    .await;
    let mut probe = EtcdProbe::none();
    let mut clients = MemberClients(Vec::new());
    for (name, member, client) in results {
        probe.members.insert(name.clone(), member);
        clients.0.extend(client.map(|client| (name, client)));
    }
    probe.quorum = match pick_queried_member(&probe) {
        Some((name, leader)) => read_quorum_view(&probe, &clients, name, leader).await,
        None => Reading::Unknown,
    };
    probe.data_hashes = read_data_hashes(&probe, &clients).await;
    (probe, clients)
}

/// The data hash of each member while the CORRUPT alarm is active. All members hash the same
/// revision, the last that every voter has. Hashes are comparable only with the same compacted
/// revision; members with another one are left out.
async fn read_data_hashes(probe: &EtcdProbe, clients: &MemberClients) -> BTreeMap<MemberName, u64> {
    let Reading::Known(quorum) = &probe.quorum else { return BTreeMap::new() };
    if !quorum.alarms.iter().any(|alarm| alarm.alarm_type == AlarmType::Corrupt.name()) {
        return BTreeMap::new();
    }
    // A learner may be far behind.
    let statuses = probe.members.values().filter_map(|member| member.status.as_ref());
    let voters = statuses.filter(|status| !status.is_learner);
    let Some(revision) = voters.map(|status| status.revision).min() else {
        return BTreeMap::new();
    };
    let reachable = clients.0.iter().filter(|(name, _)| probe.status(name).is_some());
    let hashes =
        join_all(reachable.map(async |(name, client)| (name, client.hash_kv(revision).await)));
    let hashes = hashes.await.into_iter();
    let known: Vec<(MemberName, DataHash)> =
        hashes.filter_map(|(name, hash)| Some((name.clone(), hash.ok()?))).collect();
    let count =
        |compacted: i64| known.iter().filter(|(_, hash)| hash.compacted == compacted).count();
    let compacted = known.iter().map(|(_, hash)| hash.compacted);
    let most_common = compacted.max_by_key(|compacted| (count(*compacted), *compacted));
    let comparable = known.iter().filter(|(_, hash)| Some(hash.compacted) == most_common);
    comparable.map(|(name, hash)| (name.clone(), hash.hash.into())).collect()
}

/// The client endpoint of a member; none if its pod has no address yet, or is ending.
pub(super) fn member_endpoint(
    objects: &ClusterObjects,
    pod: &Pod,
    now: Timestamp,
) -> Option<(MemberName, MemberEndpoint)> {
    if has_ended(pod) || is_ending(pod, now) {
        return None;
    }
    let address: IpAddr = pod.status.as_ref()?.pod_ip.as_deref()?.parse().ok()?;
    let name = name_of(pod);
    let namespace = objects.cluster.namespace().unwrap_or_default();
    let host = names::member_host(&name.0, &namespace);
    let plaintext = operator_scheme(pod) == Scheme::Http;
    let port = names::ETCD_CLIENT_PORT;
    Some((name, MemberEndpoint { address, port, host, plaintext }))
}

async fn probe_member(
    name: MemberName,
    endpoint: MemberEndpoint,
    credentials: Option<&Credentials>,
) -> (MemberName, MemberProbe, Option<MemberClient>) {
    let client = match MemberClient::open(&endpoint, credentials, PROBE_TIMEOUT).await {
        Ok(client) => client,
        Err(error) => {
            let error = Some(error_message(&error));
            return (name, MemberProbe { error, ..MemberProbe::default() }, None);
        }
    };
    let (status, read) = futures::join!(client.status(), client.linearizable_read());
    let error = status.as_ref().err().or(read.as_ref().err()).map(error_message);
    let probe = MemberProbe { status: status.ok(), linearizable_read_ok: read.is_ok(), error };
    (name, probe, Some(client))
}

fn error_message(error: &EtcdError) -> String {
    let message = error.server_message().map_or_else(|| error.to_string(), ToOwned::to_owned);
    message.chars().take(MAX_ERROR_LENGTH).collect()
}

/// The member that is queried for the cluster, and the leader that it reports: a voter whose
/// linearizable read succeeds, the leader if it is one of them.
fn pick_queried_member(probe: &EtcdProbe) -> Option<(MemberName, u64)> {
    let voter = |(name, member)| voter_with_quorum(member).map(|status| (name, status));
    let mut voters = probe.members.iter().filter_map(voter);
    let first = voters.next()?;
    let leads = |(_, status): &(&MemberName, &EndpointStatus)| status.leader == status.member;
    let picked = if leads(&first) { first } else { voters.find(leads).unwrap_or(first) };
    Some((picked.0.clone(), picked.1.leader))
}

fn voter_with_quorum(member: &MemberProbe) -> Option<&EndpointStatus> {
    let status = member.status.as_ref().filter(|_| member.linearizable_read_ok)?;
    (!status.is_learner).then_some(status)
}

/// Reads what a quorum agrees on. The linearizable read comes first on the same connection, so the
/// member list is at least as new as the revision that the read returned.
async fn read_quorum_view(
    probe: &EtcdProbe,
    clients: &MemberClients,
    name: MemberName,
    leader: u64,
) -> Reading<QuorumView> {
    let (Some(client), Some(status)) = (clients.to(&name), probe.status(&name)) else {
        return Reading::Unknown;
    };
    let (revision, alarms) = futures::join!(client.linearizable_read(), client.alarms());
    // After the read, not beside it: the list must not be older than the revision.
    let members = client.members().await;
    match (revision, alarms, members) {
        (Ok(revision), Ok(alarms), Ok(members)) => Reading::Known(QuorumView {
            queried_member: name,
            cluster_id: status.cluster,
            leader,
            members,
            alarms,
            revision,
        }),
        (Err(_), _, _) | (_, Err(_), _) | (_, _, Err(_)) => Reading::Unknown,
    }
}
