//! Waits for a condition, with a deadline and the last error when it expires.

use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};

/// The interval between checks.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// Context of an error that ends the wait immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecoverable;

impl std::fmt::Display for Unrecoverable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("cannot recover")
    }
}

/// Repeats `check` until it returns `Ok`.
///
/// # Errors
/// When the deadline passes: what was waited for, how long, and the last error.
pub async fn until<T>(
    what: &str,
    deadline: Duration,
    mut check: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let since = Instant::now();
    let mut last_error: Option<Error> = None;
    loop {
        let left = deadline.saturating_sub(since.elapsed());
        match tokio::time::timeout(left, check()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) if error.is::<Unrecoverable>() => {
                return Err(error.context(waited(what, since)));
            }
            Ok(Err(error)) => last_error = Some(error),
            // Interrupted by the deadline: the previous error is more useful.
            Err(_elapsed) => {}
        }
        if since.elapsed() >= deadline {
            let error = last_error.unwrap_or_else(|| anyhow!("no response"));
            return Err(error.context("last error")).with_context(|| waited(what, since));
        }
        tokio::time::sleep(POLL_INTERVAL.min(deadline.saturating_sub(since.elapsed()))).await;
    }
}

fn waited(what: &str, since: Instant) -> String {
    format!("waited {:.1} s for {what}", since.elapsed().as_secs_f32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn expired_deadline_reports_the_condition_and_the_last_error() {
        let check = async || -> Result<()> { Err(anyhow!("only two of three")) };
        let error = until("three members", Duration::from_millis(20), check).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("three members") && text.contains("only two of three"), "{text}");
    }

    #[tokio::test]
    async fn unrecoverable_error_ends_the_wait() {
        let start = Instant::now();
        let check = async || -> Result<()> { Err(anyhow!("process ended").context(Unrecoverable)) };
        let error = until("a response", Duration::from_hours(1), check).await.unwrap_err();
        assert!(start.elapsed() < Duration::from_mins(1), "waited for the deadline");
        assert!(format!("{error:#}").contains("process ended"), "{error:#}");
    }
}
