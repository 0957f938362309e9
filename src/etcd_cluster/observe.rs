//! Looks: at the objects of a cluster, from what watches told or from the API server itself, and at etcd.
//! Comes in: which cluster. Goes out: `ClusterObjects`, `EtcdProbe`. May touch: `clients`. It chooses nothing.
//! What watches told may be old, so it is good for seeing that nothing is to be done, and for nothing
//! else: before anything is done, the API server is asked.

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
use super::state::defragmentation::Alarm as Kind;
use super::state::pod::{has_ended, is_ending};
use super::state::{MemberName, Reading};
use super::transport::Scheme;
use super::transport::observed::operator_scheme;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::EtcdMember;
use crate::api::etcd_types::DataHash;
use crate::api::names;
use crate::clients::error::ApiError;
use crate::clients::etcd::{Credentials, EtcdError, MemberClient, MemberEndpoint};
use crate::clients::objects::Objects;

/// How long a member may take for an answer. One that takes longer is not well.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The most of a reason that is kept.
const MAX_ERROR_LENGTH: usize = 160;

/// What watches told.
#[derive(Clone)]
pub(super) struct Stores {
    pub(super) members: Store<EtcdMember>,
    pub(super) pods: Store<Pod>,
    pub(super) claims: Store<PersistentVolumeClaim>,
    pub(super) services: Store<Service>,
    pub(super) budgets: Store<PodDisruptionBudget>,
}

impl Stores {
    /// The objects of a cluster as watches told of them.
    pub(super) fn objects(&self, cluster: &EtcdCluster) -> ClusterObjects {
        ClusterObjects {
            members: from_store(&self.members, cluster),
            pods: from_store(&self.pods, cluster),
            pvcs: from_store(&self.claims, cluster),
            services: from_store(&self.services, cluster),
            pdbs: from_store(&self.budgets, cluster),
            cluster: cluster.clone(),
            previous_cluster_objects: Vec::new(),
        }
        .without_predecessors()
    }
}

fn from_store<K>(store: &Store<K>, cluster: &EtcdCluster) -> Vec<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let (name, namespace) = (cluster.name_any(), cluster.namespace());
    let belongs = |it: &K| {
        it.meta().namespace == namespace && it.labels().get(names::CLUSTER_LABEL) == Some(&name)
    };
    store.state().iter().filter(|it| belongs(it)).map(|it| K::clone(it)).collect()
}

/// The cluster that an object says it belongs to.
pub(super) fn owning_cluster<K>(object: &K) -> Option<ObjectRef<EtcdCluster>>
where
    K: kube::Resource,
{
    let cluster = object.labels().get(names::CLUSTER_LABEL)?;
    Some(ObjectRef::new(cluster).within(&object.namespace()?))
}

/// The objects of a cluster as the API server has them; none if the cluster itself is gone.
pub(super) async fn read_objects(
    objects: &Objects,
    cluster: &EtcdCluster,
) -> Result<Option<ClusterObjects>, ApiError> {
    let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    let labels = format!("{}={name}", names::CLUSTER_LABEL);
    let (found, members, pods, claims, services, budgets) = futures::try_join!(
        objects.get::<EtcdCluster>(&namespace, &name),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
        objects.list(&namespace, &labels),
    )?;
    let same = found.filter(|it| it.metadata.uid == cluster.metadata.uid);
    let predecessors = Vec::new();
    Ok(same.map(|cluster| {
        ClusterObjects {
            cluster,
            members,
            pods,
            pvcs: claims,
            services,
            pdbs: budgets,
            previous_cluster_objects: predecessors,
        }
        .without_predecessors()
    }))
}

/// The lines to the members of a cluster.
pub(super) struct MemberClients(Vec<(MemberName, MemberClient)>);

impl MemberClients {
    /// The line to a member.
    pub(super) fn to(&self, name: &MemberName) -> Option<&MemberClient> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, line)| line)
    }
}

/// Asks every member that has an address.
pub(super) async fn probe_etcd(
    stock: &ClusterObjects,
    credentials: Option<&Credentials>,
    now: Timestamp,
) -> (EtcdProbe, MemberClients) {
    let places = stock.pods.iter().filter_map(|pod| member_endpoint(stock, pod, now));
    // A line in the clear has none.
    let shown = |place: &MemberEndpoint| credentials.filter(|_| !place.plaintext);
    let asked = join_all(places.map(|(name, place)| {
        let credentials = shown(&place);
        probe_member(name, place, credentials)
    }))
    .await;
    let mut heard = EtcdProbe::none();
    let mut lines = MemberClients(Vec::new());
    for (name, voice, line) in asked {
        heard.members.insert(name.clone(), voice);
        lines.0.extend(line.map(|line| (name, line)));
    }
    heard.quorum = match pick_queried_member(&heard) {
        Some((name, revision)) => read_quorum_view(&heard, &lines, name, revision).await,
        None => Reading::Unknown,
    };
    heard.data_hashes = read_data_hashes(&heard, &lines).await;
    (heard, lines)
}

