//! The provisioner and resizer of volumes: this very program, with the subcommand `volumes`.

use anyhow::{Context, Result};

use super::Plan;
use crate::processes::Daemon;

/// The part's name.
pub const NAME: &str = "volumes";

/// How it runs.
///
/// # Errors
/// If this program cannot find itself.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    // A copy in the state: cargo may replace the original while the cluster runs.
    let program = plan.places.config("quorate-cluster");
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let kubeconfig = plan.places.kubeconfig("volumes");
    let scratch = program.with_extension("new");
    std::fs::create_dir_all(program.parent().unwrap_or(&program))?;
    std::fs::copy(&own, &scratch)?;
    std::fs::rename(&scratch, &program)?;
    Ok(Daemon {
        part: NAME,
        program: program.clone(),
        args: vec!["volumes".into()],
        files: vec![program, kubeconfig],
    })
}
