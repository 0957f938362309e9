//! Members lose their pods and their volumes, one or all of them.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use quorate_harness::Isolation;
use serde_json::json;

use super::{
    NO_CHANGE_DELAY, RECOVERY_TIMEOUT, healthy_cluster, leader_and_follower, member_replaced,
    monitored, pod_uids, pods_recreated, with_operator,
};

#[tokio::test(flavor = "multi_thread")]
async fn deleted_pod_is_recreated_as_the_same_member_on_its_volume() -> Result<()> {
    with_operator("etcd-pod", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            // The leader is the most disruptive to lose.
            let (leader, _) = leader_and_follower(&cluster).await?;
            let pod = cluster.pod(&leader).await?;
            ctx.kubectl(&["delete", "pod", &leader, "--wait=false"]).await?;
            pods_recreated(ctx, &cluster, &before, &[pod.uid().unwrap_or_default()]).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn member_with_lost_pod_and_volume_is_replaced() -> Result<()> {
    with_operator("etcd-member", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            let lost = before.id_of(&leader).unwrap_or_default();
            cluster.delete_pod_and_pvc(&leader).await?;
            let after = member_replaced(ctx, &cluster, 3, lost).await?;
            ensure!(after.cluster == before.cluster, "the cluster ID has changed");
            let kept =
                after.members.iter().filter(|member| before.members.contains(member)).count();
            ensure!(kept == 2, "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn members_keep_their_data_when_all_pods_are_deleted_at_once() -> Result<()> {
    with_operator("etcd-all-pods", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            cluster.etcd.put("before", "the deletion").await?;
            let before = cluster.etcd.member_list().await?;
            let pods = pod_uids(&cluster).await?;
            let names = quorate_harness::etcd_cluster::member_names(&before);
            cluster.delete_pods(&names).await?;
            pods_recreated(ctx, &cluster, &before, &pods).await?;
            let kept = cluster.etcd.get("before").await?;
            ensure!(
                kept.is_some_and(|entry| entry.value == "the deletion"),
                "the written value is lost"
            );
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn two_members_lost_in_sequence_are_replaced_without_losing_a_write() -> Result<()> {
    with_operator("etcd-two", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            for _ in 0..2 {
                let before = cluster.etcd.member_list().await?;
                let (leader, _) = leader_and_follower(&cluster).await?;
                cluster.delete_pod_and_pvc(&leader).await?;
                member_replaced(ctx, &cluster, 3, before.id_of(&leader).unwrap_or_default())
                    .await?;
            }
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn pod_lost_while_another_member_is_replaced_is_recreated() -> Result<()> {
    with_operator("etcd-both", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let (leader, follower) = leader_and_follower(&cluster).await?;
            let lost = before.id_of(&leader).unwrap_or_default();
            cluster.delete_pod_and_pvc(&leader).await?;
            cluster.delete_pods(std::slice::from_ref(&follower)).await?;
            let after = member_replaced(ctx, &cluster, 3, lost).await?;
            ensure!(after.cluster == before.cluster, "the cluster ID has changed");
            ensure!(after.id_of(&follower) == before.id_of(&follower), "{follower} was replaced");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn lost_quorum_is_reported_and_the_remaining_member_is_not_touched() -> Result<()> {
    with_operator("etcd-majority", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        let before = cluster.etcd.member_list().await?;
        let members = quorate_harness::etcd_cluster::member_names(&before);
        let (kept, lost) = members.split_first().context("no member is listed")?;
        let pod = cluster.pod(kept).await?.uid();
        for member in lost {
            cluster.delete_pod_and_pvc(member).await?;
        }
        let (reason, message) =
            cluster.wait_condition(ctx, "QuorumLost", "True", RECOVERY_TIMEOUT).await?;
        println!("{reason}: {message}");
        let started = std::time::Instant::now();
        while started.elapsed() < NO_CHANGE_DELAY {
            let found = cluster.etcd.member_list().await;
            ensure!(found.is_err(), "another cluster was bootstrapped: {found:?}");
        }
        ensure!(cluster.pod(kept).await?.uid() == pod, "the last pod was recreated");
        let left = cluster.pvcs().await?;
        let left = left.iter().find(|pvc| pvc.name_any() == *kept);
        let deleted = left.is_none_or(|pvc| pvc.metadata.deletion_timestamp.is_some());
        ensure!(!deleted, "the last PVC was deleted");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn killed_processes_restart_on_their_volumes() -> Result<()> {
    with_operator("etcd-killed", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            for pod in cluster.pods().await? {
                ctx.kill_pod(&pod)?;
            }
            super::writes_continue(ctx, monitors).await?;
            let after = cluster.wait_healthy(ctx, 3, RECOVERY_TIMEOUT).await?;
            ensure!(super::ids(&after) == super::ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}
