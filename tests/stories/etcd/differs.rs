//! Members have different data: a few bytes are changed in a member's file behind its back, and etcd finds it when it forgets history.

use anyhow::{Context, Result, ensure};
use etcd_client::AlarmType;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::upkeep::{no_alarm, trouble};
use super::{
    COMES, NEVER, SAYS, are_the_same, healthy, leader_and_follower, pod_uids, replaced, watched,
    with_operator, writes_go_on,
};

const KEY: &str = "precious";
const RIGHT: &str = "what-was-written-by-somebody-0000";
const WRONG: [&str; 2] = ["what-was-written-by-somebody-1111", "what-was-written-by-somebody-2222"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn one_member_whose_data_differs_is_replaced_and_what_was_written_stays() -> Result<()> {
    with_operator("etcd-differs", Disturbs::Nothing, async |story| {
        for leads in [false, true] {
            one_differs(story, leads).await.with_context(|| format!("it leads: {leads}"))?;
        }
        Ok(())
    })
    .await
}

async fn one_differs(story: &Story, leads: bool) -> Result<()> {
    let cluster = healthy(story, 3, &json!({})).await?;
    watched(&cluster, async |witnesses| {
        cluster.user.put(KEY, RIGHT).await?;
        settles(story, &cluster).await?;
        let before = cluster.user.listed().await?;
        let (leader, follower) = leader_and_follower(&cluster).await?;
        let wrong = if leads { leader } else { follower };
        let lost = before.id_of(&wrong).context("nobody is wrong")?;
        story.tamper(&cluster.pod(&wrong).await?, RIGHT, WRONG[0])?;
        cluster.user.forget().await?;
        is_found(story, &cluster).await?;
        let after = replaced(story, &cluster, 3, lost).await?;
        ensure!(after.cluster == before.cluster, "another cluster has come");
        no_alarm(story, &cluster).await?;
        writes_go_on(story, witnesses).await?;
        for endpoint in cluster.user.endpoints().await? {
            let there = endpoint.below(KEY).await?;
            let kept = there.first().is_some_and(|it| it.value == RIGHT);
            ensure!(kept, "{} has {there:?}", endpoint.member);
        }
        Ok(())
    })
    .await?;
    cluster.delete().await?;
    story
        .wait_until("the cluster to be gone", COMES, async || {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            if pods.is_empty() { Ok(()) } else { Err(format!("{} pods are there", pods.len())) }
        })
        .await?;
    story.kubectl(&["delete", "pvc", "--all"]).await.map(drop)
}

/// No writer here: nobody can write until a person has decided, and that is what is shown.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn three_different_copies_are_left_alone_and_a_person_is_asked() -> Result<()> {
    with_operator("etcd-differ-all", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        cluster.user.put(KEY, RIGHT).await?;
        settles(story, &cluster).await?;
        let before = cluster.user.listed().await?;
        let pods = pod_uids(&cluster).await?;
        let (leader, _) = leader_and_follower(&cluster).await?;
        let others = before.members.iter().filter(|it| it.name != leader);
        for (other, wrong) in others.zip(WRONG) {
            story.tamper(&cluster.pod(&other.name).await?, RIGHT, wrong)?;
        }
        cluster.user.forget().await?;
        is_found(story, &cluster).await?;
        let (_, words) = trouble(story, &cluster, "CorruptionUnresolved").await?;
        println!("it says: {words}");
        for member in &before.members {
            ensure!(words.contains(&member.name), "{} is not named: {words}", member.name);
        }
        cluster.says(story, "Stalled", "True", SAYS).await?;
        // Something is to be done, and waits.
        cluster.edit(&json!({"options": {"snapshotCount": 20_000}, "replicas": 5})).await?;
        tokio::time::sleep(NEVER).await;
        ensure!(pod_uids(&cluster).await? == pods, "members were disturbed");
        are_the_same(&cluster, &before).await?;
        let alarms = cluster.user.alarms().await?;
        ensure!(alarms.contains(&AlarmType::Corrupt), "the alarm was ended: {alarms:?}");
        Ok(())
    })
    .await
}

/// Waits until what was written is in every member's file.
async fn settles(story: &Story, cluster: &Cluster) -> Result<()> {
    story
        .wait_until("what was written to be in all files", SAYS, async || {
            for pod in cluster.pods().await.map_err(|error| format!("{error:#}"))? {
                let is_there =
                    story.is_in_file(&pod, RIGHT).map_err(|error| format!("{error:#}"))?;
                if !is_there {
                    return Err(format!("it is not in that of {:?}", pod.metadata.name));
                }
            }
            Ok(())
        })
        .await
}

/// etcd compares once a minute what members had when they forgot.
async fn is_found(story: &Story, cluster: &Cluster) -> Result<()> {
    story
        .wait_until("etcd to find that data differs", COMES, async || {
            let alarms = cluster.user.alarms().await.map_err(|error| format!("{error:#}"))?;
            let listed = cluster.user.listed().await.map_err(|error| format!("{error:#}"))?;
            let is_found = alarms.contains(&AlarmType::Corrupt) || listed.members.len() < 3;
            if is_found { Ok(()) } else { Err(format!("{alarms:?}")) }
        })
        .await
}
