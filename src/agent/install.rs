//! Copies this binary to a volume that the container of etcd mounts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File name of the copy.
pub(super) const BINARY: &str = "quorate";

/// Why the binary was not copied.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The path of this binary is unknown.
    #[error("failed to find this binary")]
    Find(#[source] io::Error),
    /// The copy failed.
    #[error("failed to copy this binary to {}", .to.display())]
    Copy {
        /// The target.
        to: Box<Path>,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Copies this binary into `folder`, with an atomic rename: an init container may run again while
/// another container uses the copy.
///
/// # Errors
/// If the binary cannot be read or written.
pub fn install(folder: &Path) -> Result<PathBuf, InstallError> {
    let own = std::env::current_exe().map_err(InstallError::Find)?;
    let (partial, copy) = (folder.join(".quorate.new"), folder.join(BINARY));
    let failed = |source| InstallError::Copy { to: copy.as_path().into(), source };
    fs::copy(own, &partial).map_err(failed)?;
    fs::rename(&partial, &copy).map_err(failed)?;
    Ok(copy)
}
