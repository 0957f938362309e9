//! The steps: one at most in a pass, each with what must hold before it.
//! Comes in: a step. Goes out: nothing, or why it was not done. May touch: `ports`. etcd is asked through the
//! one member that spoke for all, or through the leader where only it can do it.

use std::time::Duration;

use serde_json::json;

use super::{Act, ActError};
use crate::api::etcd_member::Intent;
use crate::api::etcd_version::Minor;
use crate::etcd_cluster::compose::health::why_it_is_refused;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::plan::Step;
use crate::etcd_cluster::seen::{Etcd, MemberId, Name};
use crate::etcd_cluster::status::why_it_waits;
use crate::etcd_cluster::undo;
use crate::ports::etcd::{EtcdError, Line};

/// A change of the members may take as long as an election.
const CHANGE_LIMIT: Duration = Duration::from_secs(6);

/// So many entries are written at once: it is over long before anybody would wonder where it is.
const MOST_ENTRIES: usize = 1000;

impl Act<'_> {
    pub(super) async fn step(&mut self, step: &Step) -> Result<(), ActError> {
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
            Step::FillLog => {
                let lacks = self.seen.etcd.known().map_or(0, |etcd| etcd.log_lacks);
                let count = usize::try_from(lacks).unwrap_or(usize::MAX).min(MOST_ENTRIES);
                self.change(async |line| line.write_nothing(count).await).await
            }
            Step::AllowDowngrade => {
                let Minor { major, minor } = self.blueprint.spec.version.minor();
                let below = format!("{major}.{}.0", minor.saturating_sub(1));
                self.change(async |line| line.allow_downgrade(&below).await).await
            }
            Step::ForbidDowngrade => self.change(async |line| line.forbid_downgrade().await).await,
            Step::Readdress(name, scheme) => self.readdress(name, *scheme).await,
            Step::MakeUsers => self.make_users().await,
            Step::EnableAuth => self.enable_auth().await,
            Step::DisableAuth => self.change(async |line| line.disable_auth().await).await,
            Step::Compact(revision) => self.compact(*revision).await,
            Step::Defragment(name) => self.defragment(name).await,
            Step::EndUpkeep => self.end_upkeep().await,
            Step::Disarm(alarm) => self.change(async |line| line.disarm(alarm.word()).await).await,
            Step::TakeBack(name) => self.take_back(name).await,
            Step::Retire(name) => self.change_member(name, &json!({ "intent": "Leave" })).await,
            Step::Restart(name) | Step::DeletePod(name) => self.delete_pod(name).await,
            Step::Forget(name) => self.clear_away(name).await,
        }
    }

    /// Writes down how the others call a member, then lets them know. A pod that is made in between finds nobody who calls it so,
    /// and calls the others itself; the next pass ends it.
    async fn readdress(&self, name: &Name, scheme: Scheme) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "change the address of", name: name.clone() };
        let url = self.blueprint.peer_url_by(scheme, name);
        if self.seen.member(name).ok_or_else(gone)?.address != scheme {
            self.change_member(name, &json!({ "peerURL": url })).await?;
        }
        let entry = self.seen.etcd.known().and_then(|etcd| etcd.entry(name)).ok_or_else(gone)?;
        let MemberId(id) = entry.id;
        self.change(async |line| line.update(id, &url).await).await
    }

    /// Writes down that what the spec asks for is taken back. Whoever decides next makes members of what worked.
    async fn take_back(&mut self, name: &Name) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "take a change back for", name: name.clone() };
        let worked = &self.before.ok_or_else(gone)?.text;
        let why = self.stock.pod(name).and_then(why_it_waits);
        let refused = || self.stock.member(name).and_then(why_it_is_refused);
        let why = why.or_else(refused).unwrap_or_else(|| "it does not answer".to_owned());
        self.record(undo::record(&self.stock.cluster, worked, name, &why)).await
    }

    /// Makes one change through the leader, as long as this replica leads the operator.
    pub(super) async fn change(
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
