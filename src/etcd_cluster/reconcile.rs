//! One pass over one cluster.
//! Comes in: the cluster, as a watch told of it. Goes out: what was done, and when to come back.
//! May touch: `clients`, `telemetry`. First it looks with what watches told, which costs nobody anything; only if
//! there is something to do does it look again, at the API server itself, and decides anew.

mod certificate_scope;
mod observation;
mod reporting;
mod validated;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tokio::time::Instant;

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::names;
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::objects::ObjectError;
use crate::clients::{clock, fault_injection};
use crate::etcd_cluster::act::{ActError, Executor};
use crate::etcd_cluster::controller::Context;
use crate::etcd_cluster::decide::decide;
use crate::etcd_cluster::drift::{Drift, detect};
use crate::etcd_cluster::heartbeat::RoundTrip;
use crate::etcd_cluster::observe::etcd::EtcdProbe;
use crate::etcd_cluster::observe::objects::ClusterObjects;
use crate::etcd_cluster::observe::{self, MemberClients};
use crate::etcd_cluster::plan::names::CrashPoint;
use crate::etcd_cluster::plan::{Plan, Step};
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::rollback::{self, PreviousSpec};
use crate::etcd_cluster::state::build::{StateInputs, record};
use crate::etcd_cluster::state::{MemberName, ObservedState};
use crate::etcd_cluster::status::{self, StatusInput};
use crate::etcd_cluster::tls::manager::{
    CertificateManagerError, CertificateOutcome, CertificateScope,
};
use crate::etcd_cluster::tls::report::CertificateReport;
use crate::etcd_cluster::tls::secrets_plan::CertificateError;
use crate::etcd_cluster::tls::trust_hash::TrustHash;
use crate::telemetry::error_chain;
use validated::{ValidatedCluster, spec};

/// How often a cluster is asked that is well.
const HEALTHY_INTERVAL: Duration = Duration::from_secs(10);
/// How soon the next pass follows one that did something.
const PROGRESS_DELAY: Duration = Duration::from_millis(20);
/// How soon something is tried again that failed.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// How soon the first pass is tried again while watches have not told everything.
const STORES_DELAY: Duration = Duration::from_millis(200);
/// How often one is looked at whose namespace is not granted.
const NOT_GRANTED_INTERVAL: Duration = Duration::from_secs(5);
/// How often one is looked at that nothing can be done about.
const IDLE_INTERVAL: Duration = Duration::from_mins(5);
/// More names than are ever needed at once.
const CANDIDATE_NAMES: usize = 8;

/// Why a pass came to nothing at all.
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
    /// Whether the operator had no right to it.
    pub(super) fn is_refused(&self) -> bool {
        match self {
            Self::Observe(error) => error.class() == ErrorClass::Rejected,
            Self::UpdateStatus(error) => error.class() == ErrorClass::Rejected,
        }
    }
}

/// Makes one pass.
pub(super) async fn reconcile(
    cluster: Arc<EtcdCluster>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError> {
    if cluster.metadata.deletion_timestamp.is_some() {
        context.evict(&cluster);
        return Ok(Action::await_change());
    }
    if status::namespace_not_granted(&cluster) && !has_rights(&context, &cluster).await {
        return Ok(Action::requeue(NOT_GRANTED_INTERVAL));
    }
    if !context.stores_ready() {
        return Ok(Action::requeue(STORES_DELAY));
    }
    let begun = Instant::now();
    // A pass is a large thing, and there may be many of them.
    let action = match Box::pin(reconcile_cached(&context, &cluster)).await {
        Ok(None) => Box::pin(reconcile_live(&context, &cluster)).await,
        Ok(Some(action)) => Ok(action),
        Err(error) => Err(error),
    };
    context.metrics.etcd_clusters.reconciled(begun.elapsed());
    action
}

/// Looks with what watches told. If nothing is to be done that is all.
async fn reconcile_cached(
    context: &Context,
    cluster: &EtcdCluster,
) -> Result<Option<Action>, ReconcileError> {
    let draft = match ValidatedCluster::new(cluster) {
        Ok(draft) => draft,
        Err(verdict) => return reporting::invalid(context, cluster, &verdict).await.map(Some),
    };
    let blueprint = draft.blueprint(context);
    let reconciler = Reconciler { context, blueprint: &blueprint, now: clock::wall() };
    Box::pin(reconciler.reconcile_cached(cluster)).await
}

/// Asks the API server for everything, the spec among it, decides anew and does it.
async fn reconcile_live(
    context: &Context,
    cluster: &EtcdCluster,
) -> Result<Action, ReconcileError> {
    let found = Box::pin(observe::read_objects(&context.objects, cluster)).await;
    let Some(stock) = found.map_err(ReconcileError::Observe)? else {
        context.evict(cluster);
        return Ok(Action::await_change());
    };
    let draft = match ValidatedCluster::new(&stock.cluster) {
        Ok(draft) => draft,
        Err(verdict) => return reporting::invalid(context, &stock.cluster, &verdict).await,
    };
    let blueprint = draft.blueprint(context);
    let reconciler = Reconciler { context, blueprint: &blueprint, now: clock::wall() };
    Box::pin(reconciler.reconcile_live(stock)).await
}

/// Whether the operator may work in a cluster's namespace after all, although another room has said that it may not. What is
/// told of the cluster then takes the place of those words.
async fn has_rights(context: &Context, cluster: &EtcdCluster) -> bool {
    let namespace = cluster.namespace().unwrap_or_default();
    let name = names::ca_secret(&cluster.name_any());
    context.objects.get::<Secret>(&namespace, &name).await.is_ok()
}

/// What members are made of that run otherwise than is wanted, if there are any and anything can be made of it.
fn before(blueprint: &Blueprint<'_>, observation: &Observation) -> Option<PreviousSpec> {
    let text = rollback::last_working_template(blueprint, &observation.stock, &observation.heard)?;
    let spec = spec(&rollback::with_template_fields(&observation.stock.cluster, &text)?).ok()?;
    Some(PreviousSpec { template: text, spec: (*spec).clone() })
}

/// One reconciler to a cluster.
struct Reconciler<'a> {
    context: &'a Context,
    /// As the spec asks for it.
    blueprint: &'a Blueprint<'a>,
    now: Timestamp,
}

