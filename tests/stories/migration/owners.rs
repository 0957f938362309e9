//! Whoever applied with a version that is no longer served goes on with v1, and owns what they owned.

use anyhow::{Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use quorate_harness::{Disturbs, Story, tell};
use serde_json::{Value, json};

use super::{CLUSTERS, SOON, api, record};
use crate::installed::installed;

const GROUP: &str = "etcd.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
async fn whoever_applied_in_a_version_that_goes_keeps_what_is_theirs_and_can_give_it_up()
-> Result<()> {
    tell("owners", Disturbs::Everything, async |story| {
        installed(story, async || {
            let older = json!({
                "size": 3, "version": "3.6.16", "paused": true,
                "pod": {"nodeSelector": {"disk": "fast"}, "labels": {"team": "blue"}},
            });
            apply(story, "v1alpha1", &older).await?;
            served(story, "v1alpha1", false).await?;
            rewritten(story).await?;

            // The same words in v1, without the labels of the pods.
            let newer = json!({
                "replicas": 3, "version": "3.6.16", "paused": true,
                "placement": {"nodeSelector": {"disk": "fast"}},
            });
            apply(story, "v1", &newer).await?;
            let object = api(story, GROUP, "v1", "EtcdCluster").get("owned").await?;
            let spec = &object.data["spec"];
            ensure!(spec["placement"]["nodeSelector"] == json!({"disk": "fast"}), "{spec}");
            ensure!(
                spec["podMetadata"]["labels"].is_null(),
                "what was given up is still there: {spec}"
            );
            ensure!(spec["replicas"] == 3, "{spec}");
            served(story, "v1alpha1", true).await
        })
        .await
    })
    .await
}

async fn apply(story: &Story, version: &str, spec: &Value) -> Result<()> {
    let object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "EtcdCluster",
        "metadata": {"name": "owned"}, "spec": spec,
    });
    let params = PatchParams::apply("team");
    api(story, GROUP, version, "EtcdCluster")
        .patch("owned", &params, &Patch::Apply(&object))
        .await?;
    Ok(())
}

async fn served(story: &Story, version: &str, served: bool) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let mut definition = definitions.get(CLUSTERS).await?;
    for it in &mut definition.spec.versions {
        if it.name == version {
            it.served = served;
        }
    }
    let patch = Patch::Merge(json!({"spec": {"versions": definition.spec.versions}}));
    definitions.patch(CLUSTERS, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until nobody speaks v1alpha1.
async fn rewritten(story: &Story) -> Result<()> {
    story
        .wait_until("the owners to speak v1", SOON, async || {
            let words = |error: anyhow::Error| format!("{error:#}");
            let record = record(story).await.map_err(words)?;
            let speak = &record[CLUSTERS]["servedByManagers"];
            if *speak != json!(["v1", "v1beta1"]) {
                return Err(format!("{record}"));
            }
            let object = api(story, GROUP, "v1", "EtcdCluster").get("owned").await;
            let object = object.map_err(|error| error.to_string())?;
            let owners = serde_json::to_string(&object.metadata.managed_fields).unwrap_or_default();
            if owners.contains("v1alpha1") { Err(owners) } else { Ok(()) }
        })
        .await
}
