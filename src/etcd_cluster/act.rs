//! Does what was decided, and chooses nothing.
//! Comes in: a `Plan`, and the look that it was made from. Goes out: what was done, or how far it came.
//! May touch: `ports`. Each call is made only while this replica leads. It may end at any point: the next pass
//! looks anew, and each chore and step is safe to find half done.

mod chores;
mod steps;

use std::time::Duration;

use tokio::time;

use super::furnish::Difference;
use super::keyring::KeyringError;
use super::observe::Lines;
use super::plan::{Plan, Step};
use super::render::{Blueprint, NotInThisRelease};
use super::seen::{Name, Seen};
use super::stock::Stock;
use crate::ports::etcd::EtcdError;
use crate::ports::mandate::{Mandate, Unled};
use crate::ports::objects::{ObjectError, Objects};

/// How long it takes until name servers know of a new Service.
const PUBLISHED: Duration = Duration::from_millis(300);

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    /// A call to the API server failed.
    #[error(transparent)]
    Object(ObjectError),
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(EtcdError),
    /// A call to etcd was not made, or not waited for, because this replica does not lead any more.
    #[error("failed to change the members of a cluster")]
    Unled(#[source] Unled),
    /// The spec asks for what this release cannot make.
    #[error(transparent)]
    CannotMake(NotInThisRelease),
    /// The Secrets are not as they should be.
    #[error(transparent)]
    Keys(KeyringError),
    /// What was decided on is gone since.
    #[error("failed to {doing} {name}: it is gone since")]
    Gone { doing: &'static str, name: Name },
}

/// One pass of doing.
pub(crate) struct Act<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) mandate: &'a Mandate,
    pub(crate) blueprint: &'a Blueprint<'a>,
    pub(crate) seen: &'a Seen,
    pub(crate) lines: &'a Lines,
    /// What the plan was made from. A write to the cluster's status changes it here, too.
    pub(crate) stock: &'a mut Stock,
}

impl Act<'_> {
    /// Puts right what stands around the members.
    pub(crate) async fn furnish(&self, differences: &[Difference]) -> Result<(), ActError> {
        let namespace = self.blueprint.namespace;
        for difference in differences {
            let done = match difference {
                Difference::Service(it) => self.objects.apply(it.as_ref()).await.map(drop),
                Difference::Budget(it) => self.objects.apply(it.as_ref()).await.map(drop),
                Difference::Claim(name, patch) => {
                    type Claim = k8s_openapi::api::core::v1::PersistentVolumeClaim;
                    self.objects.merge::<Claim>(namespace, &name.0, patch).await.map(drop)
                }
                Difference::Voter(name) => self.mark(name).await,
                Difference::Owner(name, patch) => {
                    type Member = crate::api::etcd_member::EtcdMember;
                    self.objects.merge::<Member>(namespace, &name.0, patch).await.map(drop)
                }
            };
            done.map_err(ActError::Object)?;
        }
        // Who asks a name server too early is told for half a minute that there is nobody.
        if differences.iter().any(|it| matches!(it, Difference::Service(_))) {
            time::sleep(PUBLISHED).await;
        }
        Ok(())
    }

    /// Does the chores, then the step. Whatever fails first ends the pass.
    pub(crate) async fn carry_out(&mut self, plan: &Plan) -> Result<(), ActError> {
        let Plan { chores, step, because: _ } = plan;
        for chore in chores {
            self.chore(chore).await?;
        }
        match step {
            Step::Wait => Ok(()),
            Step::MakeJoiner(_)
            | Step::AddLearner(_)
            | Step::Promote(_)
            | Step::Retire(_)
            | Step::MoveLeader(_)
            | Step::Remove(_)
            | Step::DeletePod(_)
            | Step::Forget(_) => self.step(step).await,
        }
    }
}