/// What a look brought.
struct Observation {
    stock: ClusterObjects,
    heard: EtcdProbe,
    lines: MemberClients,
    names: Vec<MemberName>,
    /// Whom pods should trust.
    trust: Option<TrustHash>,
    /// How long messages between members take, if that is known and matters.
    measured: Option<RoundTrip>,
}

impl Reconciler<'_> {
    async fn reconcile_cached(
        &self,
        cluster: &EtcdCluster,
    ) -> Result<Option<Action>, ReconcileError> {
        let keyring = &self.context.keyring;
        // Nothing is kept for one that is left alone before anything of it was made.
        let is_kept = !(self.blueprint.spec.paused && never_bootstrapped(cluster));
        if is_kept && keyring.credentials(self.blueprint.uid, self.now).is_none() {
            return Ok(None);
        }
        let told = self.context.stores.objects(cluster);
        let doors = self.doors(&told);
        let observation = Box::pin(self.observe(told, &doors)).await;
        let (way, spec) = self.effective_version(&observation);
        let blueprint = self.effective_blueprint(&spec, &doors, &observation);
        let before = before(&blueprint, &observation);
        let look = self.inputs(&blueprint, way, before.as_ref(), &observation);
        let seen = look.build();
        let plan = decide(&seen);
        let is_wanting = !differing(&blueprint, &observation.stock, &seen).is_empty()
            || is_kept
                && keyring
                    .is_stale(&self.certificate_scope(&blueprint, &observation.stock), self.now);
        if !is_idle(&plan) || is_wanting {
            return Ok(None);
        }
        self.trace(false, &seen, &plan);
        let tidings = keyring.report(self.blueprint.uid);
        let plan = status::reported_plan(&observation.stock.cluster, &seen, plan);
        let refused = BTreeMap::new();
        let input = StatusInput {
            inputs: &look,
            state: &seen,
            plan: &plan,
            error: None,
            certificates: tidings,
            rejected_pods: refused,
        };
        self.report(&input, None).await.map(Some)
    }

    /// Who does what was decided from a look.
    fn executor<'b>(
        &'b self,
        look: &StateInputs<'b>,
        seen: &'b ObservedState,
        lines: &'b MemberClients,
        stock: &'b mut ClusterObjects,
    ) -> Executor<'b> {
        let Context { objects, mandate, .. } = self.context;
        let StateInputs { blueprint, previous: before, trust, .. } = *look;
        let refused = BTreeMap::new();
        Executor {
            trust,
            objects,
            leader_guard: mandate,
            blueprint,
            previous: before,
            state: seen,
            member_clients: lines,
            observed: stock,
            rejected_pods: refused,
        }
    }

    /// Looks after the Secrets. Answers why nothing can be signed, what went wrong, which holds up nothing else, and whether
    /// applications were told something only now, or could not be.
    async fn reconcile_certificates(
        &self,
        circle: &CertificateScope<'_>,
        cluster: &EtcdCluster,
    ) -> Result<(Option<CertificateError>, Option<ActError>, bool), ReconcileError> {
        let Context { keyring, objects, .. } = self.context;
        match keyring.reconcile(objects, circle, self.now).await {
            Ok(CertificateOutcome { written, error, rotation_steps, trust_steps }) => {
                self.report_rotation(cluster, &rotation_steps, &trust_steps).await;
                let is_told = written.contains(&names::client_secret(self.blueprint.name));
                let is_told_late = is_told || error.is_some();
                Ok((error, None, is_told_late))
            }
            // Without a right to Secrets there is nothing to tell, either: another room does.
            Err(CertificateManagerError::Read(error)) if error.class() == ErrorClass::Rejected => {
                Err(ReconcileError::Observe(error))
            }
            Err(error) => Ok((None, Some(ActError::Certificates(error)), true)),
        }
    }

    /// Looks again, at what is there now, decides, and does it.
    async fn reconcile_live(&self, stock: ClusterObjects) -> Result<Action, ReconcileError> {
        let doors = self.doors(&stock);
        let asked = Blueprint { transport: Some(&doors), ..*self.blueprint };
        let (why, trouble, is_told_late) = self
            .reconcile_certificates(&self.certificate_scope(&asked, &stock), &stock.cluster)
            .await?;
        let doors = if is_told_late { doors.restart_overlap(&stock, self.now) } else { doors };
        if self.context.keyring.credentials(self.blueprint.uid, self.now).is_none() {
            return self.report_no_credentials(&stock.cluster, why, trouble.as_ref()).await;
        }
        let observation = Box::pin(self.observe(stock, &doors)).await;
        let (way, spec) = self.effective_version(&observation);
        let blueprint = self.effective_blueprint(&spec, &doors, &observation);
        let before = before(&blueprint, &observation);
        let look = self.inputs(&blueprint, way, before.as_ref(), &observation);
        let seen = look.build();
        let plan = decide(&seen);
        self.trace(true, &seen, &plan);
        let mut after = observation.stock.clone();
        // A Secret that cannot be written holds up no member that has one.
        let mut act = self.executor(&look, &seen, &observation.lines, &mut after);
        let done = carry_out(&mut act, &plan).await;
        let refused = act.rejected_pods;
        let done = done.and(trouble.map_or(Ok(()), Err));
        if done.is_ok() {
            plan.action_names().for_each(|deed| {
                fault_injection::crash_point(deed, CrashPoint::BeforeStatus.name());
            });
        }
        self.report_step(&plan, &seen, &done, &after.cluster).await;
        self.report_rejected_pods(&plan, &refused);
        let late = done.as_ref().is_err_and(ActError::is_stale);
        let trouble = done.err().filter(|it| !it.is_stale()).map(|error| error_chain(&error));
        let trouble = trouble.or_else(|| refused.values().next().cloned());
        let observation = Observation { stock: after, ..observation };
        let look = self.inputs(&blueprint, way, before.as_ref(), &observation);
        let next =
            if trouble.is_some() { Some(RETRY_DELAY) } else { requeue_after(late, is_idle(&plan)) };
        let plan = status::reported_plan(&observation.stock.cluster, &seen, plan);
        let tidings =
            CertificateReport { error: why, ..self.context.keyring.report(self.blueprint.uid) };
        let input = StatusInput {
            inputs: &look,
            state: &seen,
            plan: &plan,
            error: trouble,
            certificates: tidings,
            rejected_pods: refused,
        };
        self.report(&input, next).await
    }
}

