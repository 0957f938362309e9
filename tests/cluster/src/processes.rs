//! The long-running programs of the cluster: starting, finding and ending them.
//!
//! There are no pid files. A part carries its name and the fingerprint of its configuration in its
//! environment, so the process table itself is the record: it cannot be stale, it survives a `kill -9` of
//! this tool at any moment, and a stranger's process is never taken for ours.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sha2::{Digest, Sha256};

use crate::places::Places;
use crate::programs::hex;
use crate::wait::Hopeless;
use crate::{command, machine, wait};

const STATE: &str = "QUORATE_CLUSTER_OWNER";
const PART: &str = "QUORATE_CLUSTER_PART";
const PROGRAM: &str = "QUORATE_CLUSTER_PROGRAM";
const FINGERPRINT: &str = "QUORATE_CLUSTER_FINGERPRINT";
/// How long a part may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// A part that should run.
#[derive(Debug)]
pub struct Daemon {
    /// Its name, also of its log file.
    pub part: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Configuration files: the part is restarted when one of them changes.
    pub files: Vec<PathBuf>,
}

/// Whether a part had to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ensured {
    /// It ran already, with the same configuration.
    Kept,
    /// It was started, or started again.
    Started,
}

impl Daemon {
    /// Makes it run with its present configuration; leaves it alone if it does.
    ///
    /// # Errors
    /// If it cannot be ended or started.
    pub async fn ensure(&self, places: &Places) -> Result<Ensured> {
        let wanted = self.fingerprint()?;
        let running = of_part(places, self.part);
        if let [only] = running.as_slice()
            && only.variable(FINGERPRINT).as_deref() == Some(&wanted)
        {
            // Whoever stopped it (SIGSTOP) may have been killed before it could go on.
            only.signal(Signal::CONT)?;
            return Ok(Ensured::Kept);
        }
        end(&running, GRACE).await?;
        self.start(places, &wanted).await.with_context(|| format!("cannot start {}", self.part))?;
        Ok(Ensured::Started)
    }

    async fn start(&self, places: &Places, fingerprint: &str) -> Result<()> {
        let log = places.log(self.part);
        std::fs::create_dir_all(log.parent().unwrap_or(Path::new("/")))?;
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let program = self.program.canonicalize()?;
        // In a session of its own, so that neither Ctrl-C nor a closed terminal reaches it, and with nothing of
        // the caller's environment: a proxy, a token or an ETCD_ variable would change what it does.
        let mut child = Command::new("/usr/bin/setsid")
            .arg(&program)
            .args(&self.args)
            .env_clear()
            .env("PATH", machine::PATH)
            .env("HOME", places.state())
            .env(STATE, places.state())
            .env(PART, self.part)
            .env(PROGRAM, &program)
            .env(FINGERPRINT, fingerprint)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir("/")
            .spawn()?;
        wait::until("its process", Duration::from_secs(5), async || match child.try_wait()? {
            Some(status) => Err(anyhow!("it ended with {status}").context(Hopeless)),
            None if of_part(places, self.part).is_empty() => bail!("there is none yet"),
            None => Ok(()),
        })
        .await
    }

    fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(self.program.as_os_str().as_encoded_bytes());
        for word in &self.args {
            hash.update(b"\0");
            hash.update(word.as_encoded_bytes());
        }
        for file in &self.files {
            let content =
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            hash.update(content);
        }
        Ok(hex(&hash.finalize()))
    }
}

/// A process of the cluster, held by a handle that cannot come to mean another process.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    handle: rustix::fd::OwnedFd,
}

impl Process {
    /// The process of this number, if it is there.
    #[must_use]
    pub fn open(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal; a process that is gone already is no error.
    ///
    /// # Errors
    /// If the signal may not be sent.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(anyhow!(error).context(format!("cannot signal process {}", self.pid())))
            }
        }
    }

    /// True until it has ended; one that only waits for its parent to notice has ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        // The handle becomes readable at the end.
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

/// Every process that descends from a part of this cluster, but those inside containers.
#[must_use]
pub fn of_cluster(places: &Places) -> Vec<Process> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(Process::open)
        .filter(|process| process.variable(STATE).as_deref() == places.state().to_str())
        // Alive now, so what was read just before was its own.
        .filter(Process::is_alive)
        .collect()
}

/// The processes that are this very part, not what it started (a kubelet runs `mount`, containerd its shims).
#[must_use]
pub fn of_part(places: &Places, part: &str) -> Vec<Process> {
    let mut found = of_cluster(places);
    found.retain(|process| {
        process.variable(PART).as_deref() == Some(part)
            && process.program().is_some_and(|program| {
                process.variable(PROGRAM).is_some_and(|started| Path::new(&started) == program)
            })
    });
    // A child that was forked and has not yet become another program looks like its parent.
    let all: Vec<i32> = found.iter().map(Process::pid).collect();
    found.retain(|process| process.parent().is_none_or(|parent| !all.contains(&parent)));
    found
}

/// Asks processes to end, and after `grace` ends them.
///
/// # Errors
/// If one of them stays even then.
pub async fn end(processes: &[Process], grace: Duration) -> Result<()> {
    for process in processes {
        process.signal(Signal::TERM)?;
        // One that was stopped (SIGSTOP) could not hear the request.
        process.signal(Signal::CONT)?;
    }
    if gone(processes, grace).await.is_ok() {
        return Ok(());
    }
    kill(processes).await
}

/// Ends processes without asking.
///
/// # Errors
/// If one of them stays, as one that hangs in the kernel does.
pub async fn kill(processes: &[Process]) -> Result<()> {
    for process in processes {
        process.signal(Signal::KILL)?;
    }
    gone(processes, Duration::from_secs(20)).await
}

async fn gone(processes: &[Process], deadline: Duration) -> Result<()> {
    wait::until("processes to end", deadline, async || {
        match processes.iter().find(|process| process.is_alive()) {
            Some(process) => bail!("process {} is still there", process.pid()),
            None => Ok(()),
        }
    })
    .await
}

/// Fails with the end of its log if a part that should run has ended.
///
/// # Errors
/// If it does not run.
pub fn must_run(places: &Places, part: &str) -> Result<()> {
    if !of_part(places, part).is_empty() {
        return Ok(());
    }
    let log = places.log(part);
    let last_words = command::tail_of_file(&log, 15);
    Err(anyhow!("its log {} ends with:\n{last_words}", log.display())
        .context(format!("{part} has ended"))
        .context(Hopeless))
}
