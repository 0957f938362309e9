//! A progress bar: one line that is rewritten on a terminal, a line per tenth elsewhere.

use std::io::{self, IsTerminal};

use anyhow::Result;

use crate::app::print;

const WIDTH: u64 = 30;
/// Without a terminal, one line per tenth.
const TENTHS: u64 = 10;

/// A named progress bar.
pub(super) struct ProgressBar {
    name: String,
    terminal: bool,
    last: Option<(u64, String)>,
}

impl ProgressBar {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), terminal: io::stdout().is_terminal(), last: None }
    }

    /// Prints the progress, if it changed.
    pub(super) fn show(&mut self, done: u64, total: u64, message: &str) -> Result<()> {
        let part = |whole: u64| done.saturating_mul(whole).checked_div(total).unwrap_or(whole);
        let steps = if self.terminal { done } else { part(TENTHS) };
        let stage = message.split(',').next().unwrap_or_default().to_owned();
        let progress = (steps, if self.terminal { message.to_owned() } else { stage });
        if self.last.as_ref() == Some(&progress) {
            return Ok(());
        }
        self.last = Some(progress);
        let line = line(&self.name, part(WIDTH), done, total, message);
        if self.terminal {
            print::stdout(&format!("\r\x1b[2K{line}"))
        } else {
            print::stdout(&format!("{line}\n"))
        }
    }

    /// Prints the last line.
    pub(super) fn end(&self, message: &str) -> Result<()> {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        print::stdout(&format!("{clear}{}\n", message.trim_end()))
    }
}

fn line(name: &str, filled: u64, done: u64, total: u64, message: &str) -> String {
    let symbol = |at| if at < filled { '#' } else { '.' };
    let bar: String = (0..WIDTH).map(symbol).collect();
    format!("{name} [{bar}] {done}/{total} {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_filled_in_proportion() {
        let line = line("objects", 15, 50, 100, "half");
        assert_eq!(line, "objects [###############...............] 50/100 half");
    }
}
