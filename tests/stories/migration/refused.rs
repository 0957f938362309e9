//! Controllers do not run while objects are stored in a version that this release does not know; conversion goes on.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use quorate_harness::{Disturbs, Story, tell};
use serde_json::json;

use super::{SOON, api};
use crate::installed::{installed, leader, metric};

/// A definition that nobody converts, so that nothing else depends on it.
const MEMBERS: &str = "etcdmembers.etcd.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_in_an_unknown_version_keeps_the_controllers_out_and_not_the_webhooks()
-> Result<()> {
    tell("stranded", Disturbs::Everything, async |story| {
        installed(story, async || {
            stored(story, &["v2", "v1"]).await?;
            says(story, "1").await?;
            // Nobody acts on a new object, and it is converted all the same.
            let object = serde_json::from_value(json!({
                "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
                "metadata": {"name": "waits"}, "spec": {"size": 1, "version": "3.6.16"},
            }))?;
            let older = api(story, "etcd.appdelivery.cncf.io", "v1alpha1", "EtcdCluster");
            older.create(&kube::api::PostParams::default(), &object).await?;
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let beta = api(story, "etcd.appdelivery.cncf.io", "v1beta1", "EtcdCluster");
            let object = beta.get("waits").await?;
            ensure!(object.data["status"].is_null(), "somebody acts: {}", object.data);
            let events = story.admin.run(&["get", "events", "-n", "default", "-o", "json"]).await?;
            ensure!(events.contains("UnknownStoredVersion"), "{events}");
            stored(story, &["v1"]).await?;
            says(story, "0").await?;
            story
                .wait_until("somebody to act", SOON, async || {
                    let object = beta.get("waits").await.map_err(|error| error.to_string())?;
                    if object.data["status"].is_null() { Err("nobody".to_owned()) } else { Ok(()) }
                })
                .await
        })
        .await
    })
    .await
}

async fn stored(story: &Story, versions: &[&str]) -> Result<()> {
    let patch = json!({"status": {"storedVersions": versions}}).to_string();
    let of = ["patch", "crd", MEMBERS, "--subresource=status", "--type=merge", "--patch", &patch];
    story.admin.run(&of).await.map(drop)
}

async fn says(story: &Story, value: &str) -> Result<()> {
    let leader = leader(story).await?.name_any();
    story
        .wait_until(&format!("the leader to say {value}"), SOON, async || {
            match metric(story, &leader, "quorate_controllers_blocked").await {
                Ok(found) if found == value => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
}
