//! The local cluster starts, is removed completely, and survives crashes at any time.
//!
//! These tests run the binary, as `make` does, and need the cluster exclusively: they run one at a
//! time, before the e2e tests. Each ends with a running cluster or with none.

#[path = "lifecycle/footprint.rs"]
mod footprint;
#[path = "lifecycle/tool.rs"]
mod tool;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use footprint::{Footprint, Setting};
use quorate_cluster::components;
use quorate_cluster::images::catalog;
use quorate_cluster::kubectl::Kubectl;
use quorate_cluster::{host, processes};
use rustix::process::Signal;
use tool::Tool;

/// The memory bound of all processes of the cluster.
const MAX_MEMORY_MIB: u64 = 1536;

/// A pod with a volume: mounts, a loop device, a link and a network namespace to remove.
const POD: &str = include_str!("lifecycle/pod.yaml");
/// Objects that block deletion: finalizers without a controller, webhooks without a server.
const LITTER: &str = include_str!("lifecycle/litter.yaml");

#[tokio::test]
async fn down_restores_the_machine() -> Result<()> {
    let tool = Tool::new()?;
    // Packages stay installed, so they are installed before the first footprint.
    host::prepare().await?;
    tool.run(&["down"]).await?;
    // An unusual value that the kubelet changes: `down` must restore it.
    let _restore = Setting::change("/proc/sys/kernel/panic", "7")?;
    let before = Footprint::take().await?;

    tool.run(&["up"]).await?;
    tool.run(&["images", catalog::BUSYBOX]).await?;
    create_pod_with_volume(&tool.kubectl().await?).await?;
    let during = Footprint::take().await?;
    let traces = before.difference(&during).join("\n");
    for kind in ["process", "mount", "loop device", "link", "rule", "route", "setting", "file"] {
        ensure!(
            traces.contains(&format!("+ {kind} ")),
            "the footprint has no {kind} of a running cluster"
        );
    }
    let memory = footprint::memory(&tool.paths);
    ensure!(memory < MAX_MEMORY_MIB, "the cluster uses {memory} MiB");
    println!("the processes of the cluster use {memory} MiB");

    let running = tool.pids(&components::NAMES);
    tool.run(&["up"]).await?;
    ensure!(running == tool.pids(&components::NAMES), "a second up restarted something");

    tool.run(&["down"]).await?;
    tool.run(&["down"]).await?;
    let difference = before.difference(&Footprint::take().await?);
    ensure!(difference.is_empty(), "left behind or changed:\n{}", difference.join("\n"));
    Ok(())
}

#[tokio::test]
async fn up_repairs_the_cluster_after_any_component_was_killed() -> Result<()> {
    let tool = Tool::new()?;
    tool.run(&["up"]).await?;
    tool.run(&["reset"]).await?;
    let kubectl = tool.kubectl().await?;
    kubectl.run(&["create", "configmap", "witness", "--from-literal=value=kept"]).await?;
    for component in components::NAMES {
        let killed = tool.pids(&[component]);
        processes::kill(&processes::of_component(&tool.paths, component)).await?;
        tool.run(&["up"]).await?;
        let running = tool.pids(&[component]);
        ensure!(
            running.concat().len() == 1 && running != killed,
            "{component}: {killed:?}, {running:?}"
        );
        let value =
            kubectl.run(&["get", "configmap", "witness", "-o", "jsonpath={.data.value}"]).await?;
        ensure!(value == "kept", "after {component} was killed the ConfigMap has {value:?}");
    }
    // All at once is a crash of the machine: stale resources are removed, a fresh cluster starts.
    processes::kill(&processes::of_cluster(&tool.paths)).await?;
    let log = tool.run(&["up"]).await?;
    ensure!(log.contains("removing stale resources"), "{log}");
    ensure!(
        kubectl.run(&["get", "configmap", "witness"]).await.is_err(),
        "the cluster is not fresh"
    );
    Ok(())
}

#[tokio::test]
async fn up_and_down_can_be_killed_at_any_time() -> Result<()> {
    let tool = Tool::new()?;
    host::prepare().await?;
    tool.run(&["down"]).await?;
    let before = Footprint::take().await?;
    let mut killed = 0_usize;
    for milliseconds in [300, 1_000, 2_500, 5_000] {
        killed += tool.run_and_kill(&["up"], Duration::from_millis(milliseconds)).await?;
        tool.run(&["up"]).await?;
        killed += tool.run_and_kill(&["down"], Duration::from_millis(milliseconds / 10)).await?;
    }
    ensure!(killed >= 6, "only {killed} of 8 were killed, the others finished before");
    tool.run(&["up"]).await?;
    let nodes = tool.kubectl().await?.run(&["get", "nodes"]).await?;
    ensure!(nodes.contains(" Ready "), "{nodes}");
    tool.run(&["down"]).await?;
    let difference = before.difference(&Footprint::take().await?);
    ensure!(difference.is_empty(), "left behind or changed:\n{}", difference.join("\n"));
    Ok(())
}

#[tokio::test]
async fn reset_deletes_all_added_objects_without_a_restart() -> Result<()> {
    let tool = Tool::new()?;
    tool.run(&["up"]).await?;
    tool.run(&["images", catalog::BUSYBOX]).await?;
    let kubectl = tool.kubectl().await?;
    litter(&kubectl).await?;
    let running = tool.pids(&components::NAMES);

    tool.run(&["reset"]).await?;

    ensure!(running == tool.pids(&components::NAMES), "reset restarted something");
    for gone in ["namespace/litter", "crd/stubborns.litter.example", "pod/tenant", "pvc/tenant"] {
        let found = kubectl.run(&["get", gone, "--ignore-not-found", "-o", "name"]).await?;
        ensure!(found.is_empty(), "{gone} still exists");
    }
    let hooks = kubectl.run(&["get", "validatingwebhookconfigurations", "-o", "name"]).await?;
    ensure!(hooks.is_empty(), "webhooks remain: {hooks}");
    let volumes = kubectl.run(&["get", "pv", "-o", "name"]).await?;
    ensure!(volumes.is_empty(), "volumes remain: {volumes}");
    let class = kubectl.run(&["get", "storageclass", "-o", "name"]).await?;
    ensure!(class.contains("quorate-xfs"), "the StorageClass is gone: {class}");
    Ok(())
}

#[tokio::test]
async fn up_resumes_a_stopped_component() -> Result<()> {
    let tool = Tool::new()?;
    tool.run(&["up"]).await?;
    tool.run(&["reset"]).await?;
    tool.run(&["images", catalog::BUSYBOX]).await?;
    for process in processes::of_component(&tool.paths, components::scheduler::NAME) {
        process.signal(Signal::STOP)?;
    }
    tool.run(&["up"]).await?;
    create_pod_with_volume(&tool.kubectl().await?).await
}

async fn litter(kubectl: &Kubectl) -> Result<()> {
    // The CRD first: its objects can be created only when it is served.
    let (kind, rest) = LITTER.split_once("\n---\n").context("litter.yaml has one document only")?;
    kubectl.apply(kind).await?;
    let established = "--for=condition=Established";
    kubectl.run(&["wait", "crd/stubborns.litter.example", established, "--timeout=30s"]).await?;
    kubectl.apply(rest).await?;
    create_pod_with_volume(kubectl).await
}

async fn create_pod_with_volume(kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(POD).await?;
    let ready = ["wait", "pod/tenant", "--for=condition=Ready", "--timeout=60s"];
    kubectl.run(&ready).await.map(drop)
}
