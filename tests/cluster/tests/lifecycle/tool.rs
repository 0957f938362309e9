//! The binary under test.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use quorate_cluster::kubectl::Kubectl;
use quorate_cluster::paths::Paths;
use quorate_cluster::processes;
use quorate_cluster::settings::{Choice, Settings};
use tokio::process::Command;

/// Long enough to fill an empty cache.
const TOOL_TIMEOUT: Duration = Duration::from_mins(30);

/// `quorate-cluster` and its paths.
pub(crate) struct Tool {
    pub(crate) paths: Paths,
}

impl Tool {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { paths: Paths::from_environment()? })
    }

    /// Runs the tool and returns its standard error.
    pub(crate) async fn run(&self, args: &[&str]) -> Result<String> {
        let shown = args.join(" ");
        let output = tokio::time::timeout(TOOL_TIMEOUT, command(args).output());
        let output = output.await.with_context(|| format!("`quorate-cluster {shown}` hangs"))??;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "`quorate-cluster {shown}` failed:\n{stderr}");
        Ok(stderr)
    }

    /// Starts the tool and kills it (SIGKILL) after a time; 1 if it was killed, 0 if it had
    /// finished.
    pub(crate) async fn run_and_kill(&self, args: &[&str], after: Duration) -> Result<usize> {
        let mut child = command(args).stderr(Stdio::null()).spawn()?;
        if tokio::time::timeout(after, child.wait()).await.is_ok() {
            return Ok(0);
        }
        child.kill().await?;
        Ok(1)
    }

    pub(crate) async fn kubectl(&self) -> Result<Kubectl> {
        let settings = Settings::read(&Choice::default(), &self.paths)?;
        Kubectl::admin(&settings.kubernetes, &self.paths).await
    }

    /// The process of each component.
    pub(crate) fn pids(&self, components: &[&str]) -> Vec<Vec<i32>> {
        let of = |component: &&str| {
            processes::of_component(&self.paths, component)
                .iter()
                .map(processes::Process::pid)
                .collect()
        };
        components.iter().map(of).collect()
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-cluster"));
    // Without a terminal and standard input, as in CI.
    command.kill_on_drop(true);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}