/// Which data each member has, if etcd says that they differ. All are asked for the same revision, the last that each of them has;
/// and what they have can be compared only if they have forgotten the same. Of the others nothing is known.
async fn read_data_hashes(heard: &EtcdProbe, lines: &MemberClients) -> BTreeMap<MemberName, u64> {
    let Reading::Known(council) = &heard.quorum else { return BTreeMap::new() };
    if !council.alarms.iter().any(|it| it.alarm_type == Kind::Corrupt.name()) {
        return BTreeMap::new();
    }
    // Who only listens may be far behind.
    let standings = heard.members.values().filter_map(|it| it.status.as_ref());
    let voters = standings.filter(|it| !it.is_learner);
    let Some(revision) = voters.map(|it| it.revision).min() else { return BTreeMap::new() };
    let asked = lines.0.iter().filter(|(name, _)| heard.status(name).is_some());
    let told = join_all(asked.map(async |(name, line)| (name, line.hash_kv(revision).await)));
    let known = told.await.into_iter().filter_map(|(name, told)| Some((name.clone(), told.ok()?)));
    let known: Vec<(MemberName, DataHash)> = known.collect();
    let alike = |compacted: i64| known.iter().filter(|(_, it)| it.compacted == compacted).count();
    let most = known.iter().map(|(_, it)| it.compacted).max_by_key(|it| (alike(*it), *it));
    let comparable = known.iter().filter(|(_, it)| Some(it.compacted) == most);
    comparable.map(|(name, it)| (name.clone(), it.hash.into())).collect()
}

/// Where a member can be asked; nowhere if its pod has no address yet, or nobody is there any more.
pub(super) fn member_endpoint(
    stock: &ClusterObjects,
    pod: &Pod,
    now: Timestamp,
) -> Option<(MemberName, MemberEndpoint)> {
    if has_ended(pod) || is_ending(pod, now) {
        return None;
    }
    let address: IpAddr = pod.status.as_ref()?.pod_ip.as_deref()?.parse().ok()?;
    let name = name_of(pod);
    let namespace = stock.cluster.namespace().unwrap_or_default();
    let host = names::member_host(&name.0, &namespace);
    Some((
        name,
        MemberEndpoint {
            address,
            port: names::ETCD_CLIENT_PORT,
            host,
            plaintext: operator_scheme(pod) == Scheme::Http,
        },
    ))
}

async fn probe_member(
    name: MemberName,
    place: MemberEndpoint,
    credentials: Option<&Credentials>,
) -> (MemberName, MemberProbe, Option<MemberClient>) {
    let line = match MemberClient::open(&place, credentials, PROBE_TIMEOUT).await {
        Ok(line) => line,
        Err(error) => {
            return (
                name,
                MemberProbe { error: Some(reason(&error)), ..MemberProbe::default() },
                None,
            );
        }
    };
    let (standing, agrees) = futures::join!(line.status(), line.linearizable_read());
    let silence = standing.as_ref().err().or(agrees.as_ref().err()).map(reason);
    let voice =
        MemberProbe { status: standing.ok(), linearizable_read_ok: agrees.is_ok(), error: silence };
    (name, voice, Some(line))
}

fn reason(error: &EtcdError) -> String {
    let words = error.server_message().map_or_else(|| error.to_string(), ToOwned::to_owned);
    words.chars().take(MAX_ERROR_LENGTH).collect()
}

/// Who is asked for everybody: one that agrees with a quorum, the leader if it is one of them.
fn pick_queried_member(heard: &EtcdProbe) -> Option<(MemberName, u64)> {
    let mut agreeing = heard.members.iter().filter(|(_, it)| it.linearizable_read_ok).filter_map(
        |(name, voice)| {
            let standing = voice.status.as_ref()?;
            (!standing.is_learner).then_some((name, standing))
        },
    );
    let first = agreeing.next()?;
    let leads =
        |it: &(&MemberName, &crate::api::etcd_types::EndpointStatus)| it.1.leader == it.1.member;
    let chosen = if leads(&first) { first } else { agreeing.find(leads).unwrap_or(first) };
    Some((chosen.0.clone(), chosen.1.leader))
}

/// What they agree on. The spokesman has read with a quorum just before on the same line, so its list is at
/// least as new as that.
async fn read_quorum_view(
    heard: &EtcdProbe,
    lines: &MemberClients,
    name: MemberName,
    leader: u64,
) -> Reading<QuorumView> {
    let (Some(line), Some(standing)) = (lines.to(&name), heard.status(&name)) else {
        return Reading::Unknown;
    };
    let (agreed, alarms) = futures::join!(line.linearizable_read(), line.alarms());
    // After the read, not beside it: the list must not be older than what was agreed on.
    let listed = line.members().await;
    match (agreed, alarms, listed) {
        (Ok(revision), Ok(alarms), Ok(list)) => Reading::Known(QuorumView {
            queried_member: name,
            cluster_id: standing.cluster,
            leader,
            members: list,
            alarms,
            revision,
        }),
        (Err(_), _, _) | (_, Err(_), _) | (_, _, Err(_)) => Reading::Unknown,
    }
}
