//! The components of the cluster, one file each: binary, flags and configuration.
//!
//! `daemon()` writes the configuration files of a component and returns the process to run, and
//! starts nothing: `processes` starts and ends it, `up` has the order.

pub mod apiserver;
pub mod containerd;
pub mod controller_manager;
pub mod etcd;
pub mod kube_proxy;
pub mod kubelet;
pub mod scheduler;
pub mod volumes;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::files;
use crate::paths::Paths;
use crate::settings::Settings;

/// All components, in the order in which they start.
pub const NAMES: [&str; 8] = [
    etcd::NAME,
    containerd::NAME,
    apiserver::NAME,
    controller_manager::NAME,
    scheduler::NAME,
    kubelet::NAME,
    kube_proxy::NAME,
    volumes::NAME,
];

/// The inputs of a component.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The paths of files.
    pub paths: &'a Paths,
    /// The folder with the binaries of Kubernetes.
    pub kubernetes: PathBuf,
    /// The folder with the binaries of the control plane's etcd.
    pub etcd: PathBuf,
}

impl Plan<'_> {
    /// Writes a configuration file and returns its path.
    fn write(&self, file: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.paths.config(file);
        files::write(&path, content)?;
        Ok(path)
    }

    /// Writes a configuration file as JSON, which is valid YAML.
    fn write_json(&self, file: &str, content: &serde_json::Value) -> Result<PathBuf> {
        self.write(file, serde_json::to_string_pretty(content)?)
    }
}

/// `--name=value` for each pair.
fn flags<const N: usize>(pairs: [(&str, &dyn AsFlag); N]) -> Vec<OsString> {
    let flag = |(name, value): (&str, &dyn AsFlag)| {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(value.as_flag());
        flag
    };
    pairs.into_iter().map(flag).collect()
}

/// A value of a flag.
trait AsFlag {
    fn as_flag(&self) -> OsString;
}

impl AsFlag for &str {
    fn as_flag(&self) -> OsString {
        OsString::from(self)
    }
}

impl AsFlag for String {
    fn as_flag(&self) -> OsString {
        OsString::from(self)
    }
}

impl AsFlag for PathBuf {
    fn as_flag(&self) -> OsString {
        self.as_os_str().to_owned()
    }
}

impl AsFlag for std::net::Ipv4Addr {
    fn as_flag(&self) -> OsString {
        OsString::from(self.to_string())
    }
}

/// Creates the folders that a component expects.
fn folders<const N: usize>(paths: [&Path; N]) -> Result<()> {
    for path in paths {
        std::fs::create_dir_all(path)
            .with_context(|| format!("cannot create {}", path.display()))?;
    }
    Ok(())
}
