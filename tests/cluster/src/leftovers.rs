//! Everything a cluster leaves on the machine, and its removal, in an order in which nothing is in use.
//!
//! `down` is this and nothing else; `up` does it for a predecessor that was killed. Each step looks for what
//! is there, so all of them can be repeated, and a crash in the middle is mended by the next run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::mount::UnmountFlags;

use crate::parts::{containerd, kubelet};
use crate::places::Places;
use crate::processes::{self, Process};
use crate::settings::Network;
use crate::{cgroups, network, sysctls, volumes, wait};

/// Removes all of it.
///
/// # Errors
/// If something cannot be removed; what comes after it is left for the next run.
pub async fn remove(places: &Places, network: &Network) -> Result<()> {
    end_parts(places).await?;
    end_containers().await?;
    unmount_all(places.state())?;
    volumes::file::detach_all(places.state()).await?;
    network::remove(network).await?;
    remove_cgroups().await?;
    sysctls::restore(places)?;
    remove_files(places)
}

/// True if anything of a cluster runs: then it can be mended instead of removed.
#[must_use]
pub fn is_alive(places: &Places) -> bool {
    !processes::of_cluster(places).is_empty()
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
    wait::until("the containers to end", Duration::from_secs(20), || async {
        let inside = cgroups::own()
            .into_iter()
            .flat_map(|own| cgroups::pids(&own));
        let inside: Vec<Process> = inside.filter_map(Process::open).collect();
        if inside.is_empty() {
            return Ok(());
        }
        processes::kill(&inside).await?;
        bail!("{} processes were still inside", inside.len())
    })
    .await
}

async fn remove_cgroups() -> Result<()> {
    wait::until(
        "the pods' cgroups to be removable",
        Duration::from_secs(10),
        || async {
            for folder in cgroups::own().iter().flat_map(|own| cgroups::below(own)) {
                std::fs::remove_dir(&folder).with_context(|| format!("{}", folder.display()))?;
            }
            Ok(())
        },
    )
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

fn mounts_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let places = places.map(|place| PathBuf::from(place.replace("\\040", " ")));
    Ok(places.filter(|place| place.starts_with(folder)).collect())
}

fn remove_files(places: &Places) -> Result<()> {
    remove_strays(places)?;
    if !places.state().exists() {
        return Ok(());
    }
    // Removing files across a mount would erase a volume that is still in use.
    if let Some(mount) = mounts_below(places.state())?.first() {
        bail!("{} is still mounted", mount.display());
    }
    std::fs::remove_dir_all(places.state())
        .with_context(|| format!("cannot remove {}", places.state().display()))
}

/// What the CNI library, the kubelet and containerd keep outside of our folders, whatever they are told.
fn remove_strays(places: &Places) -> Result<()> {
    let results = Path::new("/var/lib/cni/results");
    let sandboxes: Vec<String> = names_in(results)
        .filter_map(|name| {
            let rest = name
                .strip_prefix(containerd::CNI_NETWORK)?
                .strip_prefix('-')?;
            Some(rest.split_once('-')?.0.to_owned())
        })
        .collect();
    remove_from(results, |file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        sandboxes.iter().any(|sandbox| name.contains(sandbox))
    })?;
    remove_from(Path::new("/var/log/containers"), |link| {
        std::fs::read_link(link).is_ok_and(|target| target.starts_with(places.state()))
    })?;
    let shims = places
        .containerd("state")
        .join("io.containerd.runtime.v2.task/k8s.io");
    for shim in names_in(&shims) {
        let address = std::fs::read_to_string(shims.join(shim).join("address")).unwrap_or_default();
        if let Some(socket) = address.trim().strip_prefix("unix://") {
            drop(std::fs::remove_file(socket));
        }
    }
    Ok(())
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn remove_from(folder: &Path, is_ours: impl Fn(&Path) -> bool) -> Result<()> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files.map(|entry| entry.path()).filter(|path| is_ours(path)) {
        std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    Ok(())
}
