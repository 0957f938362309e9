//! Writing files so that a reader never sees half of one, and nobody is woken by a write that changes nothing.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
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

fn write_with(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    if std::fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let write = || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let scratch = path.with_extension("new");
        std::fs::write(&scratch, content)?;
        std::fs::set_permissions(&scratch, Permissions::from_mode(mode))?;
        std::fs::rename(&scratch, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
