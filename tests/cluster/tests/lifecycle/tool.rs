//! The program under test, as a user runs it.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use quorate_cluster::kubectl::Kubectl;
use quorate_cluster::places::Places;
use quorate_cluster::processes;
use quorate_cluster::settings::{Choice, Settings};
use tokio::process::Command;

/// A cold cache is filled within this, too.
const PATIENCE: Duration = Duration::from_mins(30);

/// `quorate-cluster`, and where its cluster is.
pub(crate) struct Tool {
    pub(crate) places: Places,
}

impl Tool {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { places: Places::from_environment()? })
    }

    /// Runs it to the end and returns what it said.
    pub(crate) async fn run(&self, args: &[&str]) -> Result<String> {
        let shown = args.join(" ");
        let output = tokio::time::timeout(PATIENCE, command(args).output());
        let output = output.await.with_context(|| format!("`quorate-cluster {shown}` hangs"))??;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "`quorate-cluster {shown}` failed:\n{said}");
        Ok(said)
    }

    /// Starts it and kills it (SIGKILL) after a while; 1 if it was killed, 0 if it was faster.
    pub(crate) async fn run_and_kill(&self, args: &[&str], after: Duration) -> Result<usize> {
        let mut child = command(args).stderr(Stdio::null()).spawn()?;
        if tokio::time::timeout(after, child.wait()).await.is_ok() {
            return Ok(0);
        }
        child.kill().await?;
        Ok(1)
    }

    pub(crate) async fn kubectl(&self) -> Result<Kubectl> {
        let settings = Settings::read(&Choice::default(), &self.places)?;
        Kubectl::admin(&settings.kubernetes, &self.places).await
    }

    /// The process of each part.
    pub(crate) fn pids(&self, parts: &[&str]) -> Vec<Vec<i32>> {
        let of = |part: &&str| {
            processes::of_part(&self.places, part).iter().map(processes::Process::pid).collect()
        };
        parts.iter().map(of).collect()
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-cluster"));
    // Not a terminal, and nothing to read: as in CI.
    command.kill_on_drop(true);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}
