//! What a story may ask of a build for tests: to die at a moment of a deed, once, and to keep a diary of what was seen
//! and decided. In a release there is nothing of it.
//! Comes in: where the work is. Goes out: nothing. May touch: the environment, files, and the life of the process.
//! `QUORATE_REHEARSAL` names a folder. For each moment that it has no file of, it gets one and the process dies as if
//! it were killed. With a file `diary` in it, each look is written to its end as a line.

use serde::Serialize;

/// The process dies here, if it has not done so before.
#[cfg(debug_assertions)]
pub(crate) fn moment(deed: &str, moment: &str) {
    let Some(folder) = folder() else { return };
    let file = folder.join(format!("{deed}.{moment}"));
    // Who comes back finds the file, and lives on.
    if std::fs::File::create_new(file).is_ok() {
        std::process::abort();
    }
}

/// Writes a page into the diary, if one is kept.
#[cfg(debug_assertions)]
pub(crate) fn page(of: &impl Serialize) {
    use std::io::Write;

    let Some(folder) = folder() else { return };
    let diary = std::fs::OpenOptions::new().append(true).open(folder.join("diary"));
    if let (Ok(mut diary), Ok(mut line)) = (diary, serde_json::to_vec(of)) {
        line.push(b'\n');
        // A diary that ends early is found too short by whoever reads it.
        drop(diary.write_all(&line));
    }
}

#[cfg(debug_assertions)]
fn folder() -> Option<std::path::PathBuf> {
    std::env::var_os("QUORATE_REHEARSAL").map(Into::into)
}

/// Nobody dies in a release.
#[cfg(not(debug_assertions))]
pub(crate) const fn moment(_: &str, _: &str) {}

/// Nobody keeps a diary in a release.
#[cfg(not(debug_assertions))]
pub(crate) const fn page(_: &impl Serialize) {}
