//! Looks: at the objects of a cluster, from what watches told or from the API server itself, and at etcd.
//! Comes in: which cluster. Goes out: `Stock`, `Heard`. May touch: `ports`. It chooses nothing.
//! What watches told may be old, so it is good for seeing that nothing is to be done, and for nothing
//! else: before anything is done, the API server is asked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};

use super::compose::pod::{has_ended, is_ending};
use super::doors::Scheme;
use super::doors::found::way_to;
use super::heard::{Council, Heard, Voice};
use super::seen::upkeep::Alarm as Kind;
use super::seen::{Name, Reading};
use super::stock::{Stock, name_of};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::EtcdMember;
use crate::api::etcd_says::Data;
use crate::api::names;
use crate::ports::call::CallError;
use crate::ports::etcd::{Credentials, EtcdError, Line, Place};
use crate::ports::objects::Objects;

/// How long a member may take for an answer. One that takes longer is not well.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// The most of a reason that is kept.
const MOST_OF_A_REASON: usize = 160;

/// What watches told.
#[derive(Clone)]
pub(super) struct Shelves {
    pub(super) members: Store<EtcdMember>,
    pub(super) pods: Store<Pod>,
    pub(super) claims: Store<PersistentVolumeClaim>,
    pub(super) services: Store<Service>,
    pub(super) budgets: Store<PodDisruptionBudget>,
}

impl Shelves {
    /// The objects of a cluster as watches told of them.
    pub(super) fn stock(&self, cluster: &EtcdCluster) -> Stock {
        Stock {
            members: of(&self.members, cluster),
            pods: of(&self.pods, cluster),
            claims: of(&self.claims, cluster),
            services: of(&self.services, cluster),
            budgets: of(&self.budgets, cluster),
            cluster: cluster.clone(),
            predecessors: Vec::new(),
        }
        .without_predecessors()
    }
}

fn of<K>(store: &Store<K>, cluster: &EtcdCluster) -> Vec<K>
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
pub(super) fn belongs_to<K>(object: &K) -> Option<ObjectRef<EtcdCluster>>
where
    K: kube::Resource,
{
    let cluster = object.labels().get(names::CLUSTER_LABEL)?;
    Some(ObjectRef::new(cluster).within(&object.namespace()?))
}

/// The objects of a cluster as the API server has them; none if the cluster itself is gone.
pub(super) async fn stock(
    objects: &Objects,
    cluster: &EtcdCluster,
) -> Result<Option<Stock>, CallError> {
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
        Stock { cluster, members, pods, claims, services, budgets, predecessors }
            .without_predecessors()
    }))
}

/// The lines to the members of a cluster.
pub(super) struct Lines(Vec<(Name, Line)>);

impl Lines {
    /// The line to a member.
    pub(super) fn to(&self, name: &Name) -> Option<&Line> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, line)| line)
    }
}

/// Asks every member that has an address.
pub(super) async fn ask(
    stock: &Stock,
    credentials: Option<&Credentials>,
    now: Timestamp,
) -> (Heard, Lines) {
    let places = stock.pods.iter().filter_map(|pod| place(stock, pod, now));
    // A line in the clear has none.
    let shown = |place: &Place| credentials.filter(|_| !place.is_open);
    let asked = join_all(places.map(|(name, place)| {
        let credentials = shown(&place);
        one(name, place, credentials)
    }))
    .await;
    let mut heard = Heard::nothing();
    let mut lines = Lines(Vec::new());
    for (name, voice, line) in asked {
        heard.voices.insert(name.clone(), voice);
        lines.0.extend(line.map(|line| (name, line)));
    }
    heard.council = match spokesman(&heard) {
        Some((name, revision)) => council(&heard, &lines, name, revision).await,
        None => Reading::Unknown,
    };
    heard.copies = copies(&heard, &lines).await;
    (heard, lines)
}

