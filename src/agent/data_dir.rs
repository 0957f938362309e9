//! Inspects the data directory of a member, and records that etcd was started in this pod.
//!
//! A directory that cannot be read is an error and never an empty one.

use std::fs;
use std::io;
use std::path::Path;

use super::decide::DataDir;

/// Marks that etcd was started in this pod.
const STARTED_FILE: &str = "etcd-was-started";

/// Why the state of the data directory is unknown.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// A directory cannot be read.
    #[error("failed to read {}", .path.display())]
    Read {
        /// The path.
        path: Box<Path>,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The start of etcd cannot be recorded.
    #[error("failed to write {}", .path.display())]
    Write {
        /// The path.
        path: Box<Path>,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Inspects the data directory of etcd.
pub(super) fn inspect(data: &Path) -> Result<DataDir, DataDirError> {
    let wal = data.join("member").join("wal");
    let is_wal = |name: &str| Path::new(name).extension().is_some_and(|suffix| suffix == "wal");
    if names(&wal)?.unwrap_or_default().iter().any(|name| is_wal(name)) {
        return Ok(DataDir::HasWal);
    }
    Ok(if names(&data.join("member"))?.is_some() { DataDir::Initializing } else { DataDir::Empty })
}

/// The names in a directory; `None` if it does not exist.
fn names(folder: &Path) -> Result<Option<Vec<String>>, DataDirError> {
    let failed = |source| DataDirError::Read { path: folder.into(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect::<Result<_, _>>().map(Some)
}

/// Whether etcd was started in this pod before.
pub(super) fn started_before(pod: &Path) -> Result<bool, DataDirError> {
    let path = pod.join(STARTED_FILE);
    path.try_exists().map_err(|source| DataDirError::Read { path: path.into(), source })
}

/// Records that etcd was started in this pod. The record must be synced before etcd starts.
pub(super) fn mark_started(pod: &Path) -> Result<(), DataDirError> {
    let path = pod.join(STARTED_FILE);
    let written = fs::File::create(&path).and_then(|file| file.sync_all());
    written.map_err(|source| DataDirError::Write { path: path.into(), source })
}
