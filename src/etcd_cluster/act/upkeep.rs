//! The steps about members' files: each is written down, and done by the member itself.
//! Comes in: a step. Goes out: nothing, or why it was not done. May touch: `ports`. Nobody waits here until a large file is
//! rewritten: it is written down for how long the member may be silent, and later passes see when it is back.

use std::time::Duration;

use super::{Act, ActError};
use crate::etcd_cluster::seen::Name;
use crate::etcd_cluster::seen::upkeep::Revision;
use crate::etcd_cluster::upkeep::{Note, Scribe};
use crate::ports::clock;

/// So long a pass waits for a file that is rewritten. Most are by then; and no pass outlives its lease.
const REWRITE_LIMIT: Duration = Duration::from_secs(6);

impl Act<'_> {
    /// Writes down whose turn it is, then lets the member do it.
    pub(super) async fn defragment(&mut self, name: &Name) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "rewrite the file of", name: name.clone() };
        let lines = self.lines;
        let line = lines.to(name).ok_or_else(gone)?;
        self.write(Note::Turn(name)).await?;
        match self.mandate.during(REWRITE_LIMIT, line.defragment()).await {
            Ok(done) => done.map_err(ActError::Etcd),
            Err(unled) => Err(ActError::Unled(unled)),
        }
    }

    /// Gives history up, then writes it down: whoever comes after a crash in between is told by etcd that it was done.
    pub(super) async fn compact(&mut self, revision: Revision) -> Result<(), ActError> {
        self.change(async |line| line.compact(revision.0).await).await?;
        self.write(Note::Compacted(revision)).await
    }

    /// Writes down that every file had its turn.
    pub(super) async fn end_upkeep(&mut self) -> Result<(), ActError> {
        self.write(Note::Ended).await
    }

    async fn write(&mut self, note: Note<'_>) -> Result<(), ActError> {
        let status = self.stock.cluster.status.clone().unwrap_or_default();
        let scribe = Scribe {
            status: &status,
            upkeep: &self.seen.upkeep,
            asked: self.blueprint.spec.defragment.as_ref(),
            now: clock::wall(),
        };
        self.record(scribe.record(note)).await
    }
}
