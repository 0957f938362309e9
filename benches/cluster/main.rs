//! What the operator costs on the real cluster: time until an EtcdCluster is there, until it is whole again, memory,
//! and calls at rest. Each time stands beside that of the same three pods as a bare StatefulSet in the same run, which
//! is what the machine itself takes. `make bench-cluster` prints the table.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod bare;
mod clock;

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use quorate::api::names;
use quorate_harness::audit::{self, Call};
use quorate_harness::etcd_cluster::{Cluster, small};
use quorate_harness::{Disturbs, Story, catalog, tell};
use serde_json::json;

use bare::Bare;
use clock::{Times, gone, healthy, struck};

const RUNS: usize = 5;
const VERSION: &str = "3.6.16";
const REST: Duration = Duration::from_mins(1);
/// Until news of the last change have arrived.
const SETTLES: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(tell("bench", Disturbs::Everything, async |story| {
        story.operator().await?;
        story.image(&catalog::etcd_name(VERSION)).await?;
        measured(story).await
    }))
}

async fn measured(story: &Story) -> Result<()> {
    // The first one waits for an election, and for images that were never unpacked.
    run_ours(story, "warm", &mut Measured::default()).await?;
    let (mut ours, mut floor) = (Measured::default(), Measured::default());
    for number in 0..RUNS {
        run_bare(story, &mut floor).await.context("the bare pods")?;
        run_ours(story, &format!("run-{number}"), &mut ours).await?;
        println!("run {} of {RUNS} is done", number.saturating_add(1));
    }
    println!();
    println!("| p50 of {RUNS} runs, etcd {VERSION} | Quorate | bare StatefulSet | ratio |");
    println!("| --- | --- | --- | --- |");
    println!("{}", ours.come.row("apply to 3 healthy voters", Some(&floor.come)));
    println!("{}", ours.pod.row("pod deleted to healthy", Some(&floor.pod)));
    println!("{}", ours.volume.row("volume lost to voter again", None));
    at_rest(story).await
}

/// The times of one kind of cluster.
#[derive(Default)]
struct Measured {
    come: Times,
    pod: Times,
    volume: Times,
}

async fn run_ours(story: &Story, name: &str, measured: &mut Measured) -> Result<()> {
    let spec = small(3, &json!({"version": VERSION, "deletionPolicy": "Delete"}));
    let clock = clock::start();
    let cluster = story.make_cluster(name, &spec).await?;
    measured.come.add(clock, healthy(&cluster.user, &[]).await.context("to come")?);

    // What follows is about a cluster at rest.
    cluster.comes(story, 3, clock::PATIENCE).await?;
    let (member, old) = a_pod(&cluster).await?;
    cluster.user.hang_up().await;
    let clock = clock::start();
    story.kubectl(&["delete", "pod", &member, "--wait=false"]).await?;
    gone(&cluster.user, &old).await?;
    measured.pod.add(clock, healthy(&cluster.user, &[]).await.context("to return")?);

    cluster.comes(story, 3, clock::PATIENCE).await?;
    let (member, _) = a_pod(&cluster).await?;
    let lost = cluster.user.listed().await?.id_of(&member).context("nobody is lost")?;
    let clock = clock::start();
    cluster.lose_member(&member).await?;
    struck(&cluster.user, lost).await?;
    measured.volume.add(clock, healthy(&cluster.user, &[lost]).await.context("to be whole")?);
    ended(story, &cluster).await
}

async fn run_bare(story: &Story, measured: &mut Measured) -> Result<()> {
    let clock = clock::start();
    let bare = Bare::make(story, VERSION).await?;
    measured.come.add(clock, healthy(&bare.user, &[]).await.context("to come")?);
    let old = bare.pod_uid("bare-1").await?;
    bare.user.hang_up().await;
    let clock = clock::start();
    story.kubectl(&["delete", "pod", "bare-1", "--wait=false"]).await?;
    gone(&bare.user, &old).await?;
    measured.pod.add(clock, healthy(&bare.user, &[]).await.context("to return")?);
    bare.end().await
}

/// The name of a member and the uid of its pod.
async fn a_pod(cluster: &Cluster) -> Result<(String, String)> {
    let pods = cluster.pods().await?;
    let pod = pods.into_iter().next().context("it has no pods")?.metadata;
    Ok((pod.name.unwrap_or_default(), pod.uid.unwrap_or_default()))
}

async fn ended(story: &Story, cluster: &Cluster) -> Result<()> {
    cluster.delete().await?;
    story
        .wait_until("it to be gone", clock::PATIENCE, async || {
            let left = cluster.pods().await.map_err(|error| format!("{error:#}"))?.len();
            if left == 0 { Ok(()) } else { Err(format!("{left} pods are left")) }
        })
        .await
}

/// One cluster at rest: memory, and calls to the API.
async fn at_rest(story: &Story) -> Result<()> {
    let cluster = story.make_cluster("rest", &small(3, &json!({}))).await?;
    cluster.comes(story, 3, clock::PATIENCE).await?;
    tokio::time::sleep(SETTLES).await;
    let mark = audit::mark(&story.places)?;
    tokio::time::sleep(REST).await;
    let account = format!("system:serviceaccount:{}:{}", names::NAMESPACE, names::OPERATOR);
    let mut calls = audit::calls_since(&story.places, mark)?;
    calls.retain(|it| it.user.username == account && it.object_ref.resource != "leases");
    let writes = calls.iter().filter(|call| call.writes()).count();
    let reads: Vec<_> = calls.iter().filter(|it| !it.writes() && it.verb != "watch").collect();
    let pods = Api::<Pod>::namespaced(story.client.clone(), names::NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/name=quorate");
    println!();
    println!(
        "At rest, one cluster, {} s, leases aside: {writes} writes, {} reads",
        REST.as_secs(),
        reads.len()
    );
    for call in reads {
        let Call { verb, object_ref, request_received_timestamp: at, .. } = call;
        println!("  {at} {verb} {} {}", object_ref.resource, object_ref.name);
    }
    for pod in pods.list(&ours).await? {
        let memory = story.memory_of(&pod)?;
        let name = pod.metadata.name.unwrap_or_default();
        let (resident, proportional) = (mebibytes(memory.resident), mebibytes(memory.proportional));
        println!("{name}: {resident:.1} MiB resident, {proportional:.1} MiB proportional");
    }
    Ok(())
}

fn mebibytes(kibibytes: u64) -> f64 {
    u32::try_from(kibibytes).map_or(f64::INFINITY, f64::from) / 1024.0
}
