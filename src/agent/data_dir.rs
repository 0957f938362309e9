//! Inspects the data directory of a member, and records that etcd was started in this pod.
//!
//! A directory that cannot be read is an error and never an empty one.

use std::fs;
use std::io;
use std::path::Path;

use super::decide::DataDir;

/// The file that says that etcd was started in this pod.
const STARTED_FILE: &str = "etcd-was-started";

/// Why the disk is not known.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// A folder cannot be read.
    #[error("failed to read {}", .path.display())]
    Read {
        /// What was read.
        path: Box<Path>,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Nothing can be remembered.
    #[error("failed to write {}", .path.display())]
    Write {
        /// What was written.
        path: Box<Path>,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// What is in etcd's folder.
pub(super) fn inspect(data: &Path) -> Result<DataDir, DataDirError> {
    let log = data.join("member").join("wal");
    let is_log = |name: &str| Path::new(name).extension().is_some_and(|it| it == "wal");
    if names(&log)?.unwrap_or_default().iter().any(|name| is_log(name)) {
        return Ok(DataDir::HasWal);
    }
    Ok(if names(&data.join("member"))?.is_some() { DataDir::Initializing } else { DataDir::Empty })
}

/// The names in a folder; nothing if there is none.
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

/// Remembers that etcd was started in this pod. It must be on the disk before etcd is.
pub(super) fn mark_started(pod: &Path) -> Result<(), DataDirError> {
    let path = pod.join(STARTED_FILE);
    let written = fs::File::create(&path).and_then(|file| file.sync_all());
    written.map_err(|source| DataDirError::Write { path: path.into(), source })
}
