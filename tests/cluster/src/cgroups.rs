//! The cgroup below which all pods live: it is how the processes inside containers are found.
//!
//! Machines of either version are taken: one tree (version 2), or one tree per controller (version 1).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Its name, directly below the root of every tree.
pub const NAME: &str = "quorate-cluster";

/// Makes it in every tree; the kubelet wants to find it there.
///
/// # Errors
/// If the kernel refuses.
pub fn prepare() -> Result<()> {
    for tree in trees() {
        let own = tree.join(NAME);
        std::fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
        // Version 2: the controllers must be handed down, level by level.
        let controllers =
            std::fs::read_to_string(tree.join("cgroup.controllers")).unwrap_or_default();
        for controller in controllers.split_whitespace() {
            for level in [&tree, &own] {
                drop(std::fs::write(
                    level.join("cgroup.subtree_control"),
                    format!("+{controller}"),
                ));
            }
        }
        // Version 1: a new cpuset is empty, and an empty one takes no process.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(value) = std::fs::read_to_string(tree.join(file)) {
                std::fs::write(own.join(file), value.trim())?;
            }
        }
    }
    Ok(())
}

/// Where it is, in each tree that has it.
#[must_use]
pub fn own() -> Vec<PathBuf> {
    trees()
        .into_iter()
        .map(|tree| tree.join(NAME))
        .filter(|own| own.exists())
        .collect()
}

/// A cgroup and all below it, the deepest first.
#[must_use]
pub fn below(cgroup: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(cgroup).into_iter().flatten().flatten();
    let children = inside
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    children
        .flat_map(|child| below(&child))
        .chain([cgroup.to_owned()])
        .collect()
}

/// The processes in a cgroup and all below it.
#[must_use]
pub fn pids(cgroup: &Path) -> Vec<i32> {
    let lists = below(cgroup)
        .into_iter()
        .map(|folder| folder.join("cgroup.procs"));
    let lists = lists.filter_map(|list| std::fs::read_to_string(list).ok());
    lists
        .flat_map(|list| {
            list.lines()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn trees() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_cgroup = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        words
            .next()?
            .starts_with("cgroup")
            .then(|| PathBuf::from(place))
    };
    mounts.lines().filter_map(of_cgroup).collect()
}
