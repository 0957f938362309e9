//! Locks between processes: held by a file, and gone with whoever held them, however it ended.

use std::fs::{File, OpenOptions};
use std::path::Path;

use anyhow::{Context, Result};

/// The file of a lock, not yet locked.
///
/// # Errors
/// If the file cannot be made.
pub fn open(path: &Path) -> Result<File> {
    let open = || {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        OpenOptions::new().create(true).truncate(false).write(true).open(path)
    };
    open().with_context(|| format!("cannot open the lock {}", path.display()))
}

/// Waits until nobody else holds the lock; `waiting` is called if that is not at once.
///
/// # Errors
/// If the file cannot be made or locked.
pub fn alone(path: &Path, waiting: impl FnOnce()) -> Result<File> {
    let file = open(path)?;
    if file.try_lock().is_err() {
        waiting();
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
