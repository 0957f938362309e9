//! Locks between processes: file locks, which the kernel releases when the holder ends.

use std::fs::{File, OpenOptions};
use std::path::Path;

use anyhow::{Context, Result};

/// The file of a lock, not yet locked.
///
/// # Errors
/// If the file cannot be created.
pub fn open(path: &Path) -> Result<File> {
    let open = || {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        OpenOptions::new().create(true).truncate(false).write(true).open(path)
    };
    open().with_context(|| format!("cannot open the lock {}", path.display()))
}

/// Waits for the exclusive lock; `waiting` is called if another process holds it.
///
/// # Errors
/// If the file cannot be created or locked.
pub fn exclusive(path: &Path, waiting: impl FnOnce()) -> Result<File> {
    let file = open(path)?;
    if file.try_lock().is_err() {
        waiting();
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
