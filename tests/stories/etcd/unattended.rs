//! Nobody attends to a cluster: the operator is away, its definition or its namespace is deleted.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use quorate_harness::etcd_cluster::{Cluster, small, uids};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::ending::says_volumes_are_there;
use super::{
    COMES, NEVER, RETURNS, healthy, ids, leader_and_follower, watched, with_operator, writes_go_on,
};
use crate::installed::{begun, ended};

const DEFINITION: &str = "etcdclusters.etcd.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn without_an_operator_a_cluster_serves_and_its_members_restart_by_themselves() -> Result<()>
{
    with_operator("etcd-no-operator", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            witnesses.watchman.be_lenient(true);
            ended(story).await?;
            let away = alone(story, &cluster, witnesses).await;
            // In either case, so that the next story has an operator.
            begun(story).await?;
            away?;
            let after = cluster.comes(story, 3, COMES).await?;
            witnesses.watchman.be_lenient(false);
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

async fn alone(story: &Story, cluster: &Cluster, witnesses: &super::Witnesses) -> Result<()> {
    writes_go_on(story, witnesses).await?;
    // A process that dies comes back without anybody's help.
    for pod in cluster.pods().await? {
        story.kill_pod(&pod)?;
        let back = async || cluster.user.well(3).await.map_err(|error| format!("{error:#}"));
        tokio::time::sleep(Duration::from_secs(3)).await;
        story.wait_until("the killed member to return", RETURNS, back).await?;
    }
    // A pod that is deleted does not, and the others do without it.
    let (_, follower) = leader_and_follower(cluster).await?;
    cluster.lose_pods(&[follower]).await?;
    tokio::time::sleep(NEVER).await;
    writes_go_on(story, witnesses).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn when_the_definition_is_deleted_the_volumes_stay() -> Result<()> {
    with_operator("etcd-definition", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| writes_go_on(story, witnesses).await).await?;
        let volumes = uids(&cluster.claims().await?);
        story.admin.run(&["delete", "crd", DEFINITION, "--timeout=90s"]).await?;
        tokio::time::sleep(NEVER).await;
        ensure!(uids(&cluster.claims().await?) == volumes, "the volumes did not stay");
        // Everything is put back, and what was there before is found.
        story.operator().await?;
        let again = story.cluster("main");
        story
            .wait_until("clusters to be taken again", RETURNS, async || {
                let made = again.make(&small(3, &json!({}))).await;
                made.map_err(|error| format!("{error:#}"))
            })
            .await?;
        says_volumes_are_there(story, &again, &volumes).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_namespace_that_is_deleted_midway_goes_and_others_are_not_held_up() -> Result<()> {
    with_operator("etcd-namespace", Disturbs::Nothing, async |story| {
        let namespaces = Api::<Namespace>::all(story.client.clone());
        for (number, pause) in [0_u64, 4, 12].into_iter().enumerate() {
            let name = format!("{}-{number}", story.namespace);
            let wanted: Namespace = serde_json::from_value(json!({"metadata": {
                "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            }}))?;
            namespaces.create(&PostParams::default(), &wanted).await?;
            Cluster::at(&story.client, &name, "main").make(&small(3, &json!({}))).await?;
            tokio::time::sleep(Duration::from_secs(pause)).await;
            namespaces.delete(&name, &DeleteParams::default()).await?;
            is_gone(story, &namespaces, &name).await?;
        }
        let cluster = healthy(story, 1, &json!({})).await?;
        watched(&cluster, async |witnesses| writes_go_on(story, witnesses).await).await?;
        Ok(())
    })
    .await
}

async fn is_gone(story: &Story, namespaces: &Api<Namespace>, name: &str) -> Result<()> {
    story
        .wait_until(&format!("namespace {name} to be gone"), RETURNS, async || {
            match namespaces.get_opt(name).await.map_err(|error| error.to_string())? {
                None => Ok(()),
                Some(left) => Err(format!("{:?}", left.status)),
            }
        })
        .await
}