/// Which data each member has, if etcd says that they differ. All are asked for the same revision, the last that each of them has;
/// and what they have can be compared only if they have forgotten the same. Of the others nothing is known.
async fn copies(heard: &Heard, lines: &Lines) -> BTreeMap<Name, u64> {
    let Reading::Known(council) = &heard.council else { return BTreeMap::new() };
    if !council.alarms.iter().any(|it| it.word == Kind::Corrupt.word()) {
        return BTreeMap::new();
    }
    // Who only listens may be far behind.
    let standings = heard.voices.values().filter_map(|it| it.standing.as_ref());
    let voters = standings.filter(|it| !it.is_learner);
    let Some(revision) = voters.map(|it| it.revision).min() else { return BTreeMap::new() };
    let asked = lines.0.iter().filter(|(name, _)| heard.standing(name).is_some());
    let told = join_all(asked.map(async |(name, line)| (name, line.data(revision).await)));
    let known = told.await.into_iter().filter_map(|(name, told)| Some((name.clone(), told.ok()?)));
    let known: Vec<(Name, Data)> = known.collect();
    let alike = |compacted: i64| known.iter().filter(|(_, it)| it.compacted == compacted).count();
    let most = known.iter().map(|(_, it)| it.compacted).max_by_key(|it| (alike(*it), *it));
    let comparable = known.iter().filter(|(_, it)| Some(it.compacted) == most);
    comparable.map(|(name, it)| (name.clone(), it.hash.into())).collect()
}

/// Where a member can be asked; nowhere if its pod has no address yet, or nobody is there any more.
pub(super) fn place(stock: &Stock, pod: &Pod, now: Timestamp) -> Option<(Name, Place)> {
    if has_ended(pod) || is_ending(pod, now) {
        return None;
    }
    let address: IpAddr = pod.status.as_ref()?.pod_ip.as_deref()?.parse().ok()?;
    let name = name_of(pod);
    let namespace = stock.cluster.namespace().unwrap_or_default();
    let host = names::member_host(&name.0, &namespace);
    Some((
        name,
        Place {
            address,
            port: names::ETCD_CLIENT_PORT,
            host,
            is_open: way_to(pod) == Scheme::Http,
        },
    ))
}

async fn one(
    name: Name,
    place: Place,
    credentials: Option<&Credentials>,
) -> (Name, Voice, Option<Line>) {
    let line = match Line::open(&place, credentials, ANSWER_LIMIT).await {
        Ok(line) => line,
        Err(error) => {
            return (name, Voice { silence: Some(reason(&error)), ..Voice::default() }, None);
        }
    };
    let (standing, agrees) = futures::join!(line.status(), line.agrees());
    let silence = standing.as_ref().err().or(agrees.as_ref().err()).map(reason);
    let voice = Voice { standing: standing.ok(), agrees: agrees.is_ok(), silence };
    (name, voice, Some(line))
}

fn reason(error: &EtcdError) -> String {
    let words = error.words().map_or_else(|| error.to_string(), ToOwned::to_owned);
    words.chars().take(MOST_OF_A_REASON).collect()
}

/// Who is asked for everybody: one that agrees with a quorum, the leader if it is one of them.
fn spokesman(heard: &Heard) -> Option<(Name, u64)> {
    let mut agreeing =
        heard.voices.iter().filter(|(_, it)| it.agrees).filter_map(|(name, voice)| {
            let standing = voice.standing.as_ref()?;
            (!standing.is_learner).then_some((name, standing))
        });
    let first = agreeing.next()?;
    let leads = |it: &(&Name, &crate::api::etcd_says::Standing)| it.1.leader == it.1.member;
    let chosen = if leads(&first) { first } else { agreeing.find(leads).unwrap_or(first) };
    Some((chosen.0.clone(), chosen.1.leader))
}

/// What they agree on. The spokesman has read with a quorum just before on the same line, so its list is at
/// least as new as that.
async fn council(heard: &Heard, lines: &Lines, name: Name, leader: u64) -> Reading<Council> {
    let (Some(line), Some(standing)) = (lines.to(&name), heard.standing(&name)) else {
        return Reading::Unknown;
    };
    let (agreed, alarms) = futures::join!(line.agrees(), line.alarms());
    // After the read, not beside it: the list must not be older than what was agreed on.
    let listed = line.members().await;
    match (agreed, alarms, listed) {
        (Ok(revision), Ok(alarms), Ok(list)) => Reading::Known(Council {
            spokesman: name,
            cluster: standing.cluster,
            leader,
            list,
            alarms,
            revision,
        }),
        (Err(_), _, _) | (_, Err(_), _) | (_, _, Err(_)) => Reading::Unknown,
    }
}
