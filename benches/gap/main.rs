//! How long nobody can write while members are made anew: the longest time without an acknowledged write during a rolling upgrade
//! of three members, beside the same roll by hand, in which the leader's pod is deleted without letting another lead first.
//! `make bench-gap` prints both and their ratio.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod writer;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use quorate_harness::etcd_cluster::{Cluster, small};
use quorate_harness::{Disturbs, Story, catalog, tell};
use serde_json::json;

use writer::{Gap, Writer};

const RUNS: usize = 5;
const OLD: &str = "3.6.10";
const NEW: &str = "3.6.16";
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_mins(5);
/// Until whoever came last is known to everybody.
const SETTLES: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(tell("bench-gap", Disturbs::Everything, async |story| {
        story.operator().await?;
        for version in [OLD, NEW] {
            story.image(&catalog::etcd_name(version)).await?;
        }
        measured(story).await
    }))
}

async fn measured(story: &Story) -> Result<()> {
    let cluster = story.make_cluster("main", &small(3, &json!({"version": OLD}))).await?;
    cluster.comes(story, 3, PATIENCE).await?;
    println!("at rest: {}", at_rest(&cluster).await?);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for number in 1..=RUNS {
        let gap = upgrade(story, &cluster).await.context("an upgrade")?;
        println!("run {number}, the leader is moved first: {gap}");
        with.push(gap.longest);
        let gap = by_hand(story, &cluster).await.context("a roll by hand")?;
        println!("run {number}, it is not: {gap}");
        without.push(gap.longest);
        // A patch can be taken back, so that there is something to upgrade again.
        cluster.edit(&json!({"version": OLD})).await?;
        cluster.is_updated(story, 3, PATIENCE).await?;
    }
    let (with, without) = (median(with), median(without));
    println!();
    println!("| longest time without an acknowledged write, p50 of {RUNS} runs, three members | |");
    println!("| --- | --- |");
    println!("| rolling upgrade from {OLD} to {NEW}, the leader is moved first | {with:.0} ms |");
    println!(
        "| all pods deleted one by one, the leader's last, nobody is moved | {without:.0} ms |"
    );
    println!("| ratio | {:.2} |", with / without);
    Ok(())
}

/// What the machine and the writer themselves take.
async fn at_rest(cluster: &Cluster) -> Result<Gap> {
    let writer = Writer::begin(&cluster.user).await?;
    tokio::time::sleep(SETTLES.saturating_mul(5)).await;
    writer.end().await
}

async fn upgrade(story: &Story, cluster: &Cluster) -> Result<Gap> {
    tokio::time::sleep(SETTLES).await;
    let writer = Writer::begin(&cluster.user).await?;
    cluster.edit(&json!({"version": NEW})).await?;
    cluster.is_updated(story, 3, PATIENCE).await?;
    tokio::time::sleep(SETTLES).await;
    writer.end().await
}

/// What the roll does, but for moving the leader: each pod is deleted when all members are well.
async fn by_hand(story: &Story, cluster: &Cluster) -> Result<Gap> {
    tokio::time::sleep(SETTLES).await;
    let writer = Writer::begin(&cluster.user).await?;
    let mut left: Vec<String> = cluster.pods().await?.iter().map(ResourceExt::name_any).collect();
    while !left.is_empty() {
        let leader = leader(cluster).await?;
        // Who leads comes last. If it was another before, it has had its turn as a follower.
        let next = left.iter().position(|it| *it != leader).unwrap_or(0);
        let member = left.remove(next);
        let before = cluster.pod(&member).await?.uid();
        writer.note(&format!("{member} goes{}", if member == leader { ", and leads" } else { "" }));
        story.kubectl(&["delete", "pod", &member, "--wait=false"]).await?;
        story
            .wait_until("another pod", PATIENCE, async || {
                let now = cluster.pod(&member).await.map_err(|error| format!("{error:#}"))?.uid();
                if now == before { Err("the old one is there".to_owned()) } else { Ok(()) }
            })
            .await?;
        cluster.comes(story, 3, PATIENCE).await?;
    }
    tokio::time::sleep(SETTLES).await;
    writer.end().await
}

async fn leader(cluster: &Cluster) -> Result<String> {
    let asked = cluster.user.ask_all().await?;
    let leads = asked.into_iter().find(|(_, it)| it.as_ref().is_some_and(|it| it.leader == it.id));
    let (name, _) = leads.context("nobody leads")?;
    ensure!(!name.is_empty(), "the leader has no name");
    Ok(name)
}

/// The one in the middle, in milliseconds.
fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    let middle = all.len().checked_div(2).and_then(|it| all.get(it)).copied();
    middle.unwrap_or_default().as_secs_f64() * 1000.0
}
