//! Does what was decided, and chooses nothing.
//! Comes in: a `Plan`, and the look that it was made from. Goes out: what was done, or how far it came.
//! May touch: `ports`. Each call is made only while this replica leads. It may end at any point: the next pass
//! looks anew, and each chore and step is safe to find half done.

mod chores;
mod steps;
mod upkeep;
mod users;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use tokio::time;

use super::furnish::Difference;
use super::identity::trust::Trust;
use super::keyring::KeyringError;
use super::observe::Lines;
use super::plan::deeds::Moment;
use super::plan::{Chore, Plan, Step};
use super::render::{Blueprint, NotInThisRelease};
use super::seen::{Name, Seen};
use super::stock::Stock;
use super::undo::Before;
use crate::api::etcd_member::EtcdMember;
use crate::ports::call::{CallError, Class};
use crate::ports::etcd::EtcdError;
use crate::ports::mandate::{Mandate, Unled};
use crate::ports::objects::{Kept, ObjectError, Objects};
use crate::ports::rehearsal;
use crate::telemetry::chain;

/// How long it takes until name servers know of a new Service.
const PUBLISHED: Duration = Duration::from_millis(300);

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    /// A call to the API server failed.
    #[error(transparent)]
    Object(ObjectError),
    /// The API server has looked at a pod, and does not take it.
    #[error(transparent)]
    PodRefused(ObjectError),
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(EtcdError),
    /// A call to etcd was not made, or not waited for, because this replica does not lead any more.
    #[error("failed to change the members of a cluster")]
    Unled(#[source] Unled),
    /// The spec asks for what this release cannot make.
    #[error(transparent)]
    CannotMake(NotInThisRelease),
    /// A Secret could not be read.
    #[error(transparent)]
    Secret(CallError),
    /// The Secrets are not as they should be.
    #[error(transparent)]
    Keys(KeyringError),
    /// Something has the name of what is to be made, and is somebody else's.
    #[error(
        "the {0} is there, and not this cluster's: it is not touched; rename it, or the cluster"
    )]
    Taken(String),
    /// What was decided on is gone since.
    #[error("failed to {doing} {name}: it is gone since")]
    Gone { doing: &'static str, name: Name },
}

impl ActError {
    /// Whether something has only changed since it was looked at: the next look sees it.
    pub(crate) fn is_late(&self) -> bool {
        match self {
            Self::Object(error) => matches!(error.class(), Class::Conflict | Class::NotFound),
            Self::Gone { .. } => true,
            Self::PodRefused(_)
            | Self::Etcd(_)
            | Self::Unled(_)
            | Self::CannotMake(_)
            | Self::Secret(_)
            | Self::Keys(_)
            | Self::Taken(_) => false,
        }
    }
}

/// One pass of doing.
pub(crate) struct Act<'a> {
    /// Whom pods trust that are made now, if that is known.
    pub(crate) trust: Option<&'a Trust>,
    pub(crate) objects: &'a Objects,
    pub(crate) mandate: &'a Mandate,
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// What members are made of that run otherwise than is wanted.
    pub(crate) before: Option<&'a Before>,
    pub(crate) seen: &'a Seen,
    pub(crate) lines: &'a Lines,
    /// What the plan was made from. A write to the cluster's status changes it here, too.
    pub(crate) stock: &'a mut Stock,
    /// Whose pods the API server has refused in this pass, and why.
    pub(crate) refused: BTreeMap<Name, String>,
}

impl Act<'_> {
    /// Puts right what stands around the members. One thing that cannot be put right holds up no other, and no
    /// member that must come back: it is told in the end.
    pub(crate) async fn furnish(&self, differences: &[Difference]) -> Result<(), ActError> {
        let mut failed = Ok(());
        for difference in differences {
            failed = failed.and(self.put_right(difference).await);
        }
        // Who asks a name server too early is told for half a minute that there is nobody.
        if differences.iter().any(|it| matches!(it, Difference::NoService(_))) {
            time::sleep(PUBLISHED).await;
        }
        failed
    }

    async fn put_right(&self, difference: &Difference) -> Result<(), ActError> {
        let namespace = self.blueprint.namespace;
        let done = match difference {
            Difference::NoService(it) => return self.make(it.as_ref()).await,
            Difference::NoBudget(it) => return self.make(it.as_ref()).await,
            Difference::Service(name, patch) => {
                self.objects.merge::<Service>(namespace, name, patch).await.map(drop)
            }
            Difference::Budget(name, patch) => {
                self.objects.merge::<PodDisruptionBudget>(namespace, name, patch).await.map(drop)
            }
            Difference::Claim(name, patch) => {
                let done = self.objects.merge::<PersistentVolumeClaim>(namespace, &name.0, patch);
                done.await.map(drop)
            }
            Difference::Voter(name) => self.mark(name).await,
            Difference::Owner(name, patch) | Difference::Address(name, patch) => {
                self.objects.merge::<EtcdMember>(namespace, &name.0, patch).await.map(drop)
            }
        };
        done.map_err(ActError::Object)
    }

    /// Makes what is not there. What has its name and is not ours stays as it is.
    async fn make<K: Kept>(&self, object: &K) -> Result<(), ActError> {
        match self.objects.create(object).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_already_there() => {
                Err(ActError::Taken(format!("{} {}", K::kind(&()), object.name_any())))
            }
            Err(error) => Err(ActError::Object(error)),
        }
    }

    /// Does the chores, then the step. Whatever fails first ends the pass; but a pod that is refused holds up nobody else, and is told
    /// by itself.
    pub(crate) async fn carry_out(&mut self, plan: &Plan) -> Result<(), ActError> {
        let Plan { chores, step, because: _ } = plan;
        for chore in chores {
            rehearsal::moment(chore.word(), Moment::Before.word());
            match (self.chore(chore).await, chore) {
                (Err(ActError::PodRefused(error)), Chore::MakePod { member, .. }) => {
                    self.refused.insert(member.clone(), chain(&error));
                }
                (done, _) => done?,
            }
            rehearsal::moment(chore.word(), Moment::After.word());
        }
        let Some(word) = step.word().filter(|_| !self.is_mended(plan)) else { return Ok(()) };
        rehearsal::moment(word, Moment::Before.word());
        self.step(step).await?;
        rehearsal::moment(word, Moment::After.word());
        Ok(())
    }

    /// Whether a change was to be taken back because a pod was refused, and is none any more.
    fn is_mended(&self, plan: &Plan) -> bool {
        let Step::TakeBack(name) = &plan.step else { return false };
        let is_its_pod = |it: &Chore| matches!(it, Chore::MakePod { member, .. } if member == name);
        plan.chores.iter().any(is_its_pod) && !self.refused.contains_key(name)
    }
}
