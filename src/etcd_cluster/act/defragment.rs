//! The steps about members' files: each is written down, and done by the member itself.
//! Comes in: a step. Goes out: nothing, or why it was not done. May touch: `clients`. Nobody waits here until a large file is
//! rewritten: it is written down for how long the member may be silent, and later passes see when it is back.

use std::time::Duration;

use super::{ActError, Executor};
use crate::clients::clock;
use crate::etcd_cluster::defragmentation::{DefragEvent, DefragStatusWriter};
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::state::defragmentation::Revision;

/// So long a pass waits for a file that is rewritten. Most are by then; and no pass outlives its lease.
const DEFRAG_WAIT: Duration = Duration::from_secs(6);

impl Executor<'_> {
    /// Writes down whose turn it is, then lets the member do it.
    pub(super) async fn defragment(&mut self, name: &MemberName) -> Result<(), ActError> {
        let not_found = || ActError::NotFound { action: "rewrite the file of", name: name.clone() };
        let lines = self.member_clients;
        let line = lines.to(name).ok_or_else(not_found)?;
        self.write(DefragEvent::MemberStarted(name)).await?;
        match self.leader_guard.run(DEFRAG_WAIT, line.defragment()).await {
            Ok(done) => done.map_err(ActError::Etcd),
            Err(unled) => Err(ActError::LeadershipLost(unled)),
        }
    }

    /// Gives history up, then writes it down: whoever comes after a crash in between is told by etcd that it was done.
    pub(super) async fn compact(&mut self, revision: Revision) -> Result<(), ActError> {
        self.change(async |line| line.compact(revision.0).await).await?;
        self.write(DefragEvent::Compacted(revision)).await
    }

    /// Writes down that every file had its turn.
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
