//! Waiting for something to become true: with a deadline, and with what was seen last when it expires.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(150);

/// Looks until `look` returns `Ok`; its `Err` says what is there instead.
///
/// # Errors
/// When the deadline passes: what was waited for, how long, and what was seen last.
pub async fn until<T, F, Fut>(what: &str, deadline: Duration, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let since = Instant::now();
    loop {
        let seen = match tokio::time::timeout(deadline, look()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(seen)) => format!("{seen:#}"),
            Err(_elapsed) => "no answer".to_owned(),
        };
        if since.elapsed() >= deadline {
            bail!(
                "waited {} s for {what}; seen last: {seen}",
                since.elapsed().as_secs()
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}
