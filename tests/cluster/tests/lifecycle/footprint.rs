//! Everything that a cluster can leave on a machine, as lines, so that two footprints can be
//! compared.
//!
//! Independent of the tool: processes are found by the names of programs, not by their environment.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use quorate_cluster::paths::Paths;
use quorate_cluster::{cgroups, command, processes};

/// The programs of a cluster. Others are ignored: the machine also runs builds.
const PROGRAMS: [&str; 12] = [
    "etcd",
    "kube-apiserver",
    "kube-controller",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "containerd",
    "containerd-shim",
    "coredns",
    "pause",
    "runc",
    "quorate-cluster",
];
/// Folders to which programs of the cluster write.
const FOLDERS: [&str; 6] = [
    "/var/lib/cni/results",
    "/var/log/containers",
    "/run/containerd/s",
    "/run/netns",
    "/var/lib/kubelet",
    "/var/lib/quorate-cluster",
];
/// Sysctls whose values change without a write.
const VOLATILE_SYSCTLS: [&str; 8] = [
    "/random/",
    "ns_last_pid",
    "nf_conntrack_count",
    "/pty/nr",
    "/stat",
    "sched",
    "perf_event",
    "/nr_",
];

/// The lines with their counts.
pub(crate) struct Footprint(BTreeMap<String, usize>);

impl Footprint {
    pub(crate) async fn take() -> Result<Self> {
        let mut lines = Vec::new();
        lines.extend(programs().into_iter().map(|line| format!("process {line}")));
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        lines.extend(mounts.lines().map(|line| format!("mount {line}")));
        for block in names("/sys/block") {
            let file = std::fs::read_to_string(format!("/sys/block/{block}/loop/backing_file"));
            lines.extend(file.ok().map(|file| format!("loop device {block} {}", file.trim())));
        }
        lines.extend(names("/sys/class/net").into_iter().map(|link| format!("link {link}")));
        for (what, command) in [
            ("namespace", vec!["ip", "netns", "list"]),
            ("address", vec!["ip", "-oneline", "-4", "address", "show"]),
            ("rule", vec!["nft", "list", "ruleset"]),
            ("route", vec!["ip", "-4", "route", "show", "table", "all"]),
            ("route", vec!["ip", "-6", "route", "show", "table", "all"]),
        ] {
            let (program, args) = command.split_first().context("no program")?;
            let listed = command::output(command::command(program).args(args)).await?;
            lines.extend(listed.lines().map(|line| format!("{what} {}", line.trim())));
        }
        for folder in ["kernel", "net", "vm"] {
            settings(&Path::new("/proc/sys").join(folder), &mut lines);
        }
        lines.extend(
            cgroups::own().into_iter().map(|cgroup| format!("cgroup {}", cgroup.display())),
        );
        for folder in FOLDERS {
            lines.extend(names(folder).into_iter().map(|file| format!("file {folder}/{file}")));
        }
        let mut counted = BTreeMap::new();
        for line in lines {
            let count: &mut usize = counted.entry(line).or_default();
            *count = count.saturating_add(1);
        }
        Ok(Self(counted))
    }

    /// The added (+) and removed (-) lines.
    pub(crate) fn difference(&self, later: &Self) -> Vec<String> {
        let count = |of: &Self, line: &str| of.0.get(line).copied().unwrap_or_default();
        let all: BTreeSet<&String> = self.0.keys().chain(later.0.keys()).collect();
        all.into_iter()
            .filter_map(|line| match count(self, line).cmp(&count(later, line)) {
                Ordering::Less => Some(format!("+ {line}")),
                Ordering::Greater => Some(format!("- {line}")),
                Ordering::Equal => None,
            })
            .collect()
    }
}

/// A changed sysctl, restored on drop.
pub(crate) struct Setting {
    file: &'static str,
    before: String,
}

impl Setting {
    pub(crate) fn change(file: &'static str, value: &str) -> Result<Self> {
        let before = std::fs::read_to_string(file)?;
        std::fs::write(file, value)?;
        Ok(Self { file, before })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        drop(std::fs::write(self.file, self.before.trim()));
    }
}

/// The memory of all processes of the cluster in MiB; shared memory counts once.
pub(crate) fn memory(paths: &Paths) -> u64 {
    let inside = cgroups::own().into_iter().flat_map(|own| cgroups::pids(&own));
    let all: BTreeSet<i32> =
        processes::of_cluster(paths).iter().map(processes::Process::pid).chain(inside).collect();
    let share = |pid: &i32| {
        let page = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = page.lines().find_map(|line| line.strip_prefix("Pss:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or_default()
    };
    all.iter().map(share).sum::<u64>().div_ceil(1024)
}

/// The running programs, without zombies.
fn programs() -> Vec<String> {
    let pids = names("/proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    let running =
        pids.filter(|pid| processes::Process::open(*pid).is_some_and(|process| process.is_alive()));
    let name = |pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
    };
    running
        .map(name)
        .filter(|name| PROGRAMS.iter().any(|program| name.starts_with(program)))
        .collect()
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn settings(folder: &Path, lines: &mut Vec<String>) {
    for name in names(folder) {
        let path = folder.join(name);
        let shown = path.display().to_string();
        if path.is_dir() {
            settings(&path, lines);
        } else if !VOLATILE_SYSCTLS.iter().any(|volatile| shown.contains(volatile))
            && let Ok(value) = std::fs::read_to_string(&path)
        {
            lines.push(format!("setting {shown} = {}", value.trim()));
        }
    }
}
