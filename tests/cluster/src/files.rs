//! Writing files so that a reader never sees half of one, and nobody is woken by a write that changes nothing.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file for everybody to read.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, content.as_ref(), 0o644)
}

/// Writes a file for root alone.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, content.as_ref(), 0o600)
}

/// Makes a folder that only root can look into.
///
/// # Errors
/// If it cannot be made.
pub fn private_folder(path: &Path) -> Result<()> {
    let make = || {
        std::fs::create_dir_all(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o700))
    };
    make().with_context(|| format!("cannot make {}", path.display()))
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
        // With its mode from the first moment: a key must not be readable for a while.
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(&scratch)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&scratch, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
