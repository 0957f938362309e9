//! Executes a plan, and chooses nothing. Every call is made only while this replica leads.
//!
//! Crash safety: execution may end at any point. The next reconciliation observes again, and every
//! task and step is safe to find half done.

mod auth;
mod defragment;
mod steps;
mod tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use tokio::time;

use super::drift::Drift;
use super::observe::MemberClients;
use super::observe::objects::ClusterObjects;
use super::plan::names::CrashPoint;
use super::plan::{Plan, Step, Task};
use super::render::{Blueprint, RenderError};
use super::rollback::PreviousSpec;
use super::state::{MemberName, ObservedState};
use super::tls::manager::CertificateManagerError;
use super::tls::trust_hash::TrustHash;
use crate::api::etcd_member::EtcdMember;
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::etcd::EtcdError;
use crate::clients::fault_injection;
use crate::clients::leader_guard::{LeaderGuard, NotLeading};
use crate::clients::objects::{NamespacedResource, ObjectError, Objects};
use crate::telemetry::error_chain;

/// Until DNS serves a new Service.
const DNS_PUBLISH_DELAY: Duration = Duration::from_millis(300);

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    /// A call to the API server failed.
    #[error(transparent)]
    Object(ObjectError),
    /// The API server rejected a pod: quota, limit range, or an admission policy.
    #[error(transparent)]
    PodRejected(ObjectError),
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(EtcdError),
    /// A call to etcd was not made, or not waited for, because this replica no longer leads.
    #[error("failed to change the etcd cluster")]
    LeadershipLost(#[source] NotLeading),
    /// This release cannot render the spec.
    #[error(transparent)]
    Unsupported(RenderError),
    /// A Secret could not be read.
    #[error(transparent)]
    Secret(ApiError),
    /// The Secrets could not be reconciled.
    #[error(transparent)]
    Certificates(CertificateManagerError),
    /// An object with the name of a new object exists and is not owned by this cluster.
    #[error("{0} exists and is not owned by this EtcdCluster; delete it or rename the cluster")]
    NameConflict(String),
    /// An object that the plan acts on no longer exists.
    #[error("failed to {action} {name}: not found")]
    NotFound { action: &'static str, name: MemberName },
}

impl ActError {
    /// Whether an object only changed since it was observed: the next observation sees it.
    pub(crate) fn is_stale(&self) -> bool {
        match self {
            Self::Object(error) => {
                matches!(error.class(), ErrorClass::Conflict | ErrorClass::NotFound)
            }
            Self::NotFound { .. } => true,
            Self::PodRejected(_)
            | Self::Etcd(_)
            | Self::LeadershipLost(_)
            | Self::Unsupported(_)
            | Self::Secret(_)
            | Self::Certificates(_)
            | Self::NameConflict(_) => false,
        }
    }
}

/// Executes the plan of one reconciliation.
pub(crate) struct Executor<'a> {
    /// The hash of the trust bundle for new pods.
    pub(crate) trust: Option<&'a TrustHash>,
    pub(crate) objects: &'a Objects,
    pub(crate) leader_guard: &'a LeaderGuard,
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// The template of members that run another one than the desired.
    pub(crate) previous: Option<&'a PreviousSpec>,
    pub(crate) state: &'a ObservedState,
    pub(crate) member_clients: &'a MemberClients,
    /// The observed objects. A write to the status of the cluster updates them.
    pub(crate) observed: &'a mut ClusterObjects,
    /// The members whose pods the API server rejected, with its messages.
    pub(crate) rejected_pods: BTreeMap<MemberName, String>,
}

impl Executor<'_> {
    /// Fixes drift. One that cannot be fixed holds up no other, and no pod that must be recreated:
    /// the first error is returned at the end.
    pub(crate) async fn fix_drift(&self, drifts: &[Drift]) -> Result<(), ActError> {
        let mut result = Ok(());
        for drift in drifts {
            result = result.and(self.fix(drift).await);
        }
        // A lookup before DNS serves the Service is cached as a negative answer for half a minute.
        if drifts.iter().any(|drift| matches!(drift, Drift::ServiceMissing(_))) {
            time::sleep(DNS_PUBLISH_DELAY).await;
        }
        result
    }

    async fn fix(&self, drift: &Drift) -> Result<(), ActError> {
        let namespace = self.blueprint.namespace;
        let result = match drift {
            Drift::ServiceMissing(service) => return self.create(service.as_ref()).await,
            Drift::PdbMissing(pdb) => return self.create(pdb.as_ref()).await,
            Drift::Service(name, patch) => {
                self.objects.merge::<Service>(namespace, name, patch).await.map(drop)
            }
            Drift::Pdb(name, patch) => {
                self.objects.merge::<PodDisruptionBudget>(namespace, name, patch).await.map(drop)
            }
            Drift::Pvc(name, patch) => {
                let patched =
                    self.objects.merge::<PersistentVolumeClaim>(namespace, &name.0, patch);
                patched.await.map(drop)
            }
            Drift::VoterLabel(name) => self.label_voter(name).await,
            Drift::Owner(name, patch) | Drift::ClientUrl(name, patch) => {
                self.objects.merge::<EtcdMember>(namespace, &name.0, patch).await.map(drop)
            }
        };
        result.map_err(ActError::Object)
    }

    /// Creates a missing object. An object with its name that is not ours is not changed.
    async fn create<K: NamespacedResource>(&self, object: &K) -> Result<(), ActError> {
        match self.objects.create(object).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_already_exists() => {
                Err(ActError::NameConflict(format!("{} \"{}\"", K::kind(&()), object.name_any())))
            }
            Err(error) => Err(ActError::Object(error)),
        }
    }

    /// Executes the tasks, then the step. The first error ends the reconciliation; but a rejected
    /// pod holds up no other action, and is reported on its own.
    pub(crate) async fn execute(&mut self, plan: &Plan) -> Result<(), ActError> {
        let Plan { tasks, step, reason: _ } = plan;
        for task in tasks {
            fault_injection::crash_point(task.name(), CrashPoint::Before.name());
            match (self.task(task).await, task) {
                (Err(ActError::PodRejected(error)), Task::CreatePod { member, .. }) => {
                    self.rejected_pods.insert(member.clone(), error_chain(&error));
                }
                (result, _) => result?,
            }
            fault_injection::crash_point(task.name(), CrashPoint::After.name());
        }
        let Some(name) = step.name().filter(|_| !self.is_rollback_obsolete(plan)) else {
            return Ok(());
        };
        fault_injection::crash_point(name, CrashPoint::Before.name());
        self.step(step).await?;
        fault_injection::crash_point(name, CrashPoint::After.name());
        Ok(())
    }

    /// Whether the rollback was planned because a pod was rejected, and the pod is accepted now.
    fn is_rollback_obsolete(&self, plan: &Plan) -> bool {
        let Step::RollBack(name) = &plan.step else { return false };
        let creates_pod =
            |task: &Task| matches!(task, Task::CreatePod { member, .. } if member == name);
        plan.tasks.iter().any(creates_pod) && !self.rejected_pods.contains_key(name)
    }
}
