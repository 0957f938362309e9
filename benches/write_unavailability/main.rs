//! Write unavailability during a rolling update: the longest time without an acknowledged write
//! during a rolling upgrade of three members, beside the same restarts by hand, in which the
//! leader's pod is deleted without a leader transfer. `make bench-write-gap` prints both and their
//! ratio.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod writer;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use quorate_harness::etcd::MemberProbe;
use quorate_harness::etcd_cluster::{Cluster, small_spec};
use quorate_harness::{Isolation, TestContext, catalog, run};
use serde_json::json;

use writer::{Gap, Writer};

const RUNS: usize = 5;
const OLD: &str = "3.6.10";
const NEW: &str = "3.6.16";
const STEP_TIMEOUT: Duration = Duration::from_mins(5);
/// Until all clients know the endpoint of the last member.
const SETTLE_DELAY: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run("bench-write-gap", Isolation::Serial, async |ctx| {
        ctx.ensure_operator().await?;
        for version in [OLD, NEW] {
            ctx.image(&catalog::etcd_name(version)).await?;
        }
        measure(ctx).await
    }))
}

async fn measure(ctx: &TestContext) -> Result<()> {
    let cluster = ctx.create_cluster("main", &small_spec(3, &json!({"version": OLD}))).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await?;
    println!("steady state: {}", steady_state(&cluster).await?);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for number in 1..=RUNS {
        let gap = upgrade(ctx, &cluster).await.context("an upgrade")?;
        println!("run {number}, with leader transfer: {gap}");
        with.push(gap.longest);
        let gap = by_hand(ctx, &cluster).await.context("restarts by hand")?;
        println!("run {number}, without leader transfer: {gap}");
        without.push(gap.longest);
        // A patch version can be downgraded, so that the next run has something to upgrade.
        cluster.edit(&json!({"version": OLD})).await?;
        cluster.wait_updated(ctx, 3, STEP_TIMEOUT).await?;
    }
    let (with, without) = (median(with), median(without));
    println!();
    println!("| longest time without an acknowledged write, p50 of {RUNS} runs, three members | |");
    println!("| --- | --- |");
    println!("| rolling upgrade from {OLD} to {NEW}, with leader transfer | {with:.0} ms |");
    println!(
        "| all pods deleted one by one, the leader's last, without leader transfer | {without:.0} ms |"
    );
    println!("| ratio | {:.2} |", with / without);
    Ok(())
}

/// The gap that the machine and the writer themselves cause.
async fn steady_state(cluster: &Cluster) -> Result<Gap> {
    let writer = Writer::start(&cluster.etcd).await?;
    tokio::time::sleep(SETTLE_DELAY.saturating_mul(5)).await;
    writer.finish().await
}

async fn upgrade(ctx: &TestContext, cluster: &Cluster) -> Result<Gap> {
    tokio::time::sleep(SETTLE_DELAY).await;
    let writer = Writer::start(&cluster.etcd).await?;
    cluster.edit(&json!({"version": NEW})).await?;
    cluster.wait_updated(ctx, 3, STEP_TIMEOUT).await?;
    tokio::time::sleep(SETTLE_DELAY).await;
    writer.finish().await
}

/// A rolling update without leader transfers: each pod is deleted when all members are healthy.
async fn by_hand(ctx: &TestContext, cluster: &Cluster) -> Result<Gap> {
    tokio::time::sleep(SETTLE_DELAY).await;
    let writer = Writer::start(&cluster.etcd).await?;
    let mut left: Vec<String> = cluster.pods().await?.iter().map(ResourceExt::name_any).collect();
    while !left.is_empty() {
        let leader = leader(cluster).await?;
        // The leader comes last. A former leader has been restarted as a follower.
        let next = left.iter().position(|member| *member != leader).unwrap_or(0);
        let member = left.remove(next);
        let before = cluster.pod(&member).await?.uid();
        let role = if member == leader { "leader" } else { "follower" };
        writer.note(&format!("{role} {member} deleted"));
        ctx.kubectl(&["delete", "pod", &member, "--wait=false"]).await?;
        ctx.wait_until("a new pod", STEP_TIMEOUT, async || {
            let now = cluster.pod(&member).await.map_err(|error| format!("{error:#}"))?.uid();
            if now == before { Err("the old pod exists".to_owned()) } else { Ok(()) }
        })
        .await?;
        cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await?;
    }
    tokio::time::sleep(SETTLE_DELAY).await;
    writer.finish().await
}

async fn leader(cluster: &Cluster) -> Result<String> {
    let probes = cluster.etcd.probe_all().await?;
    let leads =
        probes.into_iter().find(|(_, probe)| probe.as_ref().is_some_and(MemberProbe::is_leader));
    let (name, _) = leads.context("no leader")?;
    ensure!(!name.is_empty(), "the leader has no name");
    Ok(name)
}

/// The median, in milliseconds.
fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    let middle = all.len().checked_div(2).and_then(|index| all.get(index)).copied();
    middle.unwrap_or_default().as_secs_f64() * 1000.0
}
