//! A progress bar: one line that is rewritten on a terminal, a line per tenth elsewhere.

use std::io::{self, IsTerminal};

use anyhow::Result;

use crate::app::print;

const WIDTH: u64 = 30;
/// Where nobody watches, a line for each tenth is enough.
const TENTHS: u64 = 10;

/// A bar under a name.
pub(super) struct ProgressBar {
    name: String,
    terminal: bool,
    last: Option<(u64, String)>,
}

impl ProgressBar {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), terminal: io::stdout().is_terminal(), last: None }
    }

    /// Shows how far it is, if that is news.
    pub(super) fn show(&mut self, done: u64, total: u64, words: &str) -> Result<()> {
        let part = |whole: u64| done.saturating_mul(whole).checked_div(total).unwrap_or(whole);
        let steps = if self.terminal { done } else { part(TENTHS) };
        let stage = words.split(',').next().unwrap_or_default().to_owned();
        let news = (steps, if self.terminal { words.to_owned() } else { stage });
        if self.last.as_ref() == Some(&news) {
            return Ok(());
        }
        self.last = Some(news);
        let line = line(&self.name, part(WIDTH), done, total, words);
        if self.terminal {
            print::stdout(&format!("\r\x1b[2K{line}"))
        } else {
            print::stdout(&format!("{line}\n"))
        }
    }

    /// The last line, in whole words.
    pub(super) fn end(&self, words: &str) -> Result<()> {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        print::stdout(&format!("{clear}{}\n", words.trim_end()))
    }
}

fn line(name: &str, filled: u64, done: u64, total: u64, words: &str) -> String {
    let mark = |at| if at < filled { '#' } else { '.' };
    let bar: String = (0..WIDTH).map(mark).collect();
    format!("{name} [{bar}] {done}/{total} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let line = line("things", 15, 50, 100, "half");
        assert_eq!(line, "things [###############...............] 50/100 half");
    }
}
