//! The cgroup of all pods, by which the processes in containers are found.
//!
//! Both versions are supported: one tree (version 2), or one tree per controller (version 1).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::processes::Process;

/// Name of the cgroup, directly below the root of every tree.
pub const NAME: &str = "quorate-cluster";
/// Controllers that the kubelet requires.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// Creates the cgroup in every tree; the kubelet requires that it exists.
///
/// # Errors
/// If the kernel rejects it.
pub fn prepare() -> Result<()> {
    for tree in trees() {
        let own = tree.join(NAME);
        std::fs::create_dir_all(&own)
            .with_context(|| format!("cannot create {}", own.display()))?;
        if is_unified(&tree) {
            delegate_controllers(&tree)?;
            delegate_controllers(&own)?;
        }
        // Version 1: a new cpuset is empty, and no process can join an empty cpuset.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(value) = std::fs::read_to_string(tree.join(file)) {
                std::fs::write(own.join(file), value.trim())?;
            }
        }
    }
    Ok(())
}

/// Whether this is a version 2 tree with controllers (beside version 1 trees it has none).
fn is_unified(tree: &Path) -> bool {
    let controllers = std::fs::read_to_string(tree.join("cgroup.controllers")).unwrap_or_default();
    controllers.split_whitespace().any(|controller| controller == "memory")
}

/// Enables the controllers for the child cgroups.
fn delegate_controllers(cgroup: &Path) -> Result<()> {
    let file = cgroup.join("cgroup.subtree_control");
    for controller in CONTROLLERS {
        drop(std::fs::write(&file, format!("+{controller}")));
    }
    let delegated = std::fs::read_to_string(&file)?;
    for controller in CONTROLLERS {
        if !delegated.split_whitespace().any(|word| word == controller) {
            bail!(
                "controller {controller} cannot be enabled for child cgroups of {}: cgroupfs may be read-only, or this is a container",
                cgroup.display()
            );
        }
    }
    Ok(())
}

/// The path of the cgroup in each tree where it exists.
#[must_use]
pub fn own() -> Vec<PathBuf> {
    trees().into_iter().map(|tree| tree.join(NAME)).filter(|own| own.exists()).collect()
}

/// A cgroup and all its descendants, deepest first.
#[must_use]
pub fn below(cgroup: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(cgroup).into_iter().flatten().flatten();
    let children = inside.map(|entry| entry.path()).filter(|path| path.is_dir());
    children.flat_map(|child| below(&child)).chain([cgroup.to_owned()]).collect()
}

/// The PIDs of the processes in a cgroup and all its descendants.
#[must_use]
pub fn pids(cgroup: &Path) -> Vec<i32> {
    let lists = below(cgroup).into_iter().map(|folder| folder.join("cgroup.procs"));
    let lists = lists.filter_map(|list| std::fs::read_to_string(list).ok());
    lists
        .flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The processes in containers. The cgroup of each is checked again after its pidfd is open: the
/// PID may have been reused by an unrelated process since it was listed.
#[must_use]
pub fn processes() -> Vec<Process> {
    let inside = own().into_iter().flat_map(|own| pids(&own));
    inside.filter_map(Process::open).filter(is_inside).collect()
}

fn is_inside(process: &Process) -> bool {
    let cgroups = std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid()));
    cgroups.is_ok_and(|lines| lines.contains(&format!(":/{NAME}/"))) && process.is_alive()
}

fn trees() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let cgroup_mount = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let mount_point = fields.next()?;
        fields.next()?.starts_with("cgroup").then(|| PathBuf::from(mount_point))
    };
    mounts.lines().filter_map(cgroup_mount).collect()
}
