//! All paths of the local cluster.
//!
//! Two roots: the *cache* has what is expensive to build and useful for any clone (binaries, Go,
//! the Rust target); the *state* has the running cluster and is removed by `down`. There is one
//! cluster per machine (its bridge and its cgroup have fixed names), so the state has a fixed path.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The two roots and all paths below them.
#[derive(Clone, Debug)]
pub struct Paths {
    cache: PathBuf,
    target: PathBuf,
    state: PathBuf,
}

/// The lock files are beside this folder, with other extensions; `down` does not remove them.
const STATE: &str = "/var/lib/quorate-cluster";

impl Paths {
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
            .context("the cache folder is unknown: set HOME or QUORATE_CACHE")?;
        let target = set("CARGO_TARGET_DIR").unwrap_or_else(|| cache.join("target"));
        Ok(Self { cache, target, state: PathBuf::from(STATE) })
    }

    /// The state root: one running cluster.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Lock for changes of the cluster. Beside the state, so that it is the same with any cache.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.state.with_extension("lock")
    }

    /// Lock that running e2e tests hold, shared or exclusive, and `down` and `reset` exclusive.
    #[must_use]
    pub fn e2e_lock(&self) -> PathBuf {
        self.state.with_extension("e2e.lock")
    }

    /// Lock that an e2e test holds while it waits for the e2e lock, so that an exclusive test is
    /// not starved.
    #[must_use]
    pub fn e2e_gate(&self) -> PathBuf {
        self.state.with_extension("e2e.gate")
    }

    /// Debian's static busybox, unpacked.
    #[must_use]
    pub fn busybox(&self) -> PathBuf {
        self.binaries().join("busybox-static")
    }

    /// Binaries built from Go modules, one folder per source and version.
    #[must_use]
    pub fn binaries(&self) -> PathBuf {
        self.cache.join("programs")
    }

    /// The downloaded Go toolchain.
    #[must_use]
    pub fn go(&self) -> PathBuf {
        self.cache.join("go")
    }

    /// The cargo target folder of the binaries in images.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        self.target.clone()
    }

    /// Certificates and keys.
    #[must_use]
    pub fn pki(&self) -> PathBuf {
        self.state.join("pki")
    }

    /// Configuration files of the components.
    #[must_use]
    pub fn config(&self, file: &str) -> PathBuf {
        self.state.join("config").join(file)
    }

    /// The log of a component.
    #[must_use]
    pub fn log(&self, component: &str) -> PathBuf {
        self.state.join("logs").join(format!("{component}.log"))
    }

    /// The audit log of the API server, one JSON object a line.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.state.join("logs/audit.jsonl")
    }

    /// The kubeconfig of a user; `admin` is for interactive use.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.state.join("kubeconfig").join(user)
    }

    /// The control plane's data.
    #[must_use]
    pub fn etcd_data(&self) -> PathBuf {
        self.state.join("etcd")
    }

    /// A folder of containerd.
    #[must_use]
    pub fn containerd(&self, folder: &str) -> PathBuf {
        self.state.join("containerd").join(folder)
    }

    /// The socket of containerd.
    #[must_use]
    pub fn containerd_socket(&self) -> PathBuf {
        self.containerd("containerd.sock")
    }

    /// A folder of the CNI plugins.
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

    /// The backing files of the loop devices.
    #[must_use]
    pub fn volumes(&self) -> PathBuf {
        self.state.join("volumes")
    }

    /// The keys of imported images.
    #[must_use]
    pub fn imported_images(&self) -> PathBuf {
        self.state.join("images")
    }

    /// The recorded sysctls.
    #[must_use]
    pub fn sysctls_before(&self) -> PathBuf {
        self.state.join("sysctls-before.json")
    }

    /// The recorded settings of the cluster.
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
