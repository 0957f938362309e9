//! The corridor: something happens, somebody looks, decides, does and tells; and again.
//! Comes in: a client, the mandate, settings. Goes out: clusters that become what they should be.
//! May touch: `clients`, `telemetry`. It chooses nothing itself. Each cluster has passes of its own, one after the
//! other, so that a sick one holds up nobody else. It may be ended at any moment.

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

use super::observe::auth::AuthObserver;
use super::observe::peer_rtt::PeerRttObserver;
use super::observe::{Stores, owning_cluster};
use super::reconcile::{ReconcileError, reconcile};
use super::state::build::uid;
use super::tls::lifetimes::Lifetimes;
use super::tls::manager::CertificateManager;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::EtcdMember;
use crate::api::names;
use crate::clients::clock;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::objects::Objects;
use crate::telemetry::{Metrics, error_chain};

/// What comes in so shortly after something else is answered together with it.
const DEBOUNCE: Duration = Duration::from_millis(30);
/// So many clusters are looked at at a time. A leader begins with all of them, and thousands at once would leave no time for
/// probes and the lease; but some may be waited for that do not answer, and they must not hold up the others.
const MAX_CONCURRENT_RECONCILES: u16 = 48;
/// After a pass that failed as a whole.
const ERROR_REQUEUE_DELAY: Duration = Duration::from_secs(3);
/// How soon the first pass in a namespace is tried again: the rights there are on their way.
const RBAC_RETRY_DELAY: Duration = Duration::from_millis(200);
/// Rights that have not come after this time do not come by themselves.
const RBAC_GRACE: SignedDuration = SignedDuration::from_secs(15);

/// Looks after etcd clusters as long as this replica leads. Whoever starts it ends it when the lead is lost.
#[derive(Clone)]
pub(crate) struct EtcdClusterController {
    pub(crate) client: Client,
    pub(crate) mandate: LeaderGuard,
    /// The namespace that is looked after; all of them if there is none.
    pub(crate) namespace: Option<String>,
    /// The image with this very program.
    pub(crate) agent_image: String,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) metrics: Metrics,
}

/// What the passes share.
pub(super) struct Context {
    pub(super) objects: Objects,
    pub(super) mandate: LeaderGuard,
    pub(super) stores: Stores,
    pub(super) keyring: CertificateManager,
    pub(super) auth: AuthObserver,
    pub(super) peer_rtt: PeerRttObserver,
    pub(super) recorder: Recorder,
    pub(super) agent_image: String,
    pub(super) metrics: Metrics,
    /// Since when they look.
    pub(super) since: Timestamp,
}

impl EtcdClusterController {
    /// Goes on until it is dropped.
    pub(crate) async fn run(self) {
        let Self { client, mandate, namespace, agent_image, lifetimes, metrics } = self;
        let scope = Scope { client: client.clone(), namespace };
        let (members, member_events) = scope.watched::<EtcdMember>();
        let (pods, pod_events) = scope.watched::<Pod>();
        let (claims, claim_events) = scope.watched::<PersistentVolumeClaim>();
        let (services, service_events) = scope.watched::<Service>();
        let (budgets, budget_events) = scope.watched::<PodDisruptionBudget>();
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let context = Arc::new(Context {
            objects: Objects::new(client.clone(), mandate.clone()),
            mandate,
            stores: Stores { members, pods, claims, services, budgets },
            keyring: CertificateManager::new(lifetimes),
            auth: AuthObserver::default(),
            peer_rtt: PeerRttObserver::default(),
            recorder: Recorder::new(client, reporter),
            agent_image,
            metrics,
            since: clock::wall(),
        });
        Controller::new(scope.api::<EtcdCluster>(), watcher::Config::default())
            .with_config(Pace::default().debounce(DEBOUNCE).concurrency(MAX_CONCURRENT_RECONCILES))
            .watches_stream(member_events, |it| owning_cluster(&it))
            .watches_stream(pod_events, |it| owning_cluster(&it))
            .watches_stream(claim_events, |it| owning_cluster(&it))
            .watches_stream(service_events, |it| owning_cluster(&it))
            .watches_stream(budget_events, |it| owning_cluster(&it))
            .run(reconcile, error_policy, context.clone())
            .for_each(async |passed| {
                // What belonged to a cluster asks for it after it is gone.
                if let Err(controller::Error::ObjectNotFound(cluster)) = passed {
                    let namespace = cluster.namespace.unwrap_or_default();
                    context.metrics.etcd_clusters.remove(&namespace, &cluster.name);
                }
            })
            .await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the controller hands it over")]
fn error_policy(cluster: Arc<EtcdCluster>, error: &ReconcileError, _: Arc<Context>) -> Action {
    let meta = &cluster.metadata;
    let made = meta.creation_timestamp.as_ref().map(|it| it.0);
    if error.is_refused() && made.is_some_and(|at| clock::wall().duration_since(at) < RBAC_GRACE) {
        return Action::requeue(RBAC_RETRY_DELAY);
    }
    tracing::warn!(
        namespace = meta.namespace,
        cluster = meta.name,
        error = error_chain(error),
        "a pass over an etcd cluster failed; it is repeated"
    );
    Action::requeue(ERROR_REQUEUE_DELAY)
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
        let events = watcher(self.api::<K>(), labelled)
            .default_backoff()
            // Who wrote which field is of no use here, and is most of many objects.
            .modify(|it| it.meta_mut().managed_fields = None)
            .reflect(writer)
            .touched_objects();
        (store, events)
    }
}

impl Context {
    /// Forgets a cluster that is gone.
    pub(super) fn evict(&self, cluster: &EtcdCluster) {
        self.keyring.evict(&uid(cluster));
        self.auth.forget(&uid(cluster));
        self.peer_rtt.forget(&uid(cluster));
        let namespace = cluster.namespace().unwrap_or_default();
        self.metrics.etcd_clusters.remove(&namespace, &cluster.name_any());
    }

    /// Whether the watches have told everything once.
    pub(super) fn stores_ready(&self) -> bool {
        let Stores { members, pods, claims, services, budgets } = &self.stores;
        members.wait_until_ready().now_or_never().is_some()
            && pods.wait_until_ready().now_or_never().is_some()
            && claims.wait_until_ready().now_or_never().is_some()
            && services.wait_until_ready().now_or_never().is_some()
            && budgets.wait_until_ready().now_or_never().is_some()
    }
}
