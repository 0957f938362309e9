//! The local cluster comes, goes, survives crashes, and leaves nothing behind.
//!
//! These tests drive the real program, as `make` does, and take the cluster for themselves: they run one at a
//! time, before the stories. Each ends with a cluster that is up or with none, whatever it was before.

#[path = "lifecycle/footprint.rs"]
mod footprint;
#[path = "lifecycle/tool.rs"]
mod tool;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use footprint::{Footprint, Setting};
use quorate_cluster::images::catalog;
use quorate_cluster::kubectl::Kubectl;
use quorate_cluster::parts;
use quorate_cluster::{machine, processes};
use rustix::process::Signal;
use tool::Tool;

/// What all processes of the cluster may hold together, in MiB.
const MEMORY: u64 = 1536;

/// A pod with a volume, so that there are mounts, a loop device, a link and a network namespace to remove.
const POD: &str = include_str!("lifecycle/pod.yaml");
/// What a careless test may leave: finalizers nobody removes, webhooks nobody serves.
const LITTER: &str = include_str!("lifecycle/litter.yaml");

#[tokio::test]
async fn after_down_the_machine_is_as_it_was_before_up() -> Result<()> {
    let tool = Tool::new()?;
    // Packages stay on the machine, so they are there before, too.
    machine::prepare().await?;
    tool.run(&["down"]).await?;
    // A value that the kubelet will change and nobody else would choose: it must come back.
    let _as_it_was = Setting::change("/proc/sys/kernel/panic", "7")?;
    let before = Footprint::take().await?;

    tool.run(&["up"]).await?;
    tool.run(&["images", catalog::BUSYBOX]).await?;
    a_pod_with_a_volume(&tool.kubectl().await?).await?;
    let during = Footprint::take().await?;
    let traces = before.difference(&during).join("\n");
    for kind in ["process", "mount", "loop device", "link", "rule", "route", "setting", "file"] {
        ensure!(traces.contains(&format!("+ {kind} ")), "no {kind} of a running cluster is seen");
    }
    let memory = footprint::memory(&tool.places);
    ensure!(memory < MEMORY, "the cluster holds {memory} MiB");
    println!("the cluster's processes hold {memory} MiB together");

    let running = tool.pids(&parts::NAMES);
    tool.run(&["up"]).await?;
    ensure!(running == tool.pids(&parts::NAMES), "a second up restarted something");

    tool.run(&["down"]).await?;
    tool.run(&["down"]).await?;
    let difference = before.difference(&Footprint::take().await?);
    ensure!(difference.is_empty(), "left behind or changed:\n{}", difference.join("\n"));
    Ok(())
}

#[tokio::test]
async fn whichever_part_is_killed_the_next_up_mends_the_cluster_and_keeps_its_data() -> Result<()> {
    let tool = Tool::new()?;
    tool.run(&["up"]).await?;
    tool.run(&["reset"]).await?;
    let kubectl = tool.kubectl().await?;
    kubectl.run(&["create", "configmap", "witness", "--from-literal=word=kept"]).await?;
    for part in parts::NAMES {
        let killed = tool.pids(&[part]);
        processes::kill(&processes::of_part(&tool.places, part)).await?;
        tool.run(&["up"]).await?;
        let running = tool.pids(&[part]);
        ensure!(
            running.concat().len() == 1 && running != killed,
            "{part}: {killed:?}, {running:?}"
        );
        let word =
            kubectl.run(&["get", "configmap", "witness", "-o", "jsonpath={.data.word}"]).await?;
        ensure!(word == "kept", "after {part} was killed the witness says {word:?}");
    }
    // All at once is a machine that crashed: its remains are removed, and a fresh cluster starts.
    processes::kill(&processes::of_cluster(&tool.places)).await?;
    let said = tool.run(&["up"]).await?;
    ensure!(said.contains("a predecessor was killed"), "{said}");
    ensure!(kubectl.run(&["get", "configmap", "witness"]).await.is_err(), "it is not fresh");
    Ok(())
}

#[tokio::test]
async fn up_and_down_can_be_killed_at_any_moment() -> Result<()> {
    let tool = Tool::new()?;
    machine::prepare().await?;
    tool.run(&["down"]).await?;
    let before = Footprint::take().await?;
    let mut killed = 0_usize;
    for milliseconds in [300, 1_000, 2_500, 5_000] {
        killed += tool.run_and_kill(&["up"], Duration::from_millis(milliseconds)).await?;
        tool.run(&["up"]).await?;
        killed += tool.run_and_kill(&["down"], Duration::from_millis(milliseconds / 10)).await?;
    }
    ensure!(killed >= 6, "only {killed} of 8 were killed: the others were faster");
    tool.run(&["up"]).await?;
    let nodes = tool.kubectl().await?.run(&["get", "nodes"]).await?;
    ensure!(nodes.contains(" Ready "), "{nodes}");
    tool.run(&["down"]).await?;
    let difference = before.difference(&Footprint::take().await?);
    ensure!(difference.is_empty(), "left behind or changed:\n{}", difference.join("\n"));
    Ok(())
}

#[tokio::test]
async fn reset_removes_what_was_not_there_at_the_start_without_restarting_anything() -> Result<()> {
    let tool = Tool::new()?;
    tool.run(&["up"]).await?;
    tool.run(&["images", catalog::BUSYBOX]).await?;
    let kubectl = tool.kubectl().await?;
    litter(&kubectl).await?;
    let running = tool.pids(&parts::NAMES);

    tool.run(&["reset"]).await?;

    ensure!(running == tool.pids(&parts::NAMES), "reset restarted something");
    for gone in ["namespace/litter", "crd/stubborns.litter.example", "pod/tenant", "pvc/tenant"] {
        let found = kubectl.run(&["get", gone, "--ignore-not-found", "-o", "name"]).await?;
        ensure!(found.is_empty(), "{gone} is still there");
    }
    let hooks = kubectl.run(&["get", "validatingwebhookconfigurations", "-o", "name"]).await?;
    ensure!(hooks.is_empty(), "webhooks are left: {hooks}");
    let volumes = kubectl.run(&["get", "pv", "-o", "name"]).await?;
    ensure!(volumes.is_empty(), "volumes are left: {volumes}");
    let class = kubectl.run(&["get", "storageclass", "-o", "name"]).await?;
    ensure!(class.contains("quorate-xfs"), "the StorageClass is gone: {class}");
    Ok(())
}

#[tokio::test]
async fn up_mends_what_a_killed_story_left_standing_still() -> Result<()> {
    let tool = Tool::new()?;
    tool.run(&["up"]).await?;
    tool.run(&["reset"]).await?;
    tool.run(&["images", catalog::BUSYBOX]).await?;
    for process in processes::of_part(&tool.places, parts::scheduler::NAME) {
        process.signal(Signal::STOP)?;
    }
    tool.run(&["up"]).await?;
    a_pod_with_a_volume(&tool.kubectl().await?).await
}

async fn litter(kubectl: &Kubectl) -> Result<()> {
    // The kind first: an object of it can be made only when it is served.
    let (kind, rest) = LITTER.split_once("\n---\n").context("the litter has one part only")?;
    kubectl.apply(kind).await?;
    let established = "--for=condition=Established";
    kubectl.run(&["wait", "crd/stubborns.litter.example", established, "--timeout=30s"]).await?;
    kubectl.apply(rest).await?;
    a_pod_with_a_volume(kubectl).await
}

async fn a_pod_with_a_volume(kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(POD).await?;
    let ready = ["wait", "pod/tenant", "--for=condition=Ready", "--timeout=60s"];
    kubectl.run(&ready).await.map(drop)
}
