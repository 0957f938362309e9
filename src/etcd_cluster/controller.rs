//! Watches EtcdClusters and the objects that belong to them, and reconciles each cluster on its
//! own, so that a failing cluster holds up no other. It may be aborted at any time: nothing depends
//! on its end.

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
use kube::runtime::{Config, Controller, WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::observe::auth::AuthObserver;
use super::observe::peer_rtt::PeerRttObserver;
use super::observe::{Stores, owning_cluster};
use super::reconcile::{ReconcileError, ValidationCache, reconcile};
use super::requeue::{ERROR_DELAY, RBAC_RETRY_DELAY};
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

/// Events within this time lead to one reconciliation.
const DEBOUNCE: Duration = Duration::from_millis(30);
/// A new leader reconciles all clusters; thousands at once would leave no time for probes and the
/// lease. The bound is high because reconciliations wait for the timeouts of unreachable members.
const MAX_CONCURRENT_RECONCILES: u16 = 48;
/// Permissions in the namespace of a new cluster that are missing after this time do not come.
const RBAC_GRACE: SignedDuration = SignedDuration::from_secs(15);

/// Reconciles EtcdClusters while this replica leads. The caller aborts it when the lease is lost.
#[derive(Clone)]
pub(crate) struct EtcdClusterController {
    pub(crate) client: Client,
    pub(crate) leader_guard: LeaderGuard,
    /// The only namespace to watch; all namespaces if unset.
    pub(crate) namespace: Option<String>,
    /// The image of this program, for the agent in the pods of members.
    pub(crate) agent_image: String,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) metrics: Metrics,
}

/// What all reconciliations share.
pub(super) struct Context {
    pub(super) objects: Objects,
    pub(super) leader_guard: LeaderGuard,
    pub(super) stores: Stores,
    pub(super) validation: ValidationCache,
    pub(super) certificates: CertificateManager,
    pub(super) auth: AuthObserver,
    pub(super) peer_rtt: PeerRttObserver,
    pub(super) recorder: Recorder,
    pub(super) agent_image: String,
    pub(super) metrics: Metrics,
    /// The start of this term: states that began earlier have an unknown duration.
    pub(super) observing_since: Timestamp,
}

impl EtcdClusterController {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let Self { client, leader_guard, namespace, agent_image, lifetimes, metrics } = self;
        let scope = Scope { client: client.clone(), namespace };
        let (members, member_events) = scope.watched::<EtcdMember>();
        let (pods, pod_events) = scope.watched::<Pod>();
        let (pvcs, pvc_events) = scope.watched::<PersistentVolumeClaim>();
        let (services, service_events) = scope.watched::<Service>();
        let (pdbs, pdb_events) = scope.watched::<PodDisruptionBudget>();
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let context = Arc::new(Context {
            objects: Objects::new(client.clone(), leader_guard.clone()),
            leader_guard,
            stores: Stores { members, pods, pvcs, services, pdbs },
            validation: ValidationCache::default(),
            certificates: CertificateManager::new(lifetimes),
            auth: AuthObserver::default(),
            peer_rtt: PeerRttObserver::default(),
            recorder: Recorder::new(client, reporter),
            agent_image,
            metrics,
            observing_since: clock::wall(),
        });
        Controller::new(scope.api::<EtcdCluster>(), watcher::Config::default())
            .with_config(
                Config::default().debounce(DEBOUNCE).concurrency(MAX_CONCURRENT_RECONCILES),
            )
            .watches_stream(member_events, |object| owning_cluster(&object))
            .watches_stream(pod_events, |object| owning_cluster(&object))
            .watches_stream(pvc_events, |object| owning_cluster(&object))
            .watches_stream(service_events, |object| owning_cluster(&object))
            .watches_stream(pdb_events, |object| owning_cluster(&object))
            .run(reconcile, error_policy, context.clone())
            .for_each(async |result| {
                // Objects that outlive their cluster trigger a reconciliation of it.
                if let Err(controller::Error::ObjectNotFound(cluster)) = result {
                    let namespace = cluster.namespace.unwrap_or_default();
                    context.metrics.etcd_clusters.remove(&namespace, &cluster.name);
                }
            })
            .await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that Controller::run requires")]
fn error_policy(cluster: Arc<EtcdCluster>, error: &ReconcileError, _: Arc<Context>) -> Action {
    let meta = &cluster.metadata;
    let created = meta.creation_timestamp.as_ref().map(|time| time.0);
    let is_new = created.is_some_and(|at| clock::wall().duration_since(at) < RBAC_GRACE);
    if error.is_forbidden() && is_new {
        return Action::requeue(RBAC_RETRY_DELAY);
    }
    tracing::warn!(
        namespace = meta.namespace,
        cluster = meta.name,
        error = error_chain(error),
        "reconciliation failed; retrying"
    );
    Action::requeue(ERROR_DELAY)
}

/// The namespaces that are watched.
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

    /// Objects with the cluster label: a store that fills while its events are polled.
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
        let config = watcher::Config::default().labels(names::CLUSTER_LABEL);
        let (store, writer) = reflector::store();
        let events = watcher(self.api::<K>(), config)
            .default_backoff()
            // Managed fields are not used here, and are most of the bytes of many objects.
            .modify(|object| object.meta_mut().managed_fields = None)
            .reflect(writer)
            .touched_objects();
        (store, events)
    }
}

impl Context {
    /// Evicts a deleted cluster from all caches.
    pub(super) fn evict(&self, cluster: &EtcdCluster) {
        let uid = uid(cluster);
        self.validation.evict(&uid);
        self.certificates.evict(&uid);
        self.auth.evict(&uid);
        self.peer_rtt.evict(&uid);
        let namespace = cluster.namespace().unwrap_or_default();
        self.metrics.etcd_clusters.remove(&namespace, &cluster.name_any());
    }

    /// Whether all stores have received their initial list.
    pub(super) fn stores_ready(&self) -> bool {
        let Stores { members, pods, pvcs, services, pdbs } = &self.stores;
        members.wait_until_ready().now_or_never().is_some()
            && pods.wait_until_ready().now_or_never().is_some()
            && pvcs.wait_until_ready().now_or_never().is_some()
            && services.wait_until_ready().now_or_never().is_some()
            && pdbs.wait_until_ready().now_or_never().is_some()
    }
}
