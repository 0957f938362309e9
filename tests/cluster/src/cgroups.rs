//! The cgroup below which all pods live: it is how the processes inside containers are found.
//!
//! Machines of either version are taken: one tree (version 2), or one tree per controller (version 1).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::processes::Process;

/// Its name, directly below the root of every tree.
pub const NAME: &str = "quorate-cluster";
/// What the kubelet cannot do without.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// Makes it in every tree; the kubelet wants to find it there.
///
/// # Errors
/// If the kernel refuses.
pub fn prepare() -> Result<()> {
    for tree in trees() {
        let own = tree.join(NAME);
        std::fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
        if is_unified(&tree) {
            hand_down(&tree)?;
            hand_down(&own)?;
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

/// Version 2, and it is the tree that has the controllers (beside version 1 it has none).
fn is_unified(tree: &Path) -> bool {
    let controllers = std::fs::read_to_string(tree.join("cgroup.controllers")).unwrap_or_default();
    controllers.split_whitespace().any(|controller| controller == "memory")
}

/// Lets the cgroups below use the controllers that this one has.
fn hand_down(cgroup: &Path) -> Result<()> {
    let file = cgroup.join("cgroup.subtree_control");
    for controller in CONTROLLERS {
        drop(std::fs::write(&file, format!("+{controller}")));
    }
    let handed = std::fs::read_to_string(&file)?;
    for controller in CONTROLLERS {
        if !handed.split_whitespace().any(|word| word == controller) {
            bail!(
                "the kernel does not hand the controller {controller} down from {}: is it mounted read-only, or in a container?",
                cgroup.display()
            );
        }
    }
    Ok(())
}

/// Where it is, in each tree that has it.
#[must_use]
pub fn own() -> Vec<PathBuf> {
    trees().into_iter().map(|tree| tree.join(NAME)).filter(|own| own.exists()).collect()
}

/// A cgroup and all below it, the deepest first.
#[must_use]
pub fn below(cgroup: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(cgroup).into_iter().flatten().flatten();
    let children = inside.map(|entry| entry.path()).filter(|path| path.is_dir());
    children.flat_map(|child| below(&child)).chain([cgroup.to_owned()]).collect()
}

/// The numbers of the processes in a cgroup and all below it.
#[must_use]
pub fn pids(cgroup: &Path) -> Vec<i32> {
    let lists = below(cgroup).into_iter().map(|folder| folder.join("cgroup.procs"));
    let lists = lists.filter_map(|list| std::fs::read_to_string(list).ok());
    lists
        .flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The processes inside containers. Each is asked again where it lives once it is held: between the list and
/// the grip its number may have gone to a stranger.
#[must_use]
pub fn processes() -> Vec<Process> {
    let inside = own().into_iter().flat_map(|own| pids(&own));
    inside.filter_map(Process::open).filter(is_inside).collect()
}

fn is_inside(process: &Process) -> bool {
    let where_it_lives = std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid()));
    where_it_lives.is_ok_and(|lines| lines.contains(&format!(":/{NAME}/"))) && process.is_alive()
}

fn trees() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_cgroup = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        words.next()?.starts_with("cgroup").then(|| PathBuf::from(place))
    };
    mounts.lines().filter_map(of_cgroup).collect()
}
