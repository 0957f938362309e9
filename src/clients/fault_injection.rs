//! Fault injection of test builds: abort once at a crash point of an action, and a trace of what
//! was observed and decided. Release builds contain none of it.
//!
//! `QUORATE_FAULT_INJECTION` names a directory. For each crash point without a file in it, the file
//! is created and the process aborts. If it has a file `trace`, each observation is appended as a
//! line.

use serde::Serialize;

/// Aborts the process, the first time this crash point is reached.
#[cfg(debug_assertions)]
pub(crate) fn crash_point(action: &str, point: &str) {
    let Some(dir) = dir() else { return };
    let file = dir.join(format!("{action}.{point}"));
    // The next process finds the file and continues.
    if std::fs::File::create_new(file).is_ok() {
        std::process::abort();
    }
}

/// Appends a record to the trace, if the file exists.
#[cfg(debug_assertions)]
pub(crate) fn trace<T: Serialize>(record: impl FnOnce() -> T) {
    use std::io::Write;

    let Some(dir) = dir() else { return };
    let trace = std::fs::OpenOptions::new().append(true).open(dir.join("trace"));
    if let (Ok(mut trace), Ok(mut line)) = (trace, serde_json::to_vec(&record())) {
        line.push(b'\n');
        // The reader detects a trace that is too short.
        drop(trace.write_all(&line));
    }
}

#[cfg(debug_assertions)]
fn dir() -> Option<std::path::PathBuf> {
    std::env::var_os("QUORATE_FAULT_INJECTION").map(Into::into)
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(crate) const fn crash_point(_: &str, _: &str) {}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(crate) fn trace<T: Serialize>(_: impl FnOnce() -> T) {}
