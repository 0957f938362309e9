//! The corridor: something happens, somebody looks, decides, does and tells; and again.
//! Comes in: a client, the mandate, settings. Goes out: clusters that become what they should be.
//! May touch: `ports`, `telemetry`. It chooses nothing itself. Each cluster has passes of its own, one after the
//! other, so that a sick one holds up nobody else. It may be ended at any moment.

mod pass;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::{self, Action};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{Config as Pace, Controller, WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::compose::uid;
use super::doorkeeper::Doorkeeper;
use super::identity::lifetimes::Lifetimes;
use super::keyring::Keyring;
use super::observe::{Shelves, belongs_to};
use super::pacer::Pacer;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::EtcdMember;
use crate::api::names;
use crate::ports::clock;
use crate::ports::mandate::Mandate;
use crate::ports::objects::Objects;
use crate::telemetry::{Metrics, chain};
use pass::{PassError, pass};

/// What comes in so shortly after something else is answered together with it.
const GATHER: Duration = Duration::from_millis(30);
/// So many clusters are looked at at a time. A leader begins with all of them, and thousands at once would leave no time for
/// probes and the lease; but some may be waited for that do not answer, and they must not hold up the others.
const AT_ONCE: u16 = 48;
/// After a pass that failed as a whole.
const AFTER_FAILURE: Duration = Duration::from_secs(3);
/// How soon the first pass in a namespace is tried again: the rights there are on their way.
const RIGHTS_COME: Duration = Duration::from_millis(200);
/// Rights that have not come after this time do not come by themselves.
const JUST_MADE: SignedDuration = SignedDuration::from_secs(15);

/// Looks after etcd clusters as long as this replica leads. Whoever starts it ends it when the lead is lost.
#[derive(Clone)]
pub(crate) struct Control {
    pub(crate) client: Client,
    pub(crate) mandate: Mandate,
    /// The namespace that is looked after; all of them if there is none.
    pub(crate) namespace: Option<String>,
    /// The image with this very program.
    pub(crate) agent_image: String,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) metrics: Metrics,
}

/// What the passes share.
pub(super) struct Context {
    objects: Objects,
    mandate: Mandate,
    shelves: Shelves,
    keyring: Keyring,
    doorkeeper: Doorkeeper,
    pacer: Pacer,
    recorder: Recorder,
    agent_image: String,
    metrics: Metrics,
    /// Since when they look.
    since: Timestamp,
}

impl Control {
    /// Goes on until it is dropped.
    pub(crate) async fn run(self) {
        let Self { client, mandate, namespace, agent_image, lifetimes, metrics } = self;
        let scope = Scope { client: client.clone(), namespace };
        let (members, member_news) = scope.watched::<EtcdMember>();
        let (pods, pod_news) = scope.watched::<Pod>();
        let (claims, claim_news) = scope.watched::<PersistentVolumeClaim>();
        let (services, service_news) = scope.watched::<Service>();
        let (budgets, budget_news) = scope.watched::<PodDisruptionBudget>();
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let context = Arc::new(Context {
            objects: Objects::new(client.clone(), mandate.clone()),
            mandate,
            shelves: Shelves { members, pods, claims, services, budgets },
            keyring: Keyring::new(lifetimes),
            doorkeeper: Doorkeeper::default(),
            pacer: Pacer::default(),
            recorder: Recorder::new(client, reporter),
            agent_image,
            metrics,
            since: clock::wall(),
        });
        Controller::new(scope.api::<EtcdCluster>(), watcher::Config::default())
            .with_config(Pace::default().debounce(GATHER).concurrency(AT_ONCE))
            .watches_stream(member_news, |it| belongs_to(&it))
            .watches_stream(pod_news, |it| belongs_to(&it))
            .watches_stream(claim_news, |it| belongs_to(&it))
            .watches_stream(service_news, |it| belongs_to(&it))
            .watches_stream(budget_news, |it| belongs_to(&it))
            .run(pass, failed, context.clone())
            .for_each(async |passed| {
                // What belonged to a cluster asks for it after it is gone.
                if let Err(controller::Error::ObjectNotFound(cluster)) = passed {
                    let namespace = cluster.namespace.unwrap_or_default();
                    context.metrics.etcd_clusters.gone(&namespace, &cluster.name);
                }
            })
            .await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the controller hands it over")]
fn failed(cluster: Arc<EtcdCluster>, error: &PassError, _: Arc<Context>) -> Action {
    let meta = &cluster.metadata;
    let made = meta.creation_timestamp.as_ref().map(|it| it.0);
    if error.is_refused() && made.is_some_and(|at| clock::wall().duration_since(at) < JUST_MADE) {
        return Action::requeue(RIGHTS_COME);
    }
    tracing::warn!(
        namespace = meta.namespace,
        cluster = meta.name,
        error = chain(error),
        "a pass over an etcd cluster failed; it is repeated"
    );
    Action::requeue(AFTER_FAILURE)
}

/// What is watched.
struct Scope {
    client: Client,
    namespace: Option<String>,
}

impl Scope {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = self.client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }

    /// What belongs to clusters of ours: a shelf that fills while its news are read.
    fn watched<K>(
        &self,
    ) -> (Store<K>, impl Stream<Item = Result<K, watcher::Error>> + Send + use<K>)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let labelled = watcher::Config::default().labels(names::CLUSTER_LABEL);
        let (store, writer) = reflector::store();
        let news = watcher(self.api::<K>(), labelled)
            .default_backoff()
            // Who wrote which field is of no use here, and is most of many objects.
            .modify(|it| it.meta_mut().managed_fields = None)
            .reflect(writer)
            .touched_objects();
        (store, news)
    }
}

impl Context {
    /// Forgets a cluster that is gone.
    fn forget(&self, cluster: &EtcdCluster) {
        self.keyring.forget(&uid(cluster));
        self.doorkeeper.forget(&uid(cluster));
        self.pacer.forget(&uid(cluster));
        let namespace = cluster.namespace().unwrap_or_default();
        self.metrics.etcd_clusters.gone(&namespace, &cluster.name_any());
    }

    /// Whether the watches have told everything once.
    fn has_heard_all(&self) -> bool {
        let Shelves { members, pods, claims, services, budgets } = &self.shelves;
        members.wait_until_ready().now_or_never().is_some()
            && pods.wait_until_ready().now_or_never().is_some()
            && claims.wait_until_ready().now_or_never().is_some()
            && services.wait_until_ready().now_or_never().is_some()
            && budgets.wait_until_ready().now_or_never().is_some()
    }
}
