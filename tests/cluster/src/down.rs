//! Ending the cluster: nothing stays but the cache.

use anyhow::Result;

use crate::leftovers;
use crate::places::Places;
use crate::progress::Step;

/// Ends whatever is there of a cluster. Twice is harmless.
///
/// # Errors
/// If something cannot be removed.
pub async fn down(places: &Places) -> Result<()> {
    let step = Step::begin("removing the local cluster");
    leftovers::remove(places).await?;
    step.done("nothing of it is left but the cache");
    Ok(())
}
