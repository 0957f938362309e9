//! One start of etcd's container: inspects, decides, and executes etcd or refuses.
//!
//! etcd replaces this process: signals, exit codes and logs are its own then.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::data_dir::{self, DataDirError};
use super::decide::{DataMissing, StartDecision, decide};
use crate::api::start_mode::StartMode;

/// A start.
#[derive(Debug)]
pub struct Start {
    /// The start mode.
    pub start_mode: StartMode,
    /// etcd's data directory.
    pub data: PathBuf,
    /// A directory of the pod that outlives its containers.
    pub pod: PathBuf,
    /// etcd and its flags, except the initial cluster state.
    pub command: Vec<OsString>,
}

/// Why etcd was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The member has lost its data.
    #[error(transparent)]
    Refused(Refused),
    /// Nobody knows what is on the `data_dir`, or it cannot be remembered that etcd `started_before`.
    #[error("failed to inspect the data directory before etcd starts")]
    Unknown(#[source] DataDirError),
    /// etcd could not be executed.
    #[error("failed to start {program}")]
    Exec {
        /// What was started.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A refusal, in words for whoever looks at the pod.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Refused(DataMissing);

/// Replaces this process with etcd, or returns why not.
///
/// # Errors
/// If etcd must not start, or cannot.
pub fn start(start: Start) -> Result<Infallible, StartError> {
    let Start { start_mode, data, pod, command } = start;
    let data_dir = data_dir::inspect(&data).map_err(StartError::Unknown)?;
    let started_before = data_dir::started_before(&pod).map_err(StartError::Unknown)?;
    let state = match decide(start_mode, data_dir, started_before) {
        StartDecision::Start(state) => state,
        StartDecision::Refuse(missing) => return Err(StartError::Refused(Refused(missing))),
    };
    // Recorded before etcd can write a byte: data that is missing afterwards was lost.
    data_dir::mark_started(&pod).map_err(StartError::Unknown)?;
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let source =
        Command::new(&program).args(words).arg(format!("--initial-cluster-state={state}")).exec();
    Err(StartError::Exec { program: program.to_string_lossy().into_owned(), source })
}
