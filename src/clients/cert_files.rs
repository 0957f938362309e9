//! A certificate and its key in two files of one directory.
//!
//! A file is read up to a bound; its content is validated elsewhere.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The keys of a TLS Secret.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const MAX_BYTES: u64 = 64 * 1024;

/// The contents of both files. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CertFiles {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// Why the files could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// A file could not be read.
    #[error("failed to read {}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file is longer than any certificate.
    #[error("failed to read {}: the file has more than 64 KiB", .0.display())]
    TooLong(PathBuf),
}

/// Reads both files, one after the other: they may be replaced in between.
pub(crate) fn read(folder: &Path) -> Result<CertFiles, ReadError> {
    let certificate = file(folder.join(CERTIFICATE))?;
    let key = file(folder.join(KEY))?;
    Ok(CertFiles { certificate, key })
}

fn file(path: PathBuf) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = File::open(&path)
        .and_then(|file| file.take(MAX_BYTES.saturating_add(1)).read_to_end(&mut bytes));
    match read {
        Ok(_) if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_BYTES) => Ok(bytes),
        Ok(_) => Err(ReadError::TooLong(path)),
        Err(source) => Err(ReadError::File { path, source }),
    }
}

#[cfg(test)]
mod tests;
