//! Faults: pause a component of the cluster or a pod's processes, kill a pod's processes, isolate a
//! pod's network. A lasting fault ends when its guard is dropped, so that a failed test leaves
//! none; the next `up` of the local cluster ends the faults of a killed test.

use std::net::IpAddr;
use std::process::Command;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use quorate_cluster::cgroups;
use quorate_cluster::network::CUT_TABLE;
use quorate_cluster::processes::{self, Process};
use rustix::process::Signal;

use crate::context::TestContext;

/// Processes that are paused until this is dropped.
#[must_use = "the processes are resumed when this is dropped"]
#[derive(Debug)]
pub struct PausedProcesses(Vec<Process>);

impl Drop for PausedProcesses {
    fn drop(&mut self) {
        for process in &self.0 {
            drop(process.signal(Signal::CONT));
        }
    }
}

/// A pod that neither sends nor receives until this is dropped.
#[must_use = "the pod is connected again when this is dropped"]
#[derive(Debug)]
pub struct IsolatedPod(IpAddr);

impl Drop for IsolatedPod {
    fn drop(&mut self) {
        drop(nft(&format!("delete element inet {CUT_TABLE} pods {{ {} }}", self.0)));
    }
}

impl TestContext {
    /// Pauses a component of the cluster (SIGSTOP); the names are in `quorate_cluster::components`.
    ///
    /// # Errors
    /// If the component does not run.
    pub fn pause_component(&self, component: &str) -> Result<PausedProcesses> {
        processes::must_run(&self.paths, component)?;
        pause(processes::of_component(&self.paths, component))
    }

    /// Pauses the processes of a pod's containers (SIGSTOP), but not the sandbox.
    ///
    /// # Errors
    /// If the pod has no running process.
    pub fn pause_pod(&self, pod: &Pod) -> Result<PausedProcesses> {
        pause(pod_processes(pod)?)
    }

    /// Kills the processes of a pod's containers (SIGKILL); the kubelet restarts the containers.
    ///
    /// # Errors
    /// If the pod has no running process.
    pub fn kill_pod(&self, pod: &Pod) -> Result<()> {
        pod_processes(pod)?.iter().try_for_each(|process| process.signal(Signal::KILL))
    }

    /// Isolates a pod's network: from other pods, Services and the node, in both directions.
    ///
    /// # Errors
    /// If the pod has no IP.
    pub fn isolate_pod(&self, pod: &Pod) -> Result<IsolatedPod> {
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
        let address: IpAddr = address.context("the pod has no IP")?.parse()?;
        nft(&format!(
            "table inet {CUT_TABLE} {{
                set pods {{ type ipv4_addr; flags timeout; timeout 10m; }}
                chain arriving {{ type filter hook prerouting priority raw; ip saddr @pods drop; ip daddr @pods drop; }}
                chain leaving {{ type filter hook postrouting priority srcnat + 10; ip daddr @pods drop; }}
            }}"
        ))?;
        nft(&format!("add element inet {CUT_TABLE} pods {{ {address} }}"))?;
        Ok(IsolatedPod(address))
    }
}

fn pause(processes: Vec<Process>) -> Result<PausedProcesses> {
    for process in &processes {
        process.signal(Signal::STOP)?;
    }
    Ok(PausedProcesses(processes))
}

/// Every process in the pod's cgroup but the one of the sandbox.
pub(crate) fn pod_processes(pod: &Pod) -> Result<Vec<Process>> {
    let own = format!("pod{}", pod.uid().unwrap_or_default());
    let all = cgroups::own().into_iter().flat_map(|root| cgroups::below(&root));
    let cgroup =
        all.into_iter().find(|folder| folder.file_name().is_some_and(|name| *name == *own));
    let cgroup = cgroup.with_context(|| format!("pod {} has no cgroup", pod.name_any()))?;
    let inside = cgroups::pids(&cgroup).into_iter().filter(|pid| !is_sandbox(*pid));
    let found: Vec<Process> = inside.filter_map(Process::open).collect();
    if found.is_empty() {
        bail!("pod {} has no running process", pod.name_any());
    }
    Ok(found)
}

fn is_sandbox(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "pause")
}

/// Synchronous, because guards end their fault in `drop`.
pub(crate) fn nft(script: &str) -> Result<()> {
    let output = Command::new("nft").arg(script).output().context("cannot start nft")?;
    if !output.status.success() {
        bail!("nft rejected {script:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
