//! The steps: one at most in a pass, each with what must hold before it.
//! Comes in: a step. Goes out: nothing, or why it was not done. May touch: `clients`. etcd is asked through the
//! one member that spoke for all, or through the leader where only it can do it.

use std::time::Duration;

use serde_json::json;

use super::{ActError, Executor};
use crate::api::etcd_member::Intent;
use crate::api::etcd_version::Minor;
use crate::clients::etcd::{EtcdError, MemberClient};
use crate::etcd_cluster::plan::Step;
use crate::etcd_cluster::rollback;
use crate::etcd_cluster::state::health::pod_rejection_reason;
use crate::etcd_cluster::state::{EtcdState, MemberId, MemberName};
use crate::etcd_cluster::status::pod_problem;
use crate::etcd_cluster::transport::Scheme;

/// A change of the members may take as long as an election.
const MEMBER_CHANGE_TIMEOUT: Duration = Duration::from_secs(6);

/// So many entries are written at once: it is over long before anybody would wonder where it is.
const MAX_ENTRIES: usize = 1000;

impl Executor<'_> {
    pub(super) async fn step(&mut self, step: &Step) -> Result<(), ActError> {
        match step {
            Step::Wait => Ok(()),
            Step::CreateMember(name) => self.create_member(name, Intent::Join, false).await,
            Step::AddLearner(name) => {
                let url = self.blueprint.peer_url(name);
                self.change(async |line| line.add_learner(&url).await).await
            }
            Step::PromoteLearner(MemberId(id)) => {
                self.change(async |line| line.promote(*id).await).await
            }
            Step::RemoveMember(MemberId(id)) => {
                self.change(async |line| line.remove(*id).await).await
            }
            Step::MoveLeader(MemberId(id)) => {
                self.change(async |line| line.move_leader(*id).await).await
            }
            Step::AdvanceRaftLog => {
                let lacks = self.state.etcd.known().map_or(0, |etcd| etcd.raft_log_missing);
                let count = usize::try_from(lacks).unwrap_or(usize::MAX).min(MAX_ENTRIES);
                self.change(async |line| line.put_noop(count).await).await
            }
            Step::EnableDowngrade => {
                let Minor { major, minor } = self.blueprint.spec.version.minor();
                let below = format!("{major}.{}.0", minor.saturating_sub(1));
                self.change(async |line| line.enable_downgrade(&below).await).await
            }
            Step::CancelDowngrade => self.change(async |line| line.cancel_downgrade().await).await,
            Step::UpdatePeerUrl(name, scheme) => self.update_peer_url(name, *scheme).await,
            Step::EnsureUsers => self.ensure_users().await,
            Step::EnableAuth => self.enable_auth().await,
            Step::DisableAuth => self.change(async |line| line.disable_auth().await).await,
            Step::Compact(revision) => self.compact(*revision).await,
            Step::Defragment(name) => self.defragment(name).await,
            Step::FinishDefragmentation => self.finish_defragmentation().await,
            Step::DisarmAlarm(alarm) => {
                self.change(async |line| line.disarm_alarm(alarm.name()).await).await
            }
            Step::RollBack(name) => self.roll_back(name).await,
            Step::MarkForRemoval(name) => {
                self.change_member(name, &json!({ "intent": "Leave" })).await
            }
            Step::RecreatePod(name) | Step::DeletePod(name) => self.delete_pod(name).await,
            Step::DeleteMember(name) => self.delete_member_objects(name).await,
        }
    }

    /// Writes down how the others call a member, then lets them know. A pod that is made in between finds nobody who calls it so,
    /// and calls the others itself; the next pass ends it.
    async fn update_peer_url(&self, name: &MemberName, scheme: Scheme) -> Result<(), ActError> {
        let not_found =
            || ActError::NotFound { action: "change the address of", name: name.clone() };
        let url = self.blueprint.peer_url_with(scheme, name);
        if self.state.member(name).ok_or_else(not_found)?.peer_scheme != scheme {
            self.change_member(name, &json!({ "peerURL": url })).await?;
        }
        let entry =
            self.state.etcd.known().and_then(|etcd| etcd.entry(name)).ok_or_else(not_found)?;
        let MemberId(id) = entry.id;
        self.change(async |line| line.update(id, &url).await).await
    }

    /// Writes down that what the spec asks for is taken back. Whoever decides next makes members of what worked.
    async fn roll_back(&mut self, name: &MemberName) -> Result<(), ActError> {
        let not_found =
            || ActError::NotFound { action: "take a change back for", name: name.clone() };
        let worked = &self.previous.ok_or_else(not_found)?.template;
        let reason = self.observed.pod(name).and_then(pod_problem);
        let rejected = || self.observed.member(name).and_then(pod_rejection_reason);
        let reason = reason.or_else(rejected).unwrap_or_else(|| "it does not answer".to_owned());
        self.record(rollback::record(&self.observed.cluster, worked, name, &reason)).await
    }

    /// Makes one change through the leader, as long as this replica leads the operator.
    pub(super) async fn change(
        &self,
        call: impl AsyncFnOnce(&MemberClient) -> Result<(), EtcdError>,
    ) -> Result<(), ActError> {
        let not_found =
            || ActError::NotFound { action: "speak to", name: MemberName("the leader".to_owned()) };
        let etcd = self.state.etcd.known().ok_or_else(not_found)?;
        let line = self.leader(etcd).ok_or_else(not_found)?;
        match self.leader_guard.run(MEMBER_CHANGE_TIMEOUT, call(line)).await {
            Ok(done) => done.map_err(ActError::Etcd),
            Err(unled) => Err(ActError::LeadershipLost(unled)),
        }
    }

    /// The line to the leader: before 3.6.6 and 3.5.28 a follower cannot promote if users must be known.
    fn leader(&self, etcd: &EtcdState) -> Option<&MemberClient> {
        let leads = etcd.members.iter().find(|it| etcd.leads(it.id));
        let others = etcd.voters().filter(|it| it.is_healthy());
        leads.into_iter().chain(others).find_map(|it| self.member_clients.to(&it.name))
    }
}
