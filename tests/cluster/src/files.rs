//! Writes files atomically, and only if their content changes, so that no watch fires needlessly.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a world-readable file.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, content.as_ref(), 0o644)
}

/// Writes a file that only root can read.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, content.as_ref(), 0o600)
}

/// Creates a folder that only root can read.
///
/// # Errors
/// If the folder cannot be created.
pub fn private_folder(path: &Path) -> Result<()> {
    let make = || {
        std::fs::create_dir_all(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o700))
    };
    make().with_context(|| format!("cannot create {}", path.display()))
}

fn write_with(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let write = || {
        if std::fs::read(path).is_ok_and(|present| present == content) {
            return std::fs::set_permissions(path, Permissions::from_mode(mode));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let scratch = path.with_extension("new");
        drop(std::fs::remove_file(&scratch));
        // Created with its final mode: a key must never be readable for others.
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(&scratch)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&scratch, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
