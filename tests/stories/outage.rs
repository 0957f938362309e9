//! What happens while nobody converts, and after: nothing is lost, everything goes on by itself.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use quorate_harness::{Disturbs, Story, audit, tell};
use serde_json::{Value, json};

use super::installed::{ACCOUNT, NAMESPACE, installed, leader, manifest, replicas, rolled_out};
use super::wire::created;

const DEFINITION: &str = "etcdclusters.etcd.appdelivery.cncf.io";
const DRAINS: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn all_replicas_start_at_once_beside_an_object_that_only_they_can_read() -> Result<()> {
    tell("outage", Disturbs::Everything, async |story| {
        installed(story, async || {
            stored_in(story, "v1alpha1").await?;
            let old = json!({
                "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
                "metadata": {"name": "old"}, "spec": {"size": 3, "version": "3.6.16"},
            });
            let made = created(story, &old).await?;
            ensure!(made["spec"]["size"] == 3, "{made}");
            stored_in(story, "v1").await?;
            let mut etcd = story.control_plane().await?;
            let key =
                format!("/registry/etcd.appdelivery.cncf.io/etcdclusters/{}/old", story.namespace);
            let bytes = etcd.get(&key).await?.context("it is not stored")?;
            ensure!(
                String::from_utf8_lossy(&bytes).contains("v1alpha1"),
                "it is not stored as it was"
            );

            scale(story, 0).await?;
            story
                .wait_until("every replica to be gone", DRAINS, async || {
                    let left = replicas(story).await.map_err(|error| format!("{error:#}"))?.len();
                    if left == 0 { Ok(()) } else { Err(format!("{left} are left")) }
                })
                .await?;
            // All start at once, with an object of ours that only they can read.
            scale(story, 2).await?;
            rolled_out(story).await?;
            leader(story).await?;
            let read = story.kubectl(&["get", "etcdclusters", "old", "-o", "json"]).await?;
            let read: Value = serde_json::from_str(&read)?;
            ensure!(read["spec"]["replicas"] == 3, "{read}");
            Ok(())
        })
        .await
    })
    .await
}

async fn scale(story: &Story, replicas: usize) -> Result<()> {
    let replicas = format!("--replicas={replicas}");
    story.admin.run(&["-n", NAMESPACE, "scale", "deployment/quorate", &replicas]).await.map(drop)
}

/// Changes the version that the definition stores.
async fn stored_in(story: &Story, version: &str) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let live = definitions.get(DEFINITION).await?;
    let changes: Vec<Value> = live
        .spec
        .versions
        .iter()
        .enumerate()
        .map(|(index, it)| {
            let path = format!("/spec/versions/{index}/storage");
            json!({"op": "replace", "path": path, "value": it.name == version})
        })
        .collect();
    let patch: json_patch::Patch = serde_json::from_value(json!(changes))?;
    let patch = Patch::<CustomResourceDefinition>::Json(patch);
    definitions.patch(DEFINITION, &PatchParams::default(), &patch).await?;
    // The apiserver takes some moments until it writes so.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_deleted_and_made_anew_is_trusted_again_and_nobody_crashes()
-> Result<()> {
    tell("definition", Disturbs::Everything, async |story| {
        installed(story, async || {
            story.admin.run(&["delete", "crd", DEFINITION]).await?;
            tokio::time::sleep(Duration::from_secs(10)).await;
            story.admin.run(&["apply", "--filename", &manifest()?]).await?;
            let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
            story
                .wait_until("the definition to be trusted again", DRAINS, async || {
                    let live =
                        definitions.get(DEFINITION).await.map_err(|error| error.to_string())?;
                    let webhook = live.spec.conversion.and_then(|it| it.webhook);
                    let bundle =
                        webhook.and_then(|it| it.client_config).and_then(|it| it.ca_bundle);
                    if bundle.is_some() { Ok(()) } else { Err("it has no bundle".to_owned()) }
                })
                .await?;
            let old = json!({
                "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
                "metadata": {"name": "new"}, "spec": {"size": 3, "version": "3.6.16"},
            });
            story
                .wait_until("objects to be taken again", DRAINS, async || {
                    let made = created(story, &old).await;
                    made.map_err(|error| format!("{error:#}"))
                })
                .await?;
            unbroken(story).await
        })
        .await
    })
    .await
}

/// No container of the operator was ever started twice.
async fn unbroken(story: &Story) -> Result<()> {
    for pod in replicas(story).await? {
        let name = pod.name_any();
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        for container in statuses {
            ensure!(container.restart_count == 0, "{name} was started again");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; make stories-long tells it"]
async fn at_rest_the_operator_writes_nothing_but_its_lease() -> Result<()> {
    tell("rest", Disturbs::Everything, async |story| {
        installed(story, async || rests(story).await).await
    })
    .await
}

async fn rests(story: &Story) -> Result<()> {
    leader(story).await?;
    let object = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1beta1", "kind": "EtcdCluster",
        "metadata": {"name": "still"}, "spec": {"size": 3, "version": "3.6.16"},
    });
    created(story, &object).await?;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mark = audit::mark(&story.places)?;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut writes = audit::since(&story.places, mark)?;
    writes.retain(|it| it.user.username == ACCOUNT && it.object_ref.resource != "leases");
    ensure!(writes.is_empty(), "at rest it wrote {writes:?}");
    Ok(())
}
