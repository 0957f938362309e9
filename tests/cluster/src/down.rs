//! Removes the cluster; only the cache remains.

use anyhow::Result;

use crate::paths::Paths;
use crate::progress::Step;
use crate::stale_resources;

/// Removes everything of a cluster; idempotent.
///
/// # Errors
/// If something cannot be removed.
pub async fn down(paths: &Paths) -> Result<()> {
    let step = Step::begin("removing the local cluster");
    stale_resources::remove(paths).await?;
    step.done("only the cache remains");
    Ok(())
}
