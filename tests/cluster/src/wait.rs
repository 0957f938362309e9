//! Waiting for something to become true: with a deadline, and with what was seen last when it expires.

use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(150);

/// Put into an error by who looks, if waiting longer is of no use: the wait ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hopeless;

impl std::fmt::Display for Hopeless {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("it will not come")
    }
}

/// Looks until `look` returns `Ok`; its `Err` says what is there instead.
///
/// # Errors
/// When the deadline passes: what was waited for, how long, and what was seen last.
pub async fn until<T>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let since = Instant::now();
    let mut seen: Option<Error> = None;
    loop {
        let left = deadline.saturating_sub(since.elapsed());
        match tokio::time::timeout(left, look()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) if error.is::<Hopeless>() => {
                return Err(error.context(waited(what, since)));
            }
            Ok(Err(error)) => seen = Some(error),
            // Cut short by the deadline: what was seen before says more.
            Err(_elapsed) => {}
        }
        if since.elapsed() >= deadline {
            let seen = seen.unwrap_or_else(|| anyhow!("no answer"));
            return Err(seen.context("seen last")).with_context(|| waited(what, since));
        }
        tokio::time::sleep(PAUSE.min(deadline.saturating_sub(since.elapsed()))).await;
    }
}

fn waited(what: &str, since: Instant) -> String {
    format!("waited {:.1} s for {what}", since.elapsed().as_secs_f32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_deadline_that_passes_tells_what_was_awaited_and_what_was_seen() {
        let look = async || -> Result<()> { Err(anyhow!("only two of three")) };
        let error = until("three members", Duration::from_millis(20), look).await.unwrap_err();
        let told = format!("{error:#}");
        assert!(told.contains("three members") && told.contains("only two of three"), "{told}");
    }

    #[tokio::test]
    async fn what_is_hopeless_is_not_awaited() {
        let begun = Instant::now();
        let look = async || -> Result<()> { Err(anyhow!("it is dead").context(Hopeless)) };
        let error = until("a sign of life", Duration::from_hours(1), look).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_mins(1), "it waited");
        assert!(format!("{error:#}").contains("it is dead"), "{error:#}");
    }
}
