//! `EtcdClusters` on the local cluster, observed from the outside: by kubectl, the API, and etcd
//! itself.
//!
//! The tests share one operator and have a namespace each. While a test changes a cluster, a writer
//! verifies that no acknowledged write is lost, and a checker that the status matches the members.

mod alarm;
mod auth;
mod bootstrap;
mod ca_rotation;
mod cert_manager;
mod corruption;
mod crash_points;
mod data_loss;
mod defragmentation;
mod deletion;
mod disk;
mod drain;
mod external_certificates;
mod heartbeat;
mod leaf_renewal;
mod manual_changes;
mod many_clusters;
mod member_loss;
mod operator_absent;
mod operator_restart;
mod pki;
mod rolling_update;
mod scale;
mod spec;
mod steady_state;
mod tls_probe;
mod tls_switch;
mod upgrade;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Error, Result, ensure};
use kube::ResourceExt;
use quorate_cluster::wait;
use quorate_harness::etcd::{MemberList, MemberProbe};
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::invariants::InvariantChecker;
use quorate_harness::writer::{WriteSummary, Writer};
use quorate_harness::{Isolation, TestContext, run};

/// How long a cluster may take to become healthy, beside others and on a small machine.
const CREATE_TIMEOUT: Duration = Duration::from_mins(4);
/// The same where no member is replaced.
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(2);
/// How long the status may take to report a change.
const STATUS_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a test waits before it asserts that something did not happen.
const NO_CHANGE_DELAY: Duration = Duration::from_secs(20);

/// A test with the operator installed.
async fn with_operator(
    name: &str,
    isolation: Isolation,
    test: impl AsyncFnOnce(&TestContext) -> Result<()>,
) -> Result<()> {
    run(name, isolation, async |ctx| {
        ctx.ensure_operator().await?;
        match test(ctx).await {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(ctx.operator_diagnosis().await)),
        }
    })
    .await
}

/// What checks a cluster in the background.
struct Monitors {
    writer: Writer,
    invariants: InvariantChecker,
}

/// Runs a part of a test with a writer and an invariant checker in the background. Afterwards no
/// acknowledged write is lost, the status did not differ from the members for long, the membership
/// changed by one member at a time, and all members have the same data.
async fn monitored(
    cluster: &Cluster,
    test: impl AsyncFnOnce(&Monitors) -> Result<()>,
) -> Result<WriteSummary> {
    let writer = Writer::start(&cluster.etcd);
    let invariants = InvariantChecker::start(&cluster.etcd, &cluster.objects, &cluster.name);
    let monitors = Monitors { writer, invariants };
    let result = test(&monitors).await;
    let Monitors { writer, invariants } = monitors;
    let (checks, summary) = (invariants.finish().await, writer.verify().await);
    if let Err(error) = result {
        return Err(with_further_errors(error, &checks, &summary));
    }
    let (checks, summary) = match (checks, summary) {
        (Ok(checks), Ok(summary)) => (checks, summary),
        (Err(error), summary) => return Err(with_further_errors(error, &Ok(()), &summary)),
        (Ok(_), Err(error)) => return Err(error),
    };
    let same = async || cluster.etcd.same_data_hash().await;
    wait::until("all members to have the same data", RECOVERY_TIMEOUT, same).await?;
    println!(
        "{}: {} writes, {} of unknown outcome, longest gap {:.1} s at second {:.0}; {} membership changes, {} members \
         at most",
        cluster.namespace,
        summary.acknowledged,
        summary.unknown,
        summary.longest_gap.as_secs_f32(),
        summary.gap_start.as_secs_f32(),
        checks.changes,
        checks.max_members,
    );
    Ok(summary)
}

/// The first error, with the messages of the others.
fn with_further_errors<T, U>(error: Error, checks: &Result<T>, writes: &Result<U>) -> Error {
    let message = |failed: Option<&Error>| failed.map(|error| format!("\nfurther: {error:#}"));
    let (checks, writes) = (message(checks.as_ref().err()), message(writes.as_ref().err()));
    let further = [checks, writes].into_iter().flatten().collect::<String>();
    if further.is_empty() { error } else { error.context(further) }
}