/// Puts right what stands around the members, then does what was decided.
async fn carry_out(act: &mut Executor<'_>, plan: &Plan) -> Result<(), ActError> {
    let differences = differing(act.blueprint, act.observed, act.state);
    let furnished = act.fix_drift(&differences).await;
    // Nobody could find a member that has no Service.
    if furnished.is_err() && differences.iter().any(Drift::blocks_members) {
        return furnished;
    }
    act.execute(plan).await.and(furnished)
}

/// What is to be put right: while everything is left alone, only what goes with the cluster in the end.
fn differing(
    blueprint: &Blueprint<'_>,
    stock: &ClusterObjects,
    seen: &ObservedState,
) -> Vec<Drift> {
    let mut found = detect(blueprint, stock, seen);
    found.retain(|it| !seen.desired.paused || it.affects_ownership());
    found
}

/// How soon the next pass follows one that nothing went wrong in; in its own time, if there was nothing to do.
fn requeue_after(late: bool, idle: bool) -> Option<Duration> {
    if late { Some(STORES_DELAY) } else { (!idle).then_some(PROGRESS_DELAY) }
}

/// Whether nobody was ever chosen to found it.
fn never_bootstrapped(cluster: &EtcdCluster) -> bool {
    let record = record(&cluster.status.clone().unwrap_or_default());
    record.cluster_id.is_none() && record.members.is_empty()
}

fn is_idle(plan: &Plan) -> bool {
    plan.tasks.is_empty() && plan.step == Step::Wait
}
