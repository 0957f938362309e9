//! Where the local cluster keeps its things. The only file that knows paths.
//!
//! Two roots: the *cache* holds what is dear to make and good for any clone (programs, Go, the Rust
//! target); the *state* holds the running cluster and vanishes with `down`. There is one cluster per
//! machine (its bridge and its cgroup have fixed names), so the state is always at the same place.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The two roots and everything below them.
#[derive(Clone, Debug)]
pub struct Places {
    cache: PathBuf,
    target: PathBuf,
    state: PathBuf,
}

/// The locks are beside it, with other endings; they stay, empty, when the cluster goes.
const STATE: &str = "/var/lib/quorate-cluster";

impl Places {
    /// Reads `QUORATE_CACHE`, `XDG_CACHE_HOME` or `HOME`.
    ///
    /// # Errors
    /// If none of them is set.
    pub fn from_environment() -> Result<Self> {
        let set =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("QUORATE_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("quorate")))
            .or_else(|| set("HOME").map(|folder| folder.join(".cache/quorate")))
            .context("cannot tell where the cache is: set HOME or QUORATE_CACHE")?;
        let target = set("CARGO_TARGET_DIR").unwrap_or_else(|| cache.join("target"));
        Ok(Self { cache, target, state: PathBuf::from(STATE) })
    }

    /// The state root: one running cluster.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Held by whoever changes the cluster as a whole. Beside the state, whatever cache is used.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.state.with_extension("lock")
    }

    /// Held (shared or alone) by the stories that run on the cluster, and by who takes it away.
    #[must_use]
    pub fn stories_lock(&self) -> PathBuf {
        self.state.with_extension("stories.lock")
    }

    /// Held for a moment by a story that is about to begin, and by one that waits to be alone.
    #[must_use]
    pub fn stories_gate(&self) -> PathBuf {
        self.state.with_extension("stories.gate")
    }

    /// Debian's static busybox, unpacked.
    #[must_use]
    pub fn busybox(&self) -> PathBuf {
        self.programs().join("busybox-static")
    }

    /// Programs built from Go modules, one folder per program and version.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.cache.join("programs")
    }

    /// Go itself, if the machine had none that is new enough.
    #[must_use]
    pub fn go(&self) -> PathBuf {
        self.cache.join("go")
    }

    /// Where cargo builds the programs that go into images.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        self.target.clone()
    }

    /// Certificates and keys.
    #[must_use]
    pub fn pki(&self) -> PathBuf {
        self.state.join("pki")
    }

    /// Configuration files of the parts.
    #[must_use]
    pub fn config(&self, file: &str) -> PathBuf {
        self.state.join("config").join(file)
    }

    /// What a part says while it runs.
    #[must_use]
    pub fn log(&self, part: &str) -> PathBuf {
        self.state.join("logs").join(format!("{part}.log"))
    }

    /// Who did what to the API, one JSON object a line.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.state.join("logs/audit.jsonl")
    }

    /// The kubeconfig of a user; `admin` is the one for people.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.state.join("kubeconfig").join(user)
    }

    /// The control plane's data.
    #[must_use]
    pub fn etcd_data(&self) -> PathBuf {
        self.state.join("etcd")
    }

    /// A folder of containerd's.
    #[must_use]
    pub fn containerd(&self, folder: &str) -> PathBuf {
        self.state.join("containerd").join(folder)
    }

    /// Where containerd listens.
    #[must_use]
    pub fn containerd_socket(&self) -> PathBuf {
        self.containerd("containerd.sock")
    }

    /// A folder of the CNI plugins'.
    #[must_use]
    pub fn cni(&self, folder: &str) -> PathBuf {
        self.state.join("cni").join(folder)
    }

    /// The kubelet's root folder: pods and their mounts.
    #[must_use]
    pub fn kubelet(&self) -> PathBuf {
        self.state.join("kubelet")
    }

    /// The logs of pods.
    #[must_use]
    pub fn pod_logs(&self) -> PathBuf {
        self.state.join("pod-logs")
    }

    /// The files behind the loop devices.
    #[must_use]
    pub fn volumes(&self) -> PathBuf {
        self.state.join("volumes")
    }

    /// Which images were imported, by content.
    #[must_use]
    pub fn imported_images(&self) -> PathBuf {
        self.state.join("images")
    }

    /// The kernel settings as they were before the first change.
    #[must_use]
    pub fn sysctls_before(&self) -> PathBuf {
        self.state.join("sysctls-before.json")
    }

    /// What was chosen when the cluster was started.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.state.join("settings.json")
    }

    /// The objects of a fresh cluster; `reset` removes the others.
    #[must_use]
    pub fn baseline(&self) -> PathBuf {
        self.state.join("baseline.json")
    }
}
