//! The operator is killed at any moment of its work, or hands over to another: what it began comes to its end.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use quorate_harness::etcd_cluster::{Cluster, small};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{RETURNS, healthy, leader_and_follower, replaced, watched, with_operator};
use crate::installed::{NAMESPACE, another_leader, leader, replicas, rolled_out};

/// A lease must expire after each death before anything goes on.
const PATIENCE: Duration = Duration::from_mins(10);
/// The longest that anybody leads who is to die.
const LIFE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn an_operator_that_is_killed_again_and_again_brings_its_work_to_an_end() -> Result<()> {
    with_operator("etcd-killed-operator", Disturbs::Everything, async |story| {
        let cluster = story.make_cluster("main", &small(3, &json!({}))).await?;
        while_it_dies(story, cluster.comes(story, 3, PATIENCE)).await.context("install")?;
        watched(&cluster, async |witnesses| {
            // While nobody leads, nobody can keep the status true.
            witnesses.watchman.be_lenient(true);
            sized(story, &cluster, 5).await?;
            while_it_dies(story, cluster.comes(story, 5, PATIENCE)).await.context("grow")?;
            while_it_dies(story, loses_one(story, &cluster, 5)).await.context("replace")?;
            sized(story, &cluster, 3).await?;
            while_it_dies(story, cluster.comes(story, 3, PATIENCE)).await.context("shrink")?;
            Ok(())
        })
        .await?;
        rolled_out(story).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_new_leader_of_the_operator_goes_on_where_the_old_one_was() -> Result<()> {
    with_operator("etcd-handed-over", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            witnesses.watchman.be_lenient(true);
            for replicas in [5_usize, 3] {
                let old = leader(story).await?;
                cluster.edit(&json!({"replicas": replicas})).await?;
                tokio::time::sleep(Duration::from_secs(2)).await;
                let delete = ["-n", NAMESPACE, "delete", "pod", &old.name_any(), "--wait=false"];
                story.admin.run(&delete).await?;
                another_leader(story, &old).await?;
                cluster.comes(story, replicas, PATIENCE).await?;
            }
            Ok(())
        })
        .await?;
        rolled_out(story).await
    })
    .await
}

/// A leader that hangs past its lease and then goes on must not do what another has done meanwhile.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_leader_that_hung_while_another_scaled_does_no_harm_when_it_goes_on() -> Result<()> {
    with_operator("etcd-hung-operator", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            witnesses.watchman.be_lenient(true);
            let old = leader(story).await?;
            cluster.edit(&json!({"replicas": 5})).await?;
            tokio::time::sleep(Duration::from_secs(2)).await;
            let hung = story.stop_pod(&old)?;
            another_leader(story, &old).await?;
            cluster.comes(story, 5, PATIENCE).await?;
            cluster.edit(&json!({"replicas": 3})).await?;
            drop(hung);
            cluster.comes(story, 3, PATIENCE).await.map(drop)
        })
        .await?;
        rolled_out(story).await
    })
    .await
}

/// Edits the size. Right after a death there may be nobody who takes an edit.
async fn sized(story: &Story, cluster: &Cluster, replicas: usize) -> Result<()> {
    story
        .wait_until("the edit to be taken", RETURNS, async || {
            let edited = cluster.edit(&json!({"replicas": replicas})).await;
            edited.map_err(|error| format!("{error:#}"))
        })
        .await
}

async fn loses_one(story: &Story, cluster: &Cluster, voters: usize) -> Result<()> {
    let before = cluster.user.listed().await?;
    let (_, follower) = leader_and_follower(cluster).await?;
    cluster.lose_member(&follower).await?;
    let lost = before.id_of(&follower).context("nobody was lost")?;
    let begun = std::time::Instant::now();
    // One wait is not enough where each death costs a lease.
    loop {
        match replaced(story, cluster, voters, lost).await {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_not_yet) => {}
        }
    }
}

/// Lets something happen while whoever leads is killed within seconds, at moments that nobody chose. The first of them dies before
/// much can have happened.
pub(super) async fn while_it_dies<T>(
    story: &Story,
    plot: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut deaths = 0_u32;
    let kill = async {
        let mut life = chance(LIFE.checked_div(4).unwrap_or_default());
        loop {
            tokio::time::sleep(life).await;
            match Box::pin(die(story)).await {
                Ok(dead) => deaths = deaths.saturating_add(dead),
                Err(error) => return error,
            }
            // Until then nobody leads, and a death would prove nothing.
            if let Err(error) = Box::pin(leader(story)).await {
                return error;
            }
            life = chance(LIFE);
        }
    };
    // What a test calls has a small stack.
    let told = tokio::select! {
        told = Box::pin(plot) => told,
        error = Box::pin(kill) => Err(error),
    }?;
    println!("the operator died {deaths} times");
    ensure!(deaths > 0, "it was over before anybody died");
    Ok(told)
}

fn chance(most: Duration) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(u64::from(now.subsec_micros()).checked_rem(most).unwrap_or_default())
}

/// Kills who holds the lease, if there is somebody, and makes room for the next at once. Answers with how many died.
pub(super) async fn die(story: &Story) -> Result<u32> {
    let pods = Api::<Pod>::namespaced(story.client.clone(), NAMESPACE);
    let leases = Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(
        story.client.clone(),
        NAMESPACE,
    );
    let lease = leases.get_opt("quorate").await?.and_then(|lease| lease.spec);
    let holder = lease.and_then(|spec| spec.holder_identity).unwrap_or_default();
    let all = replicas(story).await?;
    let leads = all.iter().filter(|pod| holder.starts_with(&pod.name_any()));
    let mut dead = 0_u32;
    for pod in leads {
        // One that has not started yet cannot be killed.
        dead = dead.saturating_add(u32::from(story.kill_pod(pod).is_ok()));
        // A container that died waits longer and longer; a new pod does not.
        drop(pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await);
    }
    Ok(dead)
}
