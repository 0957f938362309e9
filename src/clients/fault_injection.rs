//! Fault injection of test builds: abort once at a crash point of an action, and a trace of what was
//! observed and decided. Release builds contain none of it.
//!
//! `QUORATE_FAULT_INJECTION` names a directory. For each crash point without a file in it, the file is
//! created and the process aborts. If it has a file `trace`, each observation is appended as a line.

use serde::Serialize;

/// The process dies here, if it has not done so before.
#[cfg(debug_assertions)]
pub(crate) fn crash_point(action: &str, moment: &str) {
    let Some(dir) = dir() else { return };
    let file = dir.join(format!("{action}.{moment}"));
    // Who comes back finds the file, and lives on.
    if std::fs::File::create_new(file).is_ok() {
        std::process::abort();
    }
}

/// Writes a page into the trace, if one is kept.
#[cfg(debug_assertions)]
pub(crate) fn trace<T: Serialize>(record: impl FnOnce() -> T) {
    use std::io::Write;

    let Some(dir) = dir() else { return };
    let trace = std::fs::OpenOptions::new().append(true).open(dir.join("trace"));
    if let (Ok(mut trace), Ok(mut line)) = (trace, serde_json::to_vec(&record())) {
        line.push(b'\n');
        // A trace that ends early is found too short by whoever reads it.
        drop(trace.write_all(&line));
    }
}

#[cfg(debug_assertions)]
fn dir() -> Option<std::path::PathBuf> {
    std::env::var_os("QUORATE_FAULT_INJECTION").map(Into::into)
}

/// Nobody dies in a release.
#[cfg(not(debug_assertions))]
pub(crate) const fn crash_point(_: &str, _: &str) {}

/// Nobody keeps a trace in a release.
#[cfg(not(debug_assertions))]
pub(crate) fn trace<T: Serialize>(_: impl FnOnce() -> T) {}
