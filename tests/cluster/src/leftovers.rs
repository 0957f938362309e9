//! Everything a cluster leaves on the machine, and its removal, in an order in which nothing is in use.
//!
//! `down` is this and nothing else; `up` does it for a predecessor that was killed. Each step looks for what
//! is there, so all of them can be repeated, and a crash in the middle is mended by the next run. Where there
//! is no trace of a cluster of ours, nothing on the machine is touched.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::mount::UnmountFlags;

use crate::parts::{containerd, kubelet};
use crate::places::Places;
use crate::processes::{self, Process};
use crate::settings::Settings;
use crate::{cgroups, network, sysctls, volumes, wait};

/// Removes all of it.
///
/// # Errors
/// If something cannot be removed; what comes after it is left for the next run.
pub async fn remove(places: &Places) -> Result<()> {
    if !is_anything(places) {
        return Ok(());
    }
    end_parts(places).await?;
    end_containers().await?;
    unmount_all(places.state())?;
    volumes::file::detach_all(places.state()).await?;
    network::remove(&Settings::network_on_record(places)).await?;
    remove_cgroups().await?;
    sysctls::restore(places)?;
    remove_strays(places)?;
    remove_state(places.state())
}

/// True if anything of a cluster runs: then it can be mended instead of removed.
#[must_use]
pub fn is_alive(places: &Places) -> bool {
    !processes::of_cluster(places).is_empty()
}

/// True if there is a trace of a cluster, alive or not.
#[must_use]
pub fn is_anything(places: &Places) -> bool {
    places.state().exists()
        || network::bridge_exists()
        || !cgroups::own().is_empty()
        || is_alive(places)
}

/// Without asking: whatever they would write at their end is thrown away with them. The kubelet first, and
/// all of them twice, so that nothing stays that was started meanwhile.
async fn end_parts(places: &Places) -> Result<()> {
    processes::kill(&processes::of_part(places, kubelet::NAME)).await?;
    processes::kill(&processes::of_cluster(places)).await?;
    processes::kill(&processes::of_cluster(places)).await
}

/// The processes inside containers carry no mark of ours, but they live in our cgroup.
async fn end_containers() -> Result<()> {
    wait::until("the containers to end", Duration::from_secs(20), async || {
        let inside: Vec<Process> = cgroups::processes();
        if inside.is_empty() {
            return Ok(());
        }
        processes::kill(&inside).await?;
        bail!("{} processes were still inside", inside.len())
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

/// The deepest first. Lazily: a mount that somebody still looks into goes when they leave.
fn unmount_all(below: &Path) -> Result<()> {
    for place in mounts_below(below)?.into_iter().rev() {
        rustix::mount::unmount(&place, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", place.display()))?;
    }
    Ok(())
}

/// Not the folder itself: should it be a disk of the user's, it stays mounted.
fn mounts_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let places = places.map(|place| PathBuf::from(place.replace("\\040", " ")));
    Ok(places.filter(|place| place.starts_with(folder) && place != folder).collect())
}

/// What the CNI library, the kubelet and containerd keep outside of our folders, whatever they are told.
fn remove_strays(places: &Places) -> Result<()> {
    let results = Path::new("/var/lib/cni/results");
    for sandbox in names_in(results).filter_map(|name| sandbox_of(&name)) {
        remove_file(&results.join(format!("{}-{sandbox}-eth0", containerd::CNI_NETWORK)))?;
        remove_file(&results.join(format!("cni-loopback-{sandbox}-lo")))?;
    }
    let logs = Path::new("/var/log/containers");
    for link in names_in(logs).map(|name| logs.join(name)) {
        if std::fs::read_link(&link).is_ok_and(|target| target.starts_with(places.state())) {
            remove_file(&link)?;
        }
    }
    let shims = places.containerd("state").join("io.containerd.runtime.v2.task/k8s.io");
    for shim in names_in(&shims) {
        let address = std::fs::read_to_string(shims.join(shim).join("address")).unwrap_or_default();
        if let Some(socket) = address.trim().strip_prefix("unix:///run/containerd/s/") {
            remove_file(&Path::new("/run/containerd/s").join(socket))?;
        }
    }
    Ok(())
}

/// The sandbox in the name of a result of our network: `quorate-<64 hex digits>-eth0`.
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
    // Removing files across a mount would erase a volume that is still in use.
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
    fn results_of_other_networks_are_not_ours() {
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
