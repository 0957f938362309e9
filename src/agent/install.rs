//! Copies this binary to where the container of etcd finds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What the copy is called.
pub(super) const BINARY: &str = "quorate";

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// This program cannot find itself.
    #[error("failed to find this program")]
    Find(#[source] io::Error),
    /// It cannot be copied.
    #[error("failed to copy this program to {}", .to.display())]
    Copy {
        /// Where to.
        to: Box<Path>,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Copies this program into `folder`. The copy takes its place whole: an init container may be run
/// again beside a container that uses it.
///
/// # Errors
/// If it cannot be read or written.
pub fn install(folder: &Path) -> Result<PathBuf, InstallError> {
    let own = std::env::current_exe().map_err(InstallError::Find)?;
    let (half, whole) = (folder.join(".quorate.new"), folder.join(BINARY));
    let failed = |source| InstallError::Copy { to: whole.as_path().into(), source };
    fs::copy(own, &half).map_err(failed)?;
    fs::rename(&half, &whole).map_err(failed)?;
    Ok(whole)
}
