//! Does what was decided, and chooses nothing.
//! Comes in: a `Plan`, and the look that it was made from. Goes out: what was done, or how far it came.
//! May touch: `clients`. Each call is made only while this replica leads. It may end at any point: the next pass
//! looks anew, and each chore and step is safe to find half done.

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

/// How long it takes until name servers know of a new Service.
const DNS_PUBLISH_DELAY: Duration = Duration::from_millis(300);

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    /// A call to the API server failed.
    #[error(transparent)]
    Object(ObjectError),
    /// The API server has looked at a pod, and does not take it.
    #[error(transparent)]
    PodRejected(ObjectError),
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(EtcdError),
    /// A call to etcd was not made, or not waited for, because this replica does not lead any more.
    #[error("failed to change the members of a cluster")]
    LeadershipLost(#[source] NotLeading),
    /// The spec asks for what this release cannot make.
    #[error(transparent)]
    Unsupported(RenderError),
    /// A Secret could not be read.
    #[error(transparent)]
    Secret(ApiError),
    /// The Secrets are not as they should be.
    #[error(transparent)]
    Certificates(CertificateManagerError),
    /// Something has the name of what is to be made, and is somebody else's.
    #[error(
        "the {0} is there, and not this cluster's: it is not touched; rename it, or the cluster"
    )]
    NameConflict(String),
    /// What was decided on is gone since.
    #[error("failed to {action} {name}: it no longer exists")]
    NotFound { action: &'static str, name: MemberName },
}

impl ActError {
    /// Whether something has only changed since it was looked at: the next look sees it.
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

/// One pass of doing.
pub(crate) struct Executor<'a> {
    /// Whom pods trust that are made now, if that is known.
    pub(crate) trust: Option<&'a TrustHash>,
    pub(crate) objects: &'a Objects,
    pub(crate) leader_guard: &'a LeaderGuard,
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// What members are made of that run otherwise than is wanted.
    pub(crate) previous: Option<&'a PreviousSpec>,
    pub(crate) state: &'a ObservedState,
    pub(crate) member_clients: &'a MemberClients,
    /// What the plan was made from. A write to the cluster's status changes it here, too.
    pub(crate) observed: &'a mut ClusterObjects,
    /// Whose pods the API server has refused in this pass, and why.
    pub(crate) rejected_pods: BTreeMap<MemberName, String>,
}

impl Executor<'_> {
    /// Puts right what stands around the members. One thing that cannot be put right holds up no other, and no
    /// member that must come back: it is told in the end.
    pub(crate) async fn fix_drift(&self, drifts: &[Drift]) -> Result<(), ActError> {
        let mut failed = Ok(());
        for drift in drifts {
            failed = failed.and(self.fix(drift).await);
        }
        // Who asks a name server too early is told for half a minute that there is nobody.
        if drifts.iter().any(|it| matches!(it, Drift::ServiceMissing(_))) {
            time::sleep(DNS_PUBLISH_DELAY).await;
        }
        failed
    }

    async fn fix(&self, drift: &Drift) -> Result<(), ActError> {
        let namespace = self.blueprint.namespace;
        let done = match drift {
            Drift::ServiceMissing(it) => return self.create(it.as_ref()).await,
            Drift::PdbMissing(it) => return self.create(it.as_ref()).await,
            Drift::Service(name, patch) => {
                self.objects.merge::<Service>(namespace, name, patch).await.map(drop)
            }
            Drift::Pdb(name, patch) => {
                self.objects.merge::<PodDisruptionBudget>(namespace, name, patch).await.map(drop)
            }
            Drift::Pvc(name, patch) => {
                let done = self.objects.merge::<PersistentVolumeClaim>(namespace, &name.0, patch);
                done.await.map(drop)
            }
            Drift::VoterLabel(name) => self.label_voter(name).await,
            Drift::Owner(name, patch) | Drift::ClientUrl(name, patch) => {
                self.objects.merge::<EtcdMember>(namespace, &name.0, patch).await.map(drop)
            }
        };
        done.map_err(ActError::Object)
    }

    /// Makes what is not there. What has its name and is not ours stays as it is.
    async fn create<K: NamespacedResource>(&self, object: &K) -> Result<(), ActError> {
        match self.objects.create(object).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_already_exists() => {
                Err(ActError::NameConflict(format!("{} {}", K::kind(&()), object.name_any())))
            }
            Err(error) => Err(ActError::Object(error)),
        }
    }

    /// Does the chores, then the step. Whatever fails first ends the pass; but a pod that is refused holds up nobody else, and is told
    /// by itself.
    pub(crate) async fn execute(&mut self, plan: &Plan) -> Result<(), ActError> {
        let Plan { tasks, step, reason: _ } = plan;
        for task in tasks {
            fault_injection::crash_point(task.name(), CrashPoint::Before.name());
            match (self.task(task).await, task) {
                (Err(ActError::PodRejected(error)), Task::CreatePod { member, .. }) => {
                    self.rejected_pods.insert(member.clone(), error_chain(&error));
                }
                (done, _) => done?,
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

    /// Whether a change was to be taken back because a pod was refused, and is none any more.
    fn is_rollback_obsolete(&self, plan: &Plan) -> bool {
        let Step::RollBack(name) = &plan.step else { return false };
        let is_its_pod = |it: &Task| matches!(it, Task::CreatePod { member, .. } if member == name);
        plan.tasks.iter().any(is_its_pod) && !self.rejected_pods.contains_key(name)
    }
}
