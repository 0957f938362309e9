//! Starts, finds and ends the processes of the cluster.
//!
//! There are no PID files. The environment of a component has its name and the fingerprint of its
//! configuration, so the process table is the record: it cannot be stale, it survives a `kill -9`
//! of this tool at any time, and an unrelated process is never taken for a component.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sha2::{Digest, Sha256};

use crate::binaries::hex;
use crate::paths::Paths;
use crate::wait::Unrecoverable;
use crate::{command, host, wait};

const STATE: &str = "QUORATE_CLUSTER_OWNER";
const PART: &str = "QUORATE_CLUSTER_PART";
const PROGRAM: &str = "QUORATE_CLUSTER_PROGRAM";
const FINGERPRINT: &str = "QUORATE_CLUSTER_FINGERPRINT";
/// Time between SIGTERM and SIGKILL.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// A component that should run.
#[derive(Debug)]
pub struct Daemon {
    /// Name of the component and of its log file.
    pub component: &'static str,
    /// The binary.
    pub program: PathBuf,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Configuration files: the component is restarted when one of them changes.
    pub files: Vec<PathBuf>,
}

/// Whether a component had to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ensured {
    /// It runs already with the same configuration.
    Unchanged,
    /// It was started or restarted.
    Started,
}

impl Daemon {
    /// Starts the component unless it runs with its current configuration.
    ///
    /// # Errors
    /// If the component cannot be ended or started.
    pub async fn ensure(&self, paths: &Paths) -> Result<Ensured> {
        let fingerprint = self.fingerprint()?;
        let running = of_component(paths, self.component);
        if let [only] = running.as_slice()
            && only.variable(FINGERPRINT).as_deref() == Some(&fingerprint)
        {
            // A killed test may have left it stopped (SIGSTOP).
            only.signal(Signal::CONT)?;
            return Ok(Ensured::Unchanged);
        }
        end(&running, SHUTDOWN_GRACE).await?;
        self.start(paths, &fingerprint)
            .await
            .with_context(|| format!("cannot start {}", self.component))?;
        Ok(Ensured::Started)
    }

    async fn start(&self, paths: &Paths, fingerprint: &str) -> Result<()> {
        let log = paths.log(self.component);
        std::fs::create_dir_all(log.parent().unwrap_or(Path::new("/")))?;
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let program = self.program.canonicalize()?;
        // In a separate session, so that neither Ctrl-C nor a closed terminal ends it, and without
        // the caller's environment: a proxy, a token or an ETCD_ variable would change its
        // behaviour.
        let mut child = Command::new("/usr/bin/setsid")
            .arg(&program)
            .args(&self.args)
            .env_clear()
            .env("PATH", host::PATH)
            .env("HOME", paths.state())
            .env(STATE, paths.state())
            .env(PART, self.component)
            .env(PROGRAM, &program)
            .env(FINGERPRINT, fingerprint)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir("/")
            .spawn()?;
        wait::until("the process", Duration::from_secs(5), async || match child.try_wait()? {
            Some(status) => Err(anyhow!("ended with {status}").context(Unrecoverable)),
            None if of_component(paths, self.component).is_empty() => bail!("no process yet"),
            None => Ok(()),
        })
        .await
    }

    fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(self.program.as_os_str().as_encoded_bytes());
        for arg in &self.args {
            hash.update(b"\0");
            hash.update(arg.as_encoded_bytes());
        }
        for file in &self.files {
            let content =
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            hash.update(content);
        }
        Ok(hex(&hash.finalize()))
    }
}

/// A process, held by a pidfd, which never refers to another process.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    handle: rustix::fd::OwnedFd,
}

impl Process {
    /// The process with this PID, if it exists.
    #[must_use]
    pub fn open(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    /// The PID.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal; a process that has ended is no error.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(anyhow!(error).context(format!("cannot signal process {}", self.pid())))
            }
        }
    }

    /// True until the process has ended; a zombie has ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        // The pidfd becomes readable when the process ends.
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
    }

    fn parent(&self) -> Option<i32> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    }

    fn variable(&self, name: &str) -> Option<String> {
        let environ = std::fs::read(format!("/proc/{}/environ", self.pid())).ok()?;
        environ.split(|byte| *byte == 0).find_map(|entry| {
            let entry = String::from_utf8_lossy(entry);
            entry.strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
        })
    }

    fn program(&self) -> Option<PathBuf> {
        let link = std::fs::read_link(format!("/proc/{}/exe", self.pid())).ok()?;
        let text = link.to_string_lossy();
        Some(PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text)))
    }
}

/// All processes started by components of this cluster, except those in containers.
#[must_use]
pub fn of_cluster(paths: &Paths) -> Vec<Process> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(Process::open)
        .filter(|process| process.variable(STATE).as_deref() == paths.state().to_str())
        // Still alive, so the environment that was read is its own and not that of a reused PID.
        .filter(Process::is_alive)
        .collect()
}

/// The processes of a component, without their children (a kubelet runs `mount`, containerd shims).
#[must_use]
pub fn of_component(paths: &Paths, component: &str) -> Vec<Process> {
    let mut found = of_cluster(paths);
    found.retain(|process| {
        process.variable(PART).as_deref() == Some(component)
            && process.program().is_some_and(|program| {
                process.variable(PROGRAM).is_some_and(|started| Path::new(&started) == program)
            })
    });
    // A child between fork and exec has the environment and binary of its parent.
    let all: Vec<i32> = found.iter().map(Process::pid).collect();
    found.retain(|process| process.parent().is_none_or(|parent| !all.contains(&parent)));
    found
}

/// Ends processes with SIGTERM, and after `grace` with SIGKILL.
///
/// # Errors
/// If one of them does not end.
pub async fn end(processes: &[Process], grace: Duration) -> Result<()> {
    for process in processes {
        process.signal(Signal::TERM)?;
        // A stopped process (SIGSTOP) does not handle SIGTERM.
        process.signal(Signal::CONT)?;
    }
    if gone(processes, grace).await.is_ok() {
        return Ok(());
    }
    kill(processes).await
}

/// Ends processes with SIGKILL.
///
/// # Errors
/// If one of them does not end, for example because it hangs in the kernel.
pub async fn kill(processes: &[Process]) -> Result<()> {
    for process in processes {
        process.signal(Signal::KILL)?;
    }
    gone(processes, Duration::from_secs(20)).await
}

async fn gone(processes: &[Process], deadline: Duration) -> Result<()> {
    wait::until("processes to end", deadline, async || {
        match processes.iter().find(|process| process.is_alive()) {
            Some(process) => bail!("process {} still runs", process.pid()),
            None => Ok(()),
        }
    })
    .await
}

/// Fails with the end of the log if a component does not run.
///
/// # Errors
/// If the component does not run.
pub fn must_run(paths: &Paths, component: &str) -> Result<()> {
    if !of_component(paths, component).is_empty() {
        return Ok(());
    }
    let log = paths.log(component);
    let tail = command::tail_of_file(&log, 15);
    Err(anyhow!("log {} ends with:\n{tail}", log.display())
        .context(format!("{component} has ended"))
        .context(Unrecoverable))
}
