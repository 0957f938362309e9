//! What only the leader does, begun with each term and ended with it.
//! Comes in: what the election says, and the tasks of a leader. Goes out: those tasks, running while
//! this replica leads and at no other time. May touch: tasks and the monotonic clock. When a term
//! ends its tasks are aborted and waited for before another may begin; the webhooks know nothing
//! of it.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

use crate::api::leadership::Leadership;
use crate::ports::clock::Clock;
use crate::telemetry::chain;

/// A task that waits for an answer ends when it is told to; one that does not end within this time
/// holds a thread, and then only the end of the process is sure to stop it.
const ABORT_LIMIT: Duration = Duration::from_secs(5);
/// A task that ends by itself is begun again after this pause.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// A task of the leader.
pub(super) struct Duty {
    /// What it is called in the log.
    pub(super) name: &'static str,
    /// The work. It goes on until it is aborted.
    pub(super) work: BoxFuture<'static, ()>,
}

/// The election, as the duties see it.
pub(super) struct Terms {
    /// What it says.
    pub(super) told: watch::Receiver<Leadership>,
    /// The clock by which its terms count.
    pub(super) clock: Clock,
}

impl Terms {
    /// Keeps the duties running in each of this replica's terms, until `stop` is done.
    ///
    /// # Errors
    /// If a duty cannot be ended: the process must not go on, because two replicas could act.
    pub(super) async fn serve(
        mut self,
        duties: impl Fn() -> Vec<Duty>,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = self.begins() => {}
            }
            let mut tasks = JoinSet::new();
            let stopped = loop {
                for Duty { name, work } in duties() {
                    tasks.spawn(async move {
                        work.await;
                        name
                    });
                }
                tokio::select! {
                    () = &mut stop => break true,
                    () = self.ends() => break false,
                    Some(ended) = tasks.join_next() => tell_ended(ended),
                }
                abort(&mut tasks).await?;
                tokio::select! {
                    () = &mut stop => break true,
                    () = self.ends() => break false,
                    () = time::sleep(RESTART_PAUSE) => {}
                }
            };
            abort(&mut tasks).await?;
            if stopped {
                return Ok(());
            }
        }
    }

    fn holds(&self) -> bool {
        self.told.borrow().holds_at(self.clock.now())
    }

    async fn begins(&mut self) {
        while !self.holds() {
            if self.told.changed().await.is_err() {
                // Nobody can say any more who leads, so this replica does not.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Is done when the term is: because the election says so, or because it was not renewed.
    async fn ends(&mut self) {
        loop {
            let left = self.told.borrow_and_update().time_left(self.clock.now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                changed = self.told.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = time::sleep(left) => {}
            }
        }
    }
}

/// Ends the tasks, and waits until they have ended.
async fn abort(tasks: &mut JoinSet<&'static str>) -> Result<()> {
    tasks.abort_all();
    let ended = async { while tasks.join_next().await.is_some() {} };
    if time::timeout(ABORT_LIMIT, ended).await.is_err() {
        bail!("a task of the leader did not end within {}s", ABORT_LIMIT.as_secs());
    }
    Ok(())
}

fn tell_ended(ended: Result<&'static str, tokio::task::JoinError>) {
    match ended {
        Ok(what) => tracing::error!(what, "ended though nobody had asked; begun again soon"),
        Err(error) => {
            tracing::error!(
                error = chain(&error),
                "a task of the leader ended badly; begun again soon"
            );
        }
    }
}

#[cfg(test)]
mod tests;
