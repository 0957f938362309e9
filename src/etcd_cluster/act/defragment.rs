//! The steps of defragmentation: each is recorded, then done by the member itself. No
//! reconciliation waits until a large database is defragmented: the recorded deadline says how long
//! the member may be unavailable, and later reconciliations observe when it is back.

use std::time::Duration;

use super::{ActError, Executor};
use crate::clients::clock;
use crate::etcd_cluster::defragmentation::{DefragEvent, DefragStatusWriter};
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::state::defragmentation::Revision;

/// How long a reconciliation waits for a defragmentation. Most end by then; no call outlives the
/// lease.
const DEFRAG_WAIT_TIMEOUT: Duration = Duration::from_secs(6);

impl Executor<'_> {
    /// Records the run with its deadline, then defragments the member.
    pub(super) async fn defragment(&mut self, name: &MemberName) -> Result<(), ActError> {
        let not_found = || ActError::NotFound { action: "defragment", name: name.clone() };
        let clients = self.member_clients;
        let client = clients.to(name).ok_or_else(not_found)?;
        self.write(DefragEvent::MemberStarted(name)).await?;
        match self.leader_guard.run(DEFRAG_WAIT_TIMEOUT, client.defragment()).await {
            Ok(result) => result.map_err(ActError::Etcd),
            Err(error) => Err(ActError::LeadershipLost(error)),
        }
    }

    /// Compacts, then records it. After a crash in between, etcd reports that it is done.
    pub(super) async fn compact(&mut self, revision: Revision) -> Result<(), ActError> {
        self.change(async |client| client.compact(revision.0).await).await?;
        self.write(DefragEvent::Compacted(revision)).await
    }

    /// Records that every member was defragmented.
    pub(super) async fn finish_defragmentation(&mut self) -> Result<(), ActError> {
        self.write(DefragEvent::Finished).await
    }

    async fn write(&mut self, event: DefragEvent<'_>) -> Result<(), ActError> {
        let status = self.observed.cluster.status.clone().unwrap_or_default();
        let writer = DefragStatusWriter {
            status: &status,
            observed: &self.state.defragmentation,
            spec: self.blueprint.spec.defragment.as_ref(),
            now: clock::wall(),
        };
        self.record(writer.record(event)).await
    }
}
