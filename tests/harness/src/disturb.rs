//! Disturbances: a part or a pod's process stopped, a pod's process killed, a pod cut off. Each that lasts ends when
//! its guard is dropped, so that a story that fails leaves no damage; what a killed one leaves, the next `up` mends.

use std::net::IpAddr;
use std::process::Command;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use quorate_cluster::cgroups;
use quorate_cluster::network::CUT_TABLE;
use quorate_cluster::processes::{self, Process};
use rustix::process::Signal;

use crate::story::Story;

/// Processes that stand still until this is dropped.
#[must_use = "the processes go on as soon as this is dropped"]
#[derive(Debug)]
pub struct Stopped(Vec<Process>);

impl Drop for Stopped {
    fn drop(&mut self) {
        for process in &self.0 {
            drop(process.signal(Signal::CONT));
        }
    }
}

/// A pod that neither sends nor receives until this is dropped.
#[must_use = "the pod is connected again as soon as this is dropped"]
#[derive(Debug)]
pub struct CutOff(IpAddr);

impl Drop for CutOff {
    fn drop(&mut self) {
        drop(nft(&format!("delete element inet {CUT_TABLE} pods {{ {} }}", self.0)));
    }
}

impl Story {
    /// Stops a part of the cluster (SIGSTOP); the names are in `quorate_cluster::components`.
    ///
    /// # Errors
    /// If it does not run.
    pub fn stop_part(&self, part: &str) -> Result<Stopped> {
        processes::must_run(&self.places, part)?;
        stop(processes::of_component(&self.places, part))
    }

    /// Stops the processes of a pod's containers; the sandbox itself goes on.
    ///
    /// # Errors
    /// If the pod has no running process.
    pub fn stop_pod(&self, pod: &Pod) -> Result<Stopped> {
        stop(processes_of(pod)?)
    }

    /// Kills the processes of a pod's containers (SIGKILL), which the kubelet starts again.
    ///
    /// # Errors
    /// If the pod has no running process.
    pub fn kill_pod(&self, pod: &Pod) -> Result<()> {
        processes_of(pod)?.iter().try_for_each(|process| process.signal(Signal::KILL))
    }

    /// Cuts a pod's network: to and from other pods, Services and the node.
    ///
    /// # Errors
    /// If the pod has no address.
    pub fn cut_off(&self, pod: &Pod) -> Result<CutOff> {
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
        let address: IpAddr = address.context("the pod has no address")?.parse()?;
        nft(&format!(
            "table inet {CUT_TABLE} {{
                set pods {{ type ipv4_addr; flags timeout; timeout 10m; }}
                chain arriving {{ type filter hook prerouting priority raw; ip saddr @pods drop; ip daddr @pods drop; }}
                chain leaving {{ type filter hook postrouting priority srcnat + 10; ip daddr @pods drop; }}
            }}"
        ))?;
        nft(&format!("add element inet {CUT_TABLE} pods {{ {address} }}"))?;
        Ok(CutOff(address))
    }
}

fn stop(processes: Vec<Process>) -> Result<Stopped> {
    for process in &processes {
        process.signal(Signal::STOP)?;
    }
    Ok(Stopped(processes))
}

/// Every process in the pod's cgroup but the one that holds the sandbox.
pub(crate) fn processes_of(pod: &Pod) -> Result<Vec<Process>> {
    let own = format!("pod{}", pod.uid().unwrap_or_default());
    let all = cgroups::own().into_iter().flat_map(|root| cgroups::below(&root));
    let cgroup =
        all.into_iter().find(|folder| folder.file_name().is_some_and(|name| *name == *own));
    let cgroup = cgroup.with_context(|| format!("pod {} has no cgroup", pod.name_any()))?;
    let inside = cgroups::pids(&cgroup).into_iter().filter(|pid| !holds_sandbox(*pid));
    let found: Vec<Process> = inside.filter_map(Process::open).collect();
    if found.is_empty() {
        bail!("pod {} has no running process", pod.name_any());
    }
    Ok(found)
}

fn holds_sandbox(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "pause")
}

/// Synchronous, because guards undo their work while being dropped.
pub(crate) fn nft(script: &str) -> Result<()> {
    let output = Command::new("nft").arg(script).output().context("cannot start nft")?;
    if !output.status.success() {
        bail!("nft refused {script:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
