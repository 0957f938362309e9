//! The steps: one at most in a pass, each with what must hold before it.
//! Comes in: a step. Goes out: nothing, or why it was not done. May touch: `ports`. etcd is asked through the
//! one member that spoke for all, or through the leader where only it can do it.

use std::time::Duration;

use serde_json::json;

use super::{Act, ActError};
use crate::api::etcd_member::Intent;
use crate::etcd_cluster::plan::Step;
use crate::etcd_cluster::seen::{Etcd, MemberId, Name};
use crate::ports::etcd::{EtcdError, Line};

/// A change of the members may take as long as an election.
const CHANGE_LIMIT: Duration = Duration::from_secs(6);

impl Act<'_> {
    pub(super) async fn step(&self, step: &Step) -> Result<(), ActError> {
        match step {
            Step::Wait => Ok(()),
            Step::MakeJoiner(name) => self.make_member(name, Intent::Join, false).await,
            Step::AddLearner(name) => {
                let url = self.blueprint.peer_url(name);
                self.change(async |line| line.add_learner(&url).await).await
            }
            Step::Promote(MemberId(id)) => self.change(async |line| line.promote(*id).await).await,
            Step::Remove(MemberId(id)) => self.change(async |line| line.remove(*id).await).await,
            Step::MoveLeader(MemberId(id)) => {
                self.change(async |line| line.move_leader(*id).await).await
            }
            Step::Retire(name) => self.change_member(name, &json!({ "intent": "Leave" })).await,
            Step::Restart(name) | Step::DeletePod(name) => self.delete_pod(name).await,
            Step::Forget(name) => self.clear_away(name).await,
        }
    }

    /// Makes one change through the leader, as long as this replica leads the operator.
    async fn change(
        &self,
        call: impl AsyncFnOnce(&Line) -> Result<(), EtcdError>,
    ) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "speak to", name: Name("the leader".to_owned()) };
        let etcd = self.seen.etcd.known().ok_or_else(gone)?;
        let line = self.leader(etcd).ok_or_else(gone)?;
        match self.mandate.during(CHANGE_LIMIT, call(line)).await {
            Ok(done) => done.map_err(ActError::Etcd),
            Err(unled) => Err(ActError::Unled(unled)),
        }
    }

    /// The line to the leader: before 3.6.6 and 3.5.28 a follower cannot promote if users must be known.
    fn leader(&self, etcd: &Etcd) -> Option<&Line> {
        let leads = etcd.list.iter().find(|it| etcd.leads(it.id));
        let others = etcd.voters().filter(|it| it.is_well());
        leads.into_iter().chain(others).find_map(|it| self.lines.to(&it.name))
    }
}
