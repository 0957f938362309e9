//! Looks at a member's data, and remembers beside it that etcd was started.
//! Comes in: two folders: etcd's data, and one of the pod's that outlives its containers.
//! Goes out: what is there. May touch: those folders. What cannot be read is an error and never an
//! empty disk.

use std::fs;
use std::io;
use std::path::Path;

use super::decide::Disk;

/// The file that says that etcd was started in this pod.
const RAN: &str = "etcd-was-started";

/// Why the disk is not known.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
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
pub(super) fn look(data: &Path) -> Result<Disk, Unreadable> {
    let log = data.join("member").join("wal");
    let is_log = |name: &str| Path::new(name).extension().is_some_and(|it| it == "wal");
    if names(&log)?.unwrap_or_default().iter().any(|name| is_log(name)) {
        return Ok(Disk::Log);
    }
    Ok(if names(&data.join("member"))?.is_some() { Disk::Begun } else { Disk::Empty })
}

/// The names in a folder; nothing if there is none.
fn names(folder: &Path) -> Result<Option<Vec<String>>, Unreadable> {
    let failed = |source| Unreadable::Read { path: folder.into(), source };
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
pub(super) fn ran(pod: &Path) -> Result<bool, Unreadable> {
    let path = pod.join(RAN);
    path.try_exists().map_err(|source| Unreadable::Read { path: path.into(), source })
}

/// Remembers that etcd was started in this pod. It must be on the disk before etcd is.
pub(super) fn remember(pod: &Path) -> Result<(), Unreadable> {
    let path = pod.join(RAN);
    let written = fs::File::create(&path).and_then(|file| file.sync_all());
    written.map_err(|source| Unreadable::Write { path: path.into(), source })
}
