//! The cost of the operator on the local cluster: the time until an EtcdCluster is healthy, the
//! recovery times, memory, and API calls in steady state. Each time stands beside that of the same
//! three pods as a bare StatefulSet in the same run, which is the time that the machine itself
//! takes. `make bench-cluster` prints the table.
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
use quorate_harness::etcd_cluster::{Cluster, small_spec};
use quorate_harness::{Isolation, TestContext, catalog, run};
use serde_json::json;

use bare::Bare;
use clock::{Times, healthy, removed, stopped};

const RUNS: usize = 5;
const VERSION: &str = "3.6.16";
const STEADY_STATE_DELAY: Duration = Duration::from_mins(1);
/// Until the events of the last change are processed.
const SETTLE_DELAY: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run("bench", Isolation::Serial, async |ctx| {
        ctx.ensure_operator().await?;
        ctx.image(&catalog::etcd_name(VERSION)).await?;
        measure(ctx).await
    }))
}

async fn measure(ctx: &TestContext) -> Result<()> {
    // The first run waits for an election, and for images that were never unpacked.
    run_operator(ctx, "warm", &mut Measured::default()).await?;
    let (mut operator, mut baseline) = (Measured::default(), Measured::default());
    for number in 0..RUNS {
        run_bare(ctx, &mut baseline).await.context("the bare pods")?;
        run_operator(ctx, &format!("run-{number}"), &mut operator).await?;
        println!("run {} of {RUNS} is complete", number.saturating_add(1));
    }
    println!();
    println!("| p50 of {RUNS} runs, etcd {VERSION} | Quorate | bare StatefulSet | ratio |");
    println!("| --- | --- | --- | --- |");
    println!("{}", operator.create.row("apply to 3 healthy voters", Some(&baseline.create)));
    println!("{}", operator.pod.row("pod deleted to healthy", Some(&baseline.pod)));
    println!("{}", operator.volume.row("volume lost to voter again", None));
    steady_state(ctx).await
}

/// The times of one kind of cluster.
#[derive(Default)]
struct Measured {
    create: Times,
    pod: Times,
    volume: Times,
}

async fn run_operator(ctx: &TestContext, name: &str, measured: &mut Measured) -> Result<()> {
    let spec = small_spec(3, &json!({"version": VERSION, "deletionPolicy": "Delete"}));
    let clock = clock::start();
    let cluster = ctx.create_cluster(name, &spec).await?;
    measured.create.add(clock, healthy(&cluster.etcd, &[]).await.context("creation")?);

    // The recovery times are those of a cluster in steady state.
    cluster.wait_healthy(ctx, 3, clock::STEP_TIMEOUT).await?;
    let (member, old) = a_pod(&cluster).await?;
    cluster.etcd.disconnect().await;
    let clock = clock::start();
    ctx.kubectl(&["delete", "pod", &member, "--wait=false"]).await?;
    stopped(&cluster.etcd, &old).await?;
    measured.pod.add(clock, healthy(&cluster.etcd, &[]).await.context("pod recovery")?);

    cluster.wait_healthy(ctx, 3, clock::STEP_TIMEOUT).await?;
    let (member, _) = a_pod(&cluster).await?;
    let lost =
        cluster.etcd.member_list().await?.id_of(&member).context("the member is not listed")?;
    let clock = clock::start();
    cluster.delete_pod_and_pvc(&member).await?;
    removed(&cluster.etcd, lost).await?;
    measured.volume.add(clock, healthy(&cluster.etcd, &[lost]).await.context("volume recovery")?);
    delete(ctx, &cluster).await
}

async fn run_bare(ctx: &TestContext, measured: &mut Measured) -> Result<()> {
    let clock = clock::start();
    let bare = Bare::create(ctx, VERSION).await?;
    measured.create.add(clock, healthy(&bare.etcd, &[]).await.context("creation")?);
    let old = bare.pod_uid("bare-1").await?;
    bare.etcd.disconnect().await;
    let clock = clock::start();
    ctx.kubectl(&["delete", "pod", "bare-1", "--wait=false"]).await?;
    stopped(&bare.etcd, &old).await?;
    measured.pod.add(clock, healthy(&bare.etcd, &[]).await.context("pod recovery")?);
    bare.delete().await
}

/// The name of a member and the uid of its pod.
async fn a_pod(cluster: &Cluster) -> Result<(String, String)> {
    let pods = cluster.pods().await?;
    let pod = pods.into_iter().next().context("no pods")?.metadata;
    Ok((pod.name.unwrap_or_default(), pod.uid.unwrap_or_default()))
}

async fn delete(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    cluster.delete().await?;
    ctx.wait_until("the cluster to be deleted", clock::STEP_TIMEOUT, async || {
        let left = cluster.pods().await.map_err(|error| format!("{error:#}"))?.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} pods are left")) }
    })
    .await
}

/// One cluster in steady state: memory, and API calls.
async fn steady_state(ctx: &TestContext) -> Result<()> {
    let cluster = ctx.create_cluster("steady", &small_spec(3, &json!({}))).await?;
    cluster.wait_healthy(ctx, 3, clock::STEP_TIMEOUT).await?;
    tokio::time::sleep(SETTLE_DELAY).await;
    let mark = audit::mark(&ctx.paths)?;
    tokio::time::sleep(STEADY_STATE_DELAY).await;
    let account = format!("system:serviceaccount:{}:{}", names::NAMESPACE, names::OPERATOR);
    let mut calls = audit::calls_since(&ctx.paths, mark)?;
    calls.retain(|call| call.user.username == account && call.object_ref.resource != "leases");
    let writes = calls.iter().filter(|call| call.writes()).count();
    let reads: Vec<_> =
        calls.iter().filter(|call| !call.writes() && call.verb != "watch").collect();
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), names::NAMESPACE);
    let selector = ListParams::default().labels("app.kubernetes.io/name=quorate");
    println!();
    println!(
        "Steady state, one cluster, {} s, leases aside: {writes} writes, {} reads",
        STEADY_STATE_DELAY.as_secs(),
        reads.len()
    );
    for call in reads {
        let Call { verb, object_ref, request_received_timestamp: at, .. } = call;
        println!("  {at} {verb} {} {}", object_ref.resource, object_ref.name);
    }
    for pod in pods.list(&selector).await? {
        let memory = ctx.pod_memory(&pod)?;
        let name = pod.metadata.name.unwrap_or_default();
        let (resident, proportional) = (mebibytes(memory.resident), mebibytes(memory.proportional));
        println!("{name}: {resident:.1} MiB resident, {proportional:.1} MiB proportional");
    }
    Ok(())
}

fn mebibytes(kibibytes: u64) -> f64 {
    u32::try_from(kibibytes).map_or(f64::INFINITY, f64::from) / 1024.0
}
