//! Progress output: a line for each finished step, and the elapsed time of the running step.
//!
//! All on standard error, so that standard output has only the result of `kubeconfig` and similar.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A terminal redraws the line each second; a log file gets a line each half minute.
const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);
const LOG_FILE_INTERVAL: Duration = Duration::from_secs(30);

/// Writes one line to standard error; a closed standard error is ignored.
pub fn log(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// A long step, printed with its elapsed time until it is finished or dropped.
#[derive(Debug)]
pub struct Step {
    what: String,
    since: Instant,
    detail: Arc<Mutex<String>>,
    finished: Arc<AtomicBool>,
}

impl Step {
    /// Starts a step.
    #[must_use]
    pub fn begin(what: impl Into<String>) -> Self {
        let step = Self {
            what: what.into(),
            since: Instant::now(),
            detail: Arc::default(),
            finished: Arc::default(),
        };
        let (what, since) = (step.what.clone(), step.since);
        let (detail, finished) = (Arc::clone(&step.detail), Arc::clone(&step.finished));
        let terminal = std::io::stderr().is_terminal();
        tokio::spawn(async move {
            let interval = if terminal { TERMINAL_INTERVAL } else { LOG_FILE_INTERVAL };
            loop {
                tokio::time::sleep(interval).await;
                if finished.load(Ordering::Relaxed) {
                    break;
                }
                let detail = detail.lock().map(|text| text.clone()).unwrap_or_default();
                let line = format!("  .. {what} {}{}", clock(since.elapsed()), dash(&detail));
                if terminal {
                    drop(write!(std::io::stderr(), "\r\x1b[2K{line}"));
                } else {
                    log(&line);
                }
            }
        });
        step
    }

    /// Sets the progress of the step, which is printed with the next update.
    pub fn detail(&self, text: impl Into<String>) {
        if let Ok(mut detail) = self.detail.lock() {
            *detail = text.into();
        }
    }

    /// Finishes the step with a line.
    pub fn done(self, outcome: &str) {
        self.finished.store(true, Ordering::Relaxed);
        let clear = if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
        log(&format!("{clear}  ok {} {}{}", self.what, clock(self.since.elapsed()), dash(outcome)));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.finished.store(true, Ordering::Relaxed);
    }
}

fn dash(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" - {text}") }
}

/// `4.2 s` below a minute, `3 min 07 s` above.
#[must_use]
pub fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    if seconds < 60 {
        format!("{:.1} s", elapsed.as_secs_f32())
    } else {
        format!("{} min {:02} s", seconds.div_euclid(60), seconds.rem_euclid(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_has_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_millis(4_230)), "4.2 s");
        assert_eq!(clock(Duration::from_secs(187)), "3 min 07 s");
    }
}
