//! The provisioner and resizer of volumes: this binary, with the subcommand `volumes`.

use anyhow::{Context, Result};

use super::Plan;
use crate::processes::Daemon;

/// The component's name.
pub const NAME: &str = "volumes";

/// The process to run.
///
/// # Errors
/// If the path of this binary is unknown.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    // A copy in the state folder: cargo may replace the original while the cluster runs.
    let program = plan.paths.config("quorate-cluster");
    let own = std::env::current_exe().context("cannot determine the path of this binary")?;
    let kubeconfig = plan.paths.kubeconfig("volumes");
    let scratch = program.with_extension("new");
    std::fs::create_dir_all(program.parent().unwrap_or(&program))?;
    std::fs::copy(&own, &scratch)?;
    std::fs::rename(&scratch, &program)?;
    Ok(Daemon {
        component: NAME,
        program: program.clone(),
        args: vec!["volumes".into()],
        files: vec![program, kubeconfig],
    })
}
