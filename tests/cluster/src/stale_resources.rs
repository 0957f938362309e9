//! Removes everything that a cluster leaves on the machine, in an order in which nothing is in use.
//!
//! `down` does only this; `up` does it after an interrupted run. Every step is idempotent, so the
//! next run completes an interrupted removal. Without traces of a cluster nothing on the machine
//! changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::mount::UnmountFlags;

use crate::components::{containerd, kubelet};
use crate::paths::Paths;
use crate::processes::{self, Process};
use crate::settings::Settings;
use crate::{cgroups, network, sysctls, volumes, wait};

/// Removes all resources of a cluster.
///
/// # Errors
/// If something cannot be removed; the rest remains for the next run.
pub async fn remove(paths: &Paths) -> Result<()> {
    if !any_exist(paths) {
        return Ok(());
    }
    end_components(paths).await?;
    end_containers().await?;
    unmount_all(paths.state())?;
    volumes::file::detach_all(paths.state()).await?;
    network::remove(&Settings::recorded_network(paths)).await?;
    remove_cgroups().await?;
    sysctls::restore(paths)?;
    remove_outside_state(paths)?;
    remove_state(paths.state())
}

/// Whether a component of a cluster runs: then `up` repairs it instead of removing it.
#[must_use]
pub fn is_alive(paths: &Paths) -> bool {
    !processes::of_cluster(paths).is_empty()
}

/// Whether there are resources of a cluster, running or not.
#[must_use]
pub fn any_exist(paths: &Paths) -> bool {
    paths.state().exists()
        || network::bridge_exists()
        || !cgroups::own().is_empty()
        || is_alive(paths)
}

/// By SIGKILL: their state is deleted anyway. The kubelet first, and all of them twice, so that no
/// process remains that was started in between.
async fn end_components(paths: &Paths) -> Result<()> {
    processes::kill(&processes::of_component(paths, kubelet::NAME)).await?;
    processes::kill(&processes::of_cluster(paths)).await?;
    processes::kill(&processes::of_cluster(paths)).await
}

/// Processes in containers do not have our environment, but are in our cgroup.
async fn end_containers() -> Result<()> {
    wait::until("the containers to end", Duration::from_secs(20), async || {
        let inside: Vec<Process> = cgroups::processes();
        if inside.is_empty() {
            return Ok(());
        }
        processes::kill(&inside).await?;
        bail!("{} processes still run", inside.len())
    })
    .await
}

async fn remove_cgroups() -> Result<()> {
    wait::until("the pods' cgroups to be removable", Duration::from_secs(10), async || {
        for folder in cgroups::own().iter().flat_map(|own| cgroups::below(own)) {
            std::fs::remove_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        }
        Ok(())
    })
    .await
}

/// Deepest first. Lazy: a mount that is in use is removed when it is not any more.
fn unmount_all(below: &Path) -> Result<()> {
    for mount_point in mounts_below(below)?.into_iter().rev() {
        rustix::mount::unmount(&mount_point, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", mount_point.display()))?;
    }
    Ok(())
}

/// Without the folder itself: a disk that the user has mounted there stays mounted.
fn mounts_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let paths = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let paths = paths.map(|path| PathBuf::from(path.replace("\\040", " ")));
    Ok(paths.filter(|path| path.starts_with(folder) && path != folder).collect())
}

/// Files that the CNI library, the kubelet and containerd write outside of the state folder,
/// whatever their configuration is.
fn remove_outside_state(paths: &Paths) -> Result<()> {
    let results = Path::new("/var/lib/cni/results");
    for sandbox in names_in(results).filter_map(|name| sandbox_of(&name)) {
        remove_file(&results.join(format!("{}-{sandbox}-eth0", containerd::CNI_NETWORK)))?;
        remove_file(&results.join(format!("cni-loopback-{sandbox}-lo")))?;
    }
    let logs = Path::new("/var/log/containers");
    for link in names_in(logs).map(|name| logs.join(name)) {
        if std::fs::read_link(&link).is_ok_and(|target| target.starts_with(paths.state())) {
            remove_file(&link)?;
        }
    }
    let shims = paths.containerd("state").join("io.containerd.runtime.v2.task/k8s.io");
    for shim in names_in(&shims) {
        let address = std::fs::read_to_string(shims.join(shim).join("address")).unwrap_or_default();
        if let Some(socket) = address.trim().strip_prefix("unix:///run/containerd/s/") {
            remove_file(&Path::new("/run/containerd/s").join(socket))?;
        }
    }
    Ok(())
}

/// The sandbox ID in the name of a CNI result of our network: `quorate-<64 hex digits>-eth0`.
fn sandbox_of(result: &str) -> Option<String> {
    let rest = result.strip_prefix(containerd::CNI_NETWORK)?.strip_prefix('-')?;
    let sandbox = rest.strip_suffix("-eth0")?;
    let is_id = sandbox.len() == 64 && sandbox.chars().all(|digit| digit.is_ascii_hexdigit());
    is_id.then(|| sandbox.to_owned())
}

fn remove_state(state: &Path) -> Result<()> {
    if !state.exists() {
        return Ok(());
    }
    // Removing files below a mount would erase a volume that is still in use.
    if let Some(mount) = mounts_below(state)?.first() {
        bail!("{} is still mounted", mount.display());
    }
    std::fs::remove_dir_all(state).with_context(|| format!("cannot remove {}", state.display()))
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::sandbox_of;

    #[test]
    fn cni_results_of_other_networks_are_ignored() {
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(sandbox_of(&format!("quorate-{id}-eth0")), Some(id.clone()));
        for other in [
            format!("quorate-prod-{id}-eth0"),
            format!("bridge-{id}-eth0"),
            format!("quorate-{id}-net1"),
            "quorate--eth0".to_owned(),
        ] {
            assert_eq!(sandbox_of(&other), None, "{other}");
        }
    }
}
