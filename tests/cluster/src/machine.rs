//! Is this a machine the cluster can live on? Says what is missing and installs it.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::progress::{Step, say};

/// What the cluster needs from the distribution: the package, and a file that proves it is there.
const PACKAGES: [(&str, &str); 10] = [
    ("containerd", "/usr/bin/containerd"),
    ("runc", "/usr/sbin/runc"),
    ("containernetworking-plugins", "/usr/lib/cni/ptp"),
    ("nftables", "/usr/sbin/nft"),
    ("iptables", "/usr/sbin/iptables"),
    ("conntrack", "/usr/sbin/conntrack"),
    ("socat", "/usr/bin/socat"),
    ("iproute2", "/usr/sbin/ip"),
    ("xfsprogs", "/usr/sbin/mkfs.xfs"),
    ("mount", "/usr/sbin/losetup"),
];

/// Checks the machine and installs the packages it lacks.
///
/// # Errors
/// If it is not root on Linux, or a package cannot be had.
pub async fn prepare() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "the local cluster needs root (it mounts volumes, makes a bridge and starts a kubelet): run it as root"
        );
    }
    install(&missing(&PACKAGES)).await
}

/// The packages whose proof is not there.
fn missing(packages: &[(&'static str, &str)]) -> Vec<&'static str> {
    packages
        .iter()
        .filter(|(_, proof)| !Path::new(proof).exists())
        .map(|(name, _)| *name)
        .collect()
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
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("missing: {list}. There is no apt-get here to install them: install them by hand");
    }
    say(&format!(
        "  missing on this machine: {list}; installing them with apt-get"
    ));
    let step = Step::begin("installing packages");
    apt(&["update", "-qq"])
        .await
        .context("the package lists cannot be read")?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(packages);
    apt(&install)
        .await
        .with_context(|| format!("cannot install {list}"))?;
    step.done(&list);
    Ok(())
}

async fn apt(args: &[&str]) -> Result<()> {
    let mut apt = command::command("apt-get");
    apt.args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command::output(&mut apt).await.map(drop)
}
