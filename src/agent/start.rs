//! One start of the container of etcd: inspects the data directory, then executes etcd or refuses.
//!
//! etcd replaces this process, so signals, exit codes and logs are those of etcd.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::data_dir::{self, DataDirError};
use super::decide::{DataMissing, StartDecision, decide};
use crate::api::start_mode::StartMode;

/// Arguments of one start.
#[derive(Debug)]
pub struct Start {
    /// The start mode.
    pub start_mode: StartMode,
    /// Data directory of etcd.
    pub data: PathBuf,
    /// Directory of the pod that outlives its containers.
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
    /// The data directory cannot be inspected, or the start cannot be recorded.
    #[error("failed to inspect the data directory before etcd starts")]
    Unknown(#[source] DataDirError),
    /// etcd could not be executed.
    #[error("failed to start {program}")]
    Exec {
        /// The executable.
        program: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A refusal; its text becomes the termination message of the container.
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
    let mut args = command.into_iter();
    let program = args.next().unwrap_or_default();
    let source =
        Command::new(&program).args(args).arg(format!("--initial-cluster-state={state}")).exec();
    Err(StartError::Exec { program: program.to_string_lossy().into_owned(), source })
}
