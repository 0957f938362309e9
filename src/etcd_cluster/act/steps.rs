//! The steps: at most one in a reconciliation. Preconditions and crash safety stand at each variant
//! of `Step`.

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

/// A membership change may take as long as an election.
const MEMBER_CHANGE_TIMEOUT: Duration = Duration::from_secs(6);

/// The most raft entries written by one step, so that it ends long before the lease.
const MAX_ENTRIES: usize = 1000;

impl Executor<'_> {
    pub(super) async fn step(&mut self, step: &Step) -> Result<(), ActError> {
        match step {
            Step::Wait => Ok(()),
            Step::CreateMember(name) => self.create_member(name, Intent::Join, false).await,
            Step::AddLearner(name) => {
                let url = self.blueprint.peer_url(name);
                self.change(async |client| client.add_learner(&url).await).await
            }
            Step::PromoteLearner(MemberId(id)) => {
                self.change(async |client| client.promote(*id).await).await
            }
            Step::RemoveMember(MemberId(id)) => {
                self.change(async |client| client.remove(*id).await).await
            }
            Step::MoveLeader(MemberId(id)) => {
                self.change(async |client| client.move_leader(*id).await).await
            }
            Step::AdvanceRaftLog => {
                let missing = self.state.etcd.known().map_or(0, |etcd| etcd.raft_log_missing);
                let count = usize::try_from(missing).unwrap_or(usize::MAX).min(MAX_ENTRIES);
                self.change(async |client| client.put_noop(count).await).await
            }
            Step::EnableDowngrade => {
                let Minor { major, minor } = self.blueprint.spec.version.minor();
                let below = format!("{major}.{}.0", minor.saturating_sub(1));
                self.change(async |client| client.enable_downgrade(&below).await).await
            }
            Step::CancelDowngrade => {
                self.change(async |client| client.cancel_downgrade().await).await
            }
            Step::UpdatePeerUrl(name, scheme) => self.update_peer_url(name, *scheme).await,
            Step::EnsureUsers => self.ensure_users().await,
            Step::EnableAuth => self.enable_auth().await,
            Step::DisableAuth => self.change(async |client| client.disable_auth().await).await,
            Step::Compact(revision) => self.compact(*revision).await,
            Step::Defragment(name) => self.defragment(name).await,
            Step::FinishDefragmentation => self.finish_defragmentation().await,
            Step::DisarmAlarm(alarm) => {
                self.change(async |client| client.disarm_alarm(alarm.name()).await).await
            }
            Step::RollBack(name) => self.roll_back(name).await,
            Step::MarkForRemoval(name) => {
                self.change_member(name, &json!({ "intent": "Leave" })).await
            }
            Step::RecreatePod(name) | Step::DeletePod(name) => self.delete_pod(name).await,
            Step::DeleteMember(name) => self.delete_member_objects(name).await,
        }
    }

    /// Records the peer URL of a member, then updates the member list. A pod that is created in
    /// between is dialed by no member at the new URL and dials the others itself; the next
    /// reconciliation completes the change.
    async fn update_peer_url(&self, name: &MemberName, scheme: Scheme) -> Result<(), ActError> {
        let not_found =
            || ActError::NotFound { action: "update the peer URL of", name: name.clone() };
        let url = self.blueprint.peer_url_with(scheme, name);
        if self.state.member(name).ok_or_else(not_found)?.peer_scheme != scheme {
            self.change_member(name, &json!({ "peerURL": url })).await?;
        }
        let entry =
            self.state.etcd.known().and_then(|etcd| etcd.entry(name)).ok_or_else(not_found)?;
        let MemberId(id) = entry.id;
        self.change(async |client| client.update(id, &url).await).await
    }

    /// Records the rollback. The next decision uses the previous template.
    async fn roll_back(&mut self, name: &MemberName) -> Result<(), ActError> {
        let not_found = || ActError::NotFound { action: "roll back", name: name.clone() };
        let template = &self.previous.ok_or_else(not_found)?.template;
        let reason = self.observed.pod(name).and_then(pod_problem);
        let rejected = || self.observed.member(name).and_then(pod_rejection_reason);
        let reason = reason.or_else(rejected).unwrap_or_else(|| "not reachable".to_owned());
        self.record(rollback::record(&self.observed.cluster, template, name, &reason)).await
    }

    /// Changes etcd through its leader, while this replica holds the lease of the operator.
    pub(super) async fn change(
        &self,
        call: impl AsyncFnOnce(&MemberClient) -> Result<(), EtcdError>,
    ) -> Result<(), ActError> {
        let not_found = || ActError::NotFound {
            action: "connect to",
            name: MemberName("the etcd leader".to_owned()),
        };
        let etcd = self.state.etcd.known().ok_or_else(not_found)?;
        let client = self.leader(etcd).ok_or_else(not_found)?;
        match self.leader_guard.run(MEMBER_CHANGE_TIMEOUT, call(client)).await {
            Ok(result) => result.map_err(ActError::Etcd),
            Err(error) => Err(ActError::LeadershipLost(error)),
        }
    }

    /// The client of the leader, else of a healthy voter. Before 3.6.6 and 3.5.28 a follower cannot
    /// promote a learner while authentication is enabled.
    fn leader(&self, etcd: &EtcdState) -> Option<&MemberClient> {
        let leader = etcd.members.iter().find(|member| etcd.leads(member.id));
        let others = etcd.voters().filter(|voter| voter.is_healthy());
        let members = leader.into_iter().chain(others);
        members.into_iter().find_map(|member| self.member_clients.to(&member.name))
    }
}
