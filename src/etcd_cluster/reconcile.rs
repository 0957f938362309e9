//! Reconciles one cluster: observe from the cache, decide, and if anything is to be done, observe
//! live, decide again and execute.
//!
//! Guarantees: no write follows from cached objects; at most one disruptive step per
//! reconciliation; the status is reported whatever happened.

mod certificate_scope;
mod observation;
mod validated;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tokio::time::Instant;

use super::act::{ActError, Executor};
use super::controller::Context;
use super::drift::{Drift, detect};
use super::observe;
use super::observe::objects::ClusterObjects;
use super::plan::names::CrashPoint;
use super::plan::{Plan, Step};
use super::render::Blueprint;
use super::report;
use super::requeue::{NOT_GRANTED_INTERVAL, Progress, STORES_DELAY};
use super::state::build::record;
use super::state::{MemberName, ObservedState};
use super::status::{self, StatusInput};
use super::tls::manager::{CertificateManagerError, CertificateOutcome};
use super::tls::report::CertificateReport;
use super::tls::secrets_plan::CertificateError;
use super::transport::observed::Transport;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::names;
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::objects::ObjectError;
use crate::clients::{clock, fault_injection};
use crate::telemetry::error_chain;
use observation::Observation;
pub(super) use validated::ValidationCache;

/// Why a reconciliation failed as a whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The objects of the cluster could not be read.
    #[error(transparent)]
    Observe(ApiError),
    /// The status could not be written.
    #[error(transparent)]
    UpdateStatus(ObjectError),
}

impl ReconcileError {
    /// Whether the operator lacks a permission.
    pub(super) fn is_forbidden(&self) -> bool {
        match self {
            Self::Observe(error) => error.class() == ErrorClass::Rejected,
            Self::UpdateStatus(error) => error.class() == ErrorClass::Rejected,
        }
    }
}

/// Reconciles one cluster, as the watch has it.
pub(super) async fn reconcile(
    cluster: Arc<EtcdCluster>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError> {
    if cluster.metadata.deletion_timestamp.is_some() {
        context.evict(&cluster);
        return Ok(Action::await_change());
    }
    if status::namespace_not_granted(&cluster) && !has_permissions(&context, &cluster).await {
        return Ok(Action::requeue(NOT_GRANTED_INTERVAL));
    }
    if !context.stores_ready() {
        return Ok(Action::requeue(STORES_DELAY));
    }
    let started = Instant::now();
    // The future is large, and many clusters may be reconciled at once.
    let action = Box::pin(reconcile_cluster(&context, &cluster)).await;
    context.metrics.etcd_clusters.reconciled(started.elapsed());
    action
}

async fn reconcile_cluster(
    context: &Context,
    cluster: &EtcdCluster,
) -> Result<Action, ReconcileError> {
    let validated = match context.validation.validate(cluster) {
        Ok(validated) => validated,
        Err(errors) => return report::invalid_spec(context, cluster, &errors).await,
    };
    let blueprint = validated.blueprint(context);
    let cached = Reconciler { context, blueprint: &blueprint, now: clock::wall() };
    if let Some(observation) = Box::pin(cached.observe_cached(cluster)).await {
        let certificates = context.certificates.report(blueprint.uid);
        let published = cached.publish_observation(observation, Outcome::idle(), certificates);
        return Box::pin(published).await;
    }

    let objects = Box::pin(observe::read_objects(&context.objects, cluster)).await;
    let Some(objects) = objects.map_err(ReconcileError::Observe)? else {
        context.evict(cluster);
        return Ok(Action::await_change());
    };
    let validated = match context.validation.validate(&objects.cluster) {
        Ok(validated) => validated,
        Err(errors) => return report::invalid_spec(context, &objects.cluster, &errors).await,
    };
    let blueprint = validated.blueprint(context);
    let live = Reconciler { context, blueprint: &blueprint, now: clock::wall() };
    Box::pin(live.reconcile_live(objects)).await
}

/// Whether the operator has permissions in the namespace although the condition says otherwise. The
/// status of this reconciliation then replaces that condition.
async fn has_permissions(context: &Context, cluster: &EtcdCluster) -> bool {
    let namespace = cluster.namespace().unwrap_or_default();
    let name = names::ca_secret(&cluster.name_any());
    context.objects.get::<Secret>(&namespace, &name).await.is_ok()
}

/// The reconciliation of one cluster.
pub(super) struct Reconciler<'a> {
    pub(super) context: &'a Context,
    /// What the spec asks for.
    pub(super) blueprint: &'a Blueprint<'a>,
    pub(super) now: Timestamp,
}