/// Creates the cluster `main` and waits until it is healthy.
async fn healthy_cluster(
    ctx: &TestContext,
    replicas: i32,
    spec: &serde_json::Value,
) -> Result<Cluster> {
    let spec = quorate_harness::etcd_cluster::small_spec(replicas, spec);
    let cluster = ctx.create_cluster("main", &spec).await?;
    cluster.wait_healthy(ctx, usize::try_from(replicas)?, CREATE_TIMEOUT).await?;
    Ok(cluster)
}

/// Waits until these pods are replaced by others, and the cluster is healthy with the same members.
async fn pods_recreated(
    ctx: &TestContext,
    cluster: &Cluster,
    before: &MemberList,
    pods: &[String],
) -> Result<()> {
    let deleted = async || {
        let now = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        let left = now.iter().filter(|pod| pods.contains(&pod.uid().unwrap_or_default())).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} old pods are left")) }
    };
    ctx.wait_until("the old pods to be deleted", RECOVERY_TIMEOUT, deleted).await?;
    let after = cluster.wait_healthy(ctx, before.members.len(), RECOVERY_TIMEOUT).await?;
    ensure!(after.cluster == before.cluster, "the cluster ID has changed");
    ensure!(ids(&after) == ids(before), "{:?} became {:?}", before.members, after.members);
    Ok(())
}

/// Waits until the member with this ID is removed and the cluster is healthy.
async fn member_replaced(
    ctx: &TestContext,
    cluster: &Cluster,
    voters: usize,
    lost: u64,
) -> Result<MemberList> {
    ctx.wait_until(
        "the lost member to be removed from the member list",
        CREATE_TIMEOUT,
        async || {
            let members = cluster.etcd.member_list().await;
            let members = members.map_err(|error| format!("{error:#}"))?.members;
            match members.iter().find(|member| member.id == lost) {
                Some(member) => Err(format!("{member} is still listed")),
                None => Ok(()),
            }
        },
    )
    .await?;
    cluster.wait_healthy(ctx, voters, CREATE_TIMEOUT).await
}

/// Fails if the member IDs have changed.
async fn same_members(cluster: &Cluster, before: &MemberList) -> Result<()> {
    let after = cluster.etcd.member_list().await?;
    ensure!(ids(&after) == ids(before), "{before:?} became {after:?}");
    Ok(())
}

fn ids(list: &MemberList) -> BTreeSet<u64> {
    list.members.iter().map(|member| member.id).collect()
}

/// The uids of the pods of a cluster.
async fn pod_uids(cluster: &Cluster) -> Result<Vec<String>> {
    Ok(cluster.pods().await?.iter().filter_map(ResourceExt::uid).collect())
}

/// The leader, and a follower.
async fn leader_and_follower(cluster: &Cluster) -> Result<(String, String)> {
    let probes = cluster.etcd.probe_all().await?;
    let leads = probes.iter().find(|(_, probe)| probe.as_ref().is_some_and(MemberProbe::is_leader));
    let leader = leads.map(|(name, _)| name.clone()).unwrap_or_default();
    let follows = probes.iter().find(|(name, _)| *name != leader);
    let follower = follows.map(|(name, _)| name.clone()).unwrap_or_default();
    ensure!(!leader.is_empty() && !follower.is_empty(), "no leader, or no follower");
    Ok((leader, follower))
}

/// Waits until further writes are acknowledged.
async fn writes_continue(ctx: &TestContext, monitors: &Monitors) -> Result<()> {
    let before = monitors.writer.acknowledged();
    ctx.wait_until("writes to continue", RECOVERY_TIMEOUT, async || {
        let more = monitors.writer.acknowledged().saturating_sub(before);
        if more > 20 { Ok(()) } else { Err(format!("{more} writes were acknowledged")) }
    })
    .await
}
