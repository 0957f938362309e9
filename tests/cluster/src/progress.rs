//! What people see while the tool works: a line when something is done, and signs of life meanwhile.
//!
//! Everything goes to standard error, so that standard output stays clean for `kubeconfig` and the like.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// On a terminal the line is drawn anew each second; in a log file a line each half minute will do.
const ON_TERMINAL: Duration = Duration::from_secs(1);
const IN_LOG_FILE: Duration = Duration::from_secs(30);

/// Writes one line to standard error. A closed standard error is nobody's fault.
pub fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// A long step: says what it is doing and for how long, until it is finished or dropped.
#[derive(Debug)]
pub struct Step {
    what: String,
    since: Instant,
    detail: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
}

impl Step {
    /// Begins a step.
    #[must_use]
    pub fn begin(what: impl Into<String>) -> Self {
        let step = Self {
            what: what.into(),
            since: Instant::now(),
            detail: Arc::default(),
            over: Arc::default(),
        };
        let (what, since) = (step.what.clone(), step.since);
        let (detail, over) = (Arc::clone(&step.detail), Arc::clone(&step.over));
        let terminal = std::io::stderr().is_terminal();
        tokio::spawn(async move {
            let pause = if terminal { ON_TERMINAL } else { IN_LOG_FILE };
            loop {
                tokio::time::sleep(pause).await;
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let detail = detail.lock().map(|text| text.clone()).unwrap_or_default();
                let line = format!("  .. {what} {}{}", clock(since.elapsed()), dash(&detail));
                if terminal {
                    drop(write!(std::io::stderr(), "\r\x1b[2K{line}"));
                } else {
                    say(&line);
                }
            }
        });
        step
    }

    /// Says how far the step has come; shown with the next sign of life.
    pub fn detail(&self, text: impl Into<String>) {
        if let Ok(mut detail) = self.detail.lock() {
            *detail = text.into();
        }
    }

    /// Ends the step with a line of its own.
    pub fn done(self, outcome: &str) {
        self.over.store(true, Ordering::Relaxed);
        let clear = if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
        say(&format!("{clear}  ok {} {}{}", self.what, clock(self.since.elapsed()), dash(outcome)));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
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
    fn elapsed_time_reads_as_people_say_it() {
        assert_eq!(clock(Duration::from_millis(4_230)), "4.2 s");
        assert_eq!(clock(Duration::from_secs(187)), "3 min 07 s");
    }
}
