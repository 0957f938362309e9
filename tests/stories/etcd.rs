//! What people rely on in an EtcdCluster, on the real cluster and from the outside: kubectl, the API, and etcd itself.
//!
//! The stories share one operator and have a namespace each. Whatever is done to a cluster is done under the eyes of a
//! writer, who knows afterwards whether a write was lost, and of a watchman, who knows whether the status lied.

mod alarm;
mod authorities;
mod certificates;
mod change;
mod crowd;
mod differs;
mod disk;
mod doors;
mod drain;
mod emptied;
mod ending;
mod handshake;
mod install;
mod interrupted;
mod issuer;
mod lose;
mod meddled;
mod pace;
mod pki;
mod rehearsed;
mod rest;
mod scale;
mod sources;
mod spec;
mod unattended;
mod upkeep;
mod users;
mod versions;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Error, Result, ensure};
use kube::ResourceExt;
use quorate_cluster::wait;
use quorate_harness::etcd::Listed;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::watchman::Watchman;
use quorate_harness::writer::{Account, Writer};
use quorate_harness::{Disturbs, Story, tell};

/// How long a cluster may take until it is healthy, beside others and on a small machine.
const COMES: Duration = Duration::from_mins(4);
/// The same where nothing has to be made anew.
const RETURNS: Duration = Duration::from_mins(2);
/// How long a status may take to say something.
const SAYS: Duration = Duration::from_mins(1);
/// How long what must not happen gets to happen.
const NEVER: Duration = Duration::from_secs(20);

/// A story with the operator in the cluster.
async fn with_operator(
    name: &str,
    disturbs: Disturbs,
    plot: impl AsyncFnOnce(&Story) -> Result<()>,
) -> Result<()> {
    tell(name, disturbs, async |story| {
        story.operator().await?;
        match plot(story).await {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(story.operators_page().await)),
        }
    })
    .await
}

/// Those who watch.
struct Witnesses {
    writer: Writer,
    watchman: Watchman,
}

/// Lets something happen to a cluster under the eyes of a writer and a watchman. At the end no acknowledged write is
/// lost, the status never lied for long, members came and went one by one, and all have the same data.
async fn watched(
    cluster: &Cluster,
    plot: impl AsyncFnOnce(&Witnesses) -> Result<()>,
) -> Result<Account> {
    let writer = Writer::begin(&cluster.user);
    let watchman = Watchman::begin(&cluster.user, &cluster.objects, &cluster.name);
    let witnesses = Witnesses { writer, watchman };
    let told = plot(&witnesses).await;
    let Witnesses { writer, watchman } = witnesses;
    let (seen, account) = (watchman.report().await, writer.account().await);
    if let Err(error) = told {
        return Err(besides(error, &seen, &account));
    }
    let (seen, account) = match (seen, account) {
        (Ok(seen), Ok(account)) => (seen, account),
        (Err(error), account) => return Err(besides(error, &Ok(()), &account)),
        (Ok(_), Err(error)) => return Err(error),
    };
    let same = async || cluster.user.same_everywhere().await;
    wait::until("all members to have the same data", RETURNS, same).await?;
    println!(
        "{}: {} writes, {} in doubt, longest gap {:.1} s at second {:.0}; {} changes of members, {} at most",
        cluster.namespace,
        account.acknowledged,
        account.unknown,
        account.longest_gap.as_secs_f32(),
        account.gap_began.as_secs_f32(),
        seen.changes,
        seen.most,
    );
    Ok(account)
}

/// The first failure, and what else was seen.
fn besides<T, U>(error: Error, seen: &Result<T>, account: &Result<U>) -> Error {
    let words = |failed: Option<&Error>| failed.map(|it| format!("\nbesides: {it:#}"));
    let (seen, account) = (words(seen.as_ref().err()), words(account.as_ref().err()));
    let more = [seen, account].into_iter().flatten().collect::<String>();
    if more.is_empty() { error } else { error.context(more) }
}

/// A cluster that is there and healthy.
async fn healthy(story: &Story, replicas: i32, spec: &serde_json::Value) -> Result<Cluster> {
    let spec = quorate_harness::etcd_cluster::small(replicas, spec);
    let cluster = story.make_cluster("main", &spec).await?;
    cluster.comes(story, usize::try_from(replicas)?, COMES).await?;
    Ok(cluster)
}

/// Waits until the pods of these members are others than before, and the cluster is healthy with the same members.
async fn return_to(
    story: &Story,
    cluster: &Cluster,
    before: &Listed,
    pods: &[String],
) -> Result<()> {
    let others = async || {
        let now = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        let left = now.iter().filter(|pod| pods.contains(&pod.uid().unwrap_or_default())).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} old pods are there")) }
    };
    story.wait_until("the old pods to be gone", RETURNS, others).await?;
    let after = cluster.comes(story, before.members.len(), RETURNS).await?;
    ensure!(after.cluster == before.cluster, "another cluster has come back");
    ensure!(ids(&after) == ids(before), "{:?} came back as {:?}", before.members, after.members);
    Ok(())
}

/// Waits until the cluster is healthy without the member of this ID.
async fn replaced(story: &Story, cluster: &Cluster, voters: usize, lost: u64) -> Result<Listed> {
    story
        .wait_until("the lost member to be struck from the list", COMES, async || {
            let listed = cluster.user.listed().await.map_err(|error| format!("{error:#}"))?;
            match listed.members.iter().find(|it| it.id == lost) {
                Some(member) => Err(format!("{member} is still listed")),
                None => Ok(()),
            }
        })
        .await?;
    cluster.comes(story, voters, COMES).await
}

/// Fails if etcd lists others than before.
async fn are_the_same(cluster: &Cluster, before: &Listed) -> Result<()> {
    let after = cluster.user.listed().await?;
    ensure!(ids(&after) == ids(before), "{before:?} became {after:?}");
    Ok(())
}

fn ids(listed: &Listed) -> BTreeSet<u64> {
    listed.members.iter().map(|it| it.id).collect()
}

/// The uids of all pods of a cluster.
async fn pod_uids(cluster: &Cluster) -> Result<Vec<String>> {
    Ok(cluster.pods().await?.iter().filter_map(ResourceExt::uid).collect())
}

/// The member that leads, and one that follows.
async fn leader_and_follower(cluster: &Cluster) -> Result<(String, String)> {
    let asked = cluster.user.ask_all().await?;
    let leads = asked.iter().find(|(_, it)| it.as_ref().is_some_and(|it| it.leader == it.id));
    let leader = leads.map(|(name, _)| name.clone()).unwrap_or_default();
    let follows = asked.iter().find(|(name, _)| *name != leader);
    let follower = follows.map(|(name, _)| name.clone()).unwrap_or_default();
    ensure!(!leader.is_empty() && !follower.is_empty(), "nobody leads, or nobody follows");
    Ok((leader, follower))
}

/// Waits until more is written than now: the cluster takes writes.
async fn writes_go_on(story: &Story, witnesses: &Witnesses) -> Result<()> {
    let before = witnesses.writer.acknowledged();
    story
        .wait_until("writes to go on", RETURNS, async || {
            let more = witnesses.writer.acknowledged().saturating_sub(before);
            if more > 20 { Ok(()) } else { Err(format!("{more} writes were acknowledged")) }
        })
        .await
}
