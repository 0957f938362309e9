//! One start of etcd's container: looks, decides, and becomes etcd or refuses.
//! Comes in: what the pod was told, its folders, and etcd's command. Goes out: nothing if etcd runs, else
//! why it does not. May touch: the member's volumes, and this process, which etcd replaces: signals,
//! exit codes and logs are etcd's own then.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::decide::{Lost, Verdict, decide};
use super::disk::{self, Unreadable};
use crate::api::told::Told;

/// A start.
#[derive(Debug)]
pub struct Start {
    /// What the operator told the pod.
    pub told: Told,
    /// etcd's own folder.
    pub data: PathBuf,
    /// A folder of the pod that outlives its containers.
    pub pod: PathBuf,
    /// etcd and its flags, but for how it starts.
    pub command: Vec<OsString>,
}

/// Why etcd does not run.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// It must not.
    #[error(transparent)]
    Refused(Refused),
    /// Nobody knows what is on the disk, or it cannot be remembered that etcd ran.
    #[error("failed to look before etcd starts")]
    Unknown(#[source] Unreadable),
    /// There is no etcd to start.
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
pub struct Refused(Lost);

/// Becomes etcd, or says why not.
///
/// # Errors
/// If etcd must not start, or cannot.
pub fn start(start: Start) -> Result<Infallible, NotStarted> {
    let Start { told, data, pod, command } = start;
    let disk = disk::look(&data).map_err(NotStarted::Unknown)?;
    let ran = disk::ran(&pod).map_err(NotStarted::Unknown)?;
    let state = match decide(told, disk, ran) {
        Verdict::Start(state) => state,
        Verdict::Refuse(lost) => return Err(NotStarted::Refused(Refused(lost))),
    };
    // Before etcd can write a byte: if the data goes afterwards, this must tell.
    disk::remember(&pod).map_err(NotStarted::Unknown)?;
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let source =
        Command::new(&program).args(words).arg(format!("--initial-cluster-state={state}")).exec();
    Err(NotStarted::Exec { program: program.to_string_lossy().into_owned(), source })
}
