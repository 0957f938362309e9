//! Members lose their pods, and their volumes, one and all.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use quorate_harness::Disturbs;
use serde_json::json;

use super::{
    NEVER, RETURNS, healthy, leader_and_follower, pod_uids, replaced, return_to, watched,
    with_operator,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_comes_back_as_the_same_member_on_its_volume() -> Result<()> {
    with_operator("etcd-pod", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            // The worst of the three to lose.
            let (leader, _) = leader_and_follower(&cluster).await?;
            let pod = cluster.pod(&leader).await?;
            story.kubectl(&["delete", "pod", &leader, "--wait=false"]).await?;
            return_to(story, &cluster, &before, &[pod.uid().unwrap_or_default()]).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_lost_pod_and_volume_is_replaced_by_a_new_one() -> Result<()> {
    with_operator("etcd-member", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            let lost = before.id_of(&leader).unwrap_or_default();
            cluster.lose_member(&leader).await?;
            let after = replaced(story, &cluster, 3, lost).await?;
            ensure!(after.cluster == before.cluster, "another cluster has come");
            let kept = after.members.iter().filter(|it| before.members.contains(it)).count();
            ensure!(kept == 2, "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_pods_are_deleted_at_once_the_same_members_return_with_their_data() -> Result<()> {
    with_operator("etcd-all-pods", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            cluster.user.put("before", "the end").await?;
            let before = cluster.user.listed().await?;
            let pods = pod_uids(&cluster).await?;
            let names = quorate_harness::etcd_cluster::names(&before);
            cluster.lose_pods(&names).await?;
            return_to(story, &cluster, &before, &pods).await?;
            let kept = cluster.user.get("before").await?;
            ensure!(kept.is_some_and(|it| it.value == "the end"), "what was written is gone");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn two_members_lost_one_after_the_other_are_replaced_without_losing_a_write() -> Result<()> {
    with_operator("etcd-two", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            for _ in 0..2 {
                let before = cluster.user.listed().await?;
                let (leader, _) = leader_and_follower(&cluster).await?;
                cluster.lose_member(&leader).await?;
                replaced(story, &cluster, 3, before.id_of(&leader).unwrap_or_default()).await?;
            }
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn while_a_lost_member_is_replaced_another_may_lose_its_pod() -> Result<()> {
    with_operator("etcd-both", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let (leader, follower) = leader_and_follower(&cluster).await?;
            let lost = before.id_of(&leader).unwrap_or_default();
            cluster.lose_member(&leader).await?;
            cluster.lose_pods(std::slice::from_ref(&follower)).await?;
            let after = replaced(story, &cluster, 3, lost).await?;
            ensure!(after.cluster == before.cluster, "another cluster has come");
            ensure!(after.id_of(&follower) == before.id_of(&follower), "{follower} was given up");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn when_most_volumes_are_lost_it_says_so_and_what_is_left_is_not_touched() -> Result<()> {
    with_operator("etcd-majority", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        let before = cluster.user.listed().await?;
        let members = quorate_harness::etcd_cluster::names(&before);
        let (kept, lost) = members.split_first().context("nobody is listed")?;
        let pod = cluster.pod(kept).await?.uid();
        for member in lost {
            cluster.lose_member(member).await?;
        }
        let (reason, words) = cluster.says(story, "QuorumLost", "True", RETURNS).await?;
        println!("it says {reason}: {words}");
        let begun = std::time::Instant::now();
        while begun.elapsed() < NEVER {
            let listed = cluster.user.listed().await;
            ensure!(listed.is_err(), "somebody founded another cluster: {listed:?}");
        }
        ensure!(cluster.pod(kept).await?.uid() == pod, "the last pod was touched");
        let left = cluster.claims().await?;
        let left = left.iter().find(|it| it.name_any() == *kept);
        let going = left.is_none_or(|it| it.metadata.deletion_timestamp.is_some());
        ensure!(!going, "the last volume was touched");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn killed_processes_come_back_by_themselves_on_their_volumes() -> Result<()> {
    with_operator("etcd-killed", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            for pod in cluster.pods().await? {
                story.kill_pod(&pod)?;
            }
            super::writes_go_on(story, witnesses).await?;
            let after = cluster.comes(story, 3, RETURNS).await?;
            ensure!(super::ids(&after) == super::ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}
