//! Tasks that run only while this replica leads.
//!
//! When leadership ends, the tasks are aborted and awaited before another term may start them. The
//! webhook server is independent of leadership.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

use crate::api::leadership::Leadership;
use crate::clients::clock::Clock;
use crate::telemetry::error_chain;

/// A task that awaits a response stops when it is aborted; one that does not stop within this time
/// blocks a thread, and only the exit of the process is certain to stop it.
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);
/// A task that exits is restarted after this delay.
const RESTART_DELAY: Duration = Duration::from_secs(5);

/// A task that only the leader runs.
pub(super) struct LeaderTask {
    /// The name in the log.
    pub(super) name: &'static str,
    /// The future, which runs until it is aborted.
    pub(super) work: BoxFuture<'static, ()>,
}

/// Runs leader tasks according to leader election.
pub(super) struct LeaderTasks {
    pub(super) leadership: watch::Receiver<Leadership>,
    /// The clock of the leadership deadlines.
    pub(super) clock: Clock,
}

impl LeaderTasks {
    /// Runs the leader tasks in each term of this replica, until `stop` completes.
    ///
    /// # Errors
    /// If a leader task cannot be stopped: the process must exit, because two replicas could act.
    pub(super) async fn serve(
        mut self,
        leader_tasks: impl Fn() -> Vec<LeaderTask>,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = self.wait_for_lead() => {}
            }
            let mut tasks = JoinSet::new();
            let stopped = loop {
                for LeaderTask { name, work } in leader_tasks() {
                    tasks.spawn(async move {
                        work.await;
                        name
                    });
                }
                tokio::select! {
                    () = &mut stop => break true,
                    () = self.wait_for_loss() => break false,
                    Some(exit) = tasks.join_next() => log_exit(exit),
                }
                abort(&mut tasks).await?;
                tokio::select! {
                    () = &mut stop => break true,
                    () = self.wait_for_loss() => break false,
                    () = time::sleep(RESTART_DELAY) => {}
                }
            };
            abort(&mut tasks).await?;
            if stopped {
                return Ok(());
            }
        }
    }

    fn is_leading(&self) -> bool {
        self.leadership.borrow().holds_at(self.clock.now())
    }

    async fn wait_for_lead(&mut self) {
        while !self.is_leading() {
            if self.leadership.changed().await.is_err() {
                // Leader election has stopped, so this replica does not lead.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Completes when leadership is lost or was not renewed in time.
    async fn wait_for_loss(&mut self) {
        loop {
            let left = self.leadership.borrow_and_update().time_left(self.clock.now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                changed = self.leadership.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = time::sleep(left) => {}
            }
        }
    }
}

/// Aborts the tasks, and waits until they have stopped.
async fn abort(tasks: &mut JoinSet<&'static str>) -> Result<()> {
    tasks.abort_all();
    let ended = async { while tasks.join_next().await.is_some() {} };
    if time::timeout(ABORT_TIMEOUT, ended).await.is_err() {
        bail!("a leader task did not stop within {}s", ABORT_TIMEOUT.as_secs());
    }
    Ok(())
}

fn log_exit(exit: Result<&'static str, tokio::task::JoinError>) {
    match exit {
        Ok(task) => tracing::error!(task, "leader task exited unexpectedly; restarting"),
        Err(error) => {
            tracing::error!(error = error_chain(&error), "leader task failed; restarting");
        }
    }
}

#[cfg(test)]
mod tests;