/// What became of a plan.
pub(super) struct Outcome {
    /// The first error.
    pub(super) result: Result<(), ActError>,
    /// The members whose pods the API server rejected, with its messages.
    pub(super) rejected_pods: BTreeMap<MemberName, String>,
    /// The objects, with the writes to the status of the cluster.
    pub(super) objects: Option<ClusterObjects>,
}

impl Outcome {
    /// Nothing was to be done.
    const fn idle() -> Self {
        Self { result: Ok(()), rejected_pods: BTreeMap::new(), objects: None }
    }
}

/// What became of the Secrets.
struct CertificateResult {
    /// Why no certificate can be issued or used.
    error: Option<CertificateError>,
    /// A failed call. It holds up no member that has a certificate.
    act_error: Option<ActError>,
    /// Whether the client Secret was written only now, or could not be.
    is_client_secret_late: bool,
}

impl Reconciler<'_> {
    /// Observes from the cache; `None` if anything is to be done.
    async fn observe_cached(&self, cluster: &EtcdCluster) -> Option<Observation> {
        let certificates = &self.context.certificates;
        // A cluster that was paused before its bootstrap has no Secrets.
        let has_secrets = !(self.blueprint.spec.paused && never_bootstrapped(cluster));
        if has_secrets && certificates.credentials(self.blueprint.uid, self.now).is_none() {
            return None;
        }
        let objects = self.context.stores.objects(cluster);
        let transport = self.transport(&objects);
        let observation = Box::pin(self.observe_and_decide(objects, transport)).await;
        let blueprint = self.effective_blueprint(&observation.observed);
        let scope = self.certificate_scope(&blueprint, &observation.observed.objects);
        let is_in_sync = is_idle(&observation.plan)
            && drift(&blueprint, &observation.observed.objects, &observation.state).is_empty()
            && !(has_secrets && certificates.is_stale(&scope, self.now));
        is_in_sync.then(|| {
            self.trace(false, &observation);
            observation
        })
    }

    /// Observes live, decides and executes: Secrets first, then drift and tasks, then at most one
    /// step.
    async fn reconcile_live(&self, objects: ClusterObjects) -> Result<Action, ReconcileError> {
        let transport = self.transport(&objects);
        let certificates = self.reconcile_certificates(&objects, &transport).await?;
        let CertificateResult { error, act_error, is_client_secret_late } = certificates;
        if self.context.certificates.credentials(self.blueprint.uid, self.now).is_none() {
            return self.report_no_credentials(&objects.cluster, error, act_error.as_ref()).await;
        }
        let transport = if is_client_secret_late {
            transport.restart_overlap(&objects, self.now)
        } else {
            transport
        };
        let observation = Box::pin(self.observe_and_decide(objects, transport)).await;
        self.trace(true, &observation);
        let outcome = Box::pin(self.execute(&observation, act_error)).await;
        self.report_execution(&observation.plan, &observation.state, &outcome).await;
        let certificates = self.context.certificates.report(self.blueprint.uid);
        let certificates = CertificateReport { error, ..certificates };
        Box::pin(self.publish_observation(observation, outcome, certificates)).await
    }

    /// Executes a plan. An error of the Secrets counts as the last one.
    async fn execute(&self, observation: &Observation, act_error: Option<ActError>) -> Outcome {
        let Observation { observed, clients, state, plan } = observation;
        let blueprint = self.effective_blueprint(observed);
        let mut objects = observed.objects.clone();
        let mut executor = Executor {
            trust: observed.trust.as_ref(),
            objects: &self.context.objects,
            leader_guard: &self.context.leader_guard,
            blueprint: &blueprint,
            previous: observed.previous.as_deref(),
            state,
            member_clients: clients,
            observed: &mut objects,
            rejected_pods: BTreeMap::new(),
        };
        let result = execute_plan(&mut executor, plan).await;
        let rejected_pods = executor.rejected_pods;
        let result = result.and(act_error.map_or(Ok(()), Err));
        if result.is_ok() {
            plan.action_names().for_each(|action| {
                fault_injection::crash_point(action, CrashPoint::BeforeStatus.name());
            });
        }
        Outcome { result, rejected_pods, objects: Some(objects) }
    }

    /// Reports an observation and what became of its plan.
    async fn publish_observation(
        &self,
        observation: Observation,
        outcome: Outcome,
        certificates: CertificateReport,
    ) -> Result<Action, ReconcileError> {
        let Outcome { result, rejected_pods, objects } = outcome;
        let Observation { mut observed, state, plan, .. } = observation;
        if let Some(objects) = objects {
            observed.objects = objects;
        }
        let is_stale = result.as_ref().is_err_and(ActError::is_stale);
        let error = result.err().filter(|error| !error.is_stale());
        let error = error.map(|error| error_chain(&error));
        let error = error.or_else(|| rejected_pods.values().next().cloned());
        let progress = match (&error, is_stale, is_idle(&plan)) {
            (Some(_), _, _) => Progress::Failed,
            (None, true, _) => Progress::Stale,
            (None, false, true) => Progress::Idle,
            (None, false, false) => Progress::Acted,
        };
        let blueprint = self.effective_blueprint(&observed);
        let inputs = self.inputs(&blueprint, &observed);
        let plan = status::reported_plan(&observed.objects.cluster, &state, plan);
        let input = StatusInput {
            inputs: &inputs,
            state: &state,
            plan: &plan,
            error,
            certificates,
            rejected_pods,
        };
        self.publish(&input, progress).await
    }

    /// Reconciles the Secrets with the certificates of the members, the operator and the clients.
    async fn reconcile_certificates(
        &self,
        objects: &ClusterObjects,
        transport: &Transport,
    ) -> Result<CertificateResult, ReconcileError> {
        let blueprint = Blueprint { transport: Some(transport), ..*self.blueprint };
        let scope = self.certificate_scope(&blueprint, objects);
        let certificates = &self.context.certificates;
        match certificates.reconcile(&self.context.objects, &scope, self.now).await {
            Ok(CertificateOutcome { written, error, rotation_steps, trust_steps }) => {
                self.report_rotation(&objects.cluster, &rotation_steps, &trust_steps).await;
                let is_written = written.contains(&names::client_secret(self.blueprint.name));
                let is_client_secret_late = is_written || error.is_some();
                Ok(CertificateResult { error, act_error: None, is_client_secret_late })
            }
            // Without permission to read Secrets the status is written by `namespace_access`.
            Err(CertificateManagerError::Read(error)) if error.class() == ErrorClass::Rejected => {
                Err(ReconcileError::Observe(error))
            }
            Err(error) => {
                let act_error = Some(ActError::Certificates(error));
                Ok(CertificateResult { error: None, act_error, is_client_secret_late: true })
            }
        }
    }
}

/// Fixes drift, then executes the plan.
async fn execute_plan(executor: &mut Executor<'_>, plan: &Plan) -> Result<(), ActError> {
    let drift = drift(executor.blueprint, executor.observed, executor.state);
    let fixed = executor.fix_drift(&drift).await;
    // Other members cannot resolve a member without a Service.
    if fixed.is_err() && drift.iter().any(Drift::blocks_members) {
        return fixed;
    }
    executor.execute(plan).await.and(fixed)
}

/// The drift to fix; while the cluster is paused, only that of owner references.
fn drift(blueprint: &Blueprint<'_>, objects: &ClusterObjects, state: &ObservedState) -> Vec<Drift> {
    let mut drift = detect(blueprint, objects, state);
    drift.retain(|entry| !state.desired.paused || entry.affects_ownership());
    drift
}

/// Whether no initial members were ever recorded.
fn never_bootstrapped(cluster: &EtcdCluster) -> bool {
    let record = record(&cluster.status.clone().unwrap_or_default());
    record.cluster_id.is_none() && record.members.is_empty()
}

/// Whether a plan does nothing.
pub(super) fn is_idle(plan: &Plan) -> bool {
    plan.tasks.is_empty() && plan.step == Step::Wait
}
