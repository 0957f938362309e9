//! Checks the requirements of the machine and installs missing packages.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::progress::{Step, log};

/// The folders of the distribution's programs. Not the caller's PATH: that of plain `su` lacks
/// half.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The folder of the CNI plugins.
pub const CNI_PLUGINS: &str = "/usr/lib/cni";

/// Required programs of the distribution, with their packages.
const REQUIRED: [(&str, &str); 10] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("socat", "socat"),
    ("ip", "iproute2"),
    ("mkfs.xfs", "xfsprogs"),
    ("losetup", "mount"),
    ("setsid", "util-linux"),
];

/// Installs the packages that are missing.
///
/// # Errors
/// If a package cannot be installed.
pub async fn prepare() -> Result<()> {
    let mut missing: Vec<&str> = REQUIRED
        .iter()
        .filter(|(name, _)| program(name).is_none())
        .map(|(_, package)| *package)
        .collect();
    if !Path::new(CNI_PLUGINS).join("ptp").exists() {
        missing.push("containernetworking-plugins");
    }
    install(&missing).await
}

/// Fails unless this process runs as root.
///
/// # Errors
/// If this is not root.
pub fn require_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "the local cluster needs root (to mount volumes, create a bridge and start a kubelet): run it as root"
        );
    }
    Ok(())
}

/// The full path of a program of the distribution.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

/// Installs Debian packages, if any are named.
///
/// # Errors
/// If this is no Debian, or apt fails.
pub async fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if program("apt-get").is_none() {
        bail!("missing: {list}. apt-get is not available: install them manually");
    }
    log(&format!("  missing on this machine: {list}; installing with apt-get"));
    let step = Step::begin("installing packages");
    apt(&["update", "-qq"], None).await.context("the package lists cannot be read")?;
    // Never removes a package of the user, even if it conflicts.
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends", "--no-remove"];
    install.extend(packages);
    apt(&install, None).await.with_context(|| format!("cannot install {list}"))?;
    step.done(&list);
    Ok(())
}

/// Unpacks a package into a folder without installing it.
///
/// # Errors
/// If the package cannot be downloaded.
pub async fn unpack(package: &str, into: &Path) -> Result<()> {
    let step = Step::begin(format!("downloading {package}"));
    let scratch = into.with_extension(format!("fetching-{}", std::process::id()));
    let content = scratch.join("content");
    drop(std::fs::remove_dir_all(&scratch));
    std::fs::create_dir_all(&content)?;
    apt(&["update", "-qq"], None).await.context("the package lists cannot be read")?;
    apt(&["download", "-qq", package], Some(&scratch)).await?;
    let files = std::fs::read_dir(&scratch)?.flatten().map(|entry| entry.path());
    let archive = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "deb"));
    let archive = archive.with_context(|| format!("apt-get has not downloaded {package}"))?;
    command::output(command::command("dpkg-deb").arg("-x").arg(archive).arg(&content)).await?;
    std::fs::rename(&content, into).context("cannot write to the cache")?;
    drop(std::fs::remove_dir_all(&scratch));
    step.done("");
    Ok(())
}

async fn apt(args: &[&str], folder: Option<&Path>) -> Result<()> {
    let mut apt = command::command("apt-get");
    // Waits for another apt process instead of failing.
    apt.args(["-o", "DPkg::Lock::Timeout=120"]).args(args).env("DEBIAN_FRONTEND", "noninteractive");
    if let Some(folder) = folder {
        apt.current_dir(folder);
    }
    command::output(&mut apt).await.map(drop)
}
