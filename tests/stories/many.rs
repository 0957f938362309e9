//! Many objects, read in a version that is not stored right after the definition changed: what that costs.
//! Long, so `make stories-long` tells it.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use quorate_harness::{Disturbs, Story, tell};
use serde_json::{Value, json};

use super::installed::{counted, installed, leader};
use super::wire::{self, call};

const API: &str = "/apis/etcd.appdelivery.cncf.io";
const DEFINITION: &str = "etcdclusters.etcd.appdelivery.cncf.io";
const MANY: usize = 5_000;
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; make stories-long tells it"]
async fn five_thousand_objects_are_listed_in_an_old_version_after_the_definition_changed()
-> Result<()> {
    tell("many", Disturbs::Everything, async |story| {
        installed(story, async || {
            leader(story).await?;
            let begun = Instant::now();
            let calls = stream::iter(0..MANY).map(|number| created(story, number));
            calls.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
            println!("{MANY} objects created in {:.1?}", begun.elapsed());
            // The objects are old news by now: every version has them in its cache.
            listed(story).await?;

            let before = counted(story, "quorate_webhook_reviews_total", "convert").await?;
            rename(story, &["etcd", "etcdclus", "etcdmany"]).await?;
            let begun = Instant::now();
            let objects = listed(story).await?;
            let took = begun.elapsed();
            tokio::time::sleep(Duration::from_secs(5)).await;
            let reviews = counted(story, "quorate_webhook_reviews_total", "convert").await?;
            let reviews = reviews.saturating_sub(before);
            println!("{objects} objects listed in v1beta1 in {took:.1?}, {reviews} reviews");
            rename(story, &["etcd", "etcdclus"]).await?;
            ensure!(objects == MANY, "{objects} of {MANY}");
            ensure!(
                reviews >= u64::try_from(MANY)?,
                "only {reviews} reviews: the list proves nothing"
            );
            Ok(())
        })
        .await
    })
    .await
}

async fn created(story: &Story, number: usize) -> Result<()> {
    let object = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {"name": format!("one-of-{number}")},
        "spec": {"replicas": 3, "version": "3.6.16", "options": {"snapshotCount": 20000}},
    });
    wire::created(story, &object).await.map(drop)
}

async fn listed(story: &Story) -> Result<usize> {
    let path = format!("{API}/v1beta1/namespaces/{}/etcdclusters", story.namespace);
    let answer = call(&story.client, "GET", &path, "application/json", &Value::Null).await?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    Ok(answer.body["items"].as_array().map_or(0, Vec::len))
}

/// A change of the definition that changes nothing for the objects.
async fn rename(story: &Story, short: &[&str]) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let patch = Patch::Merge(json!({"spec": {"names": {"shortNames": short}}}));
    definitions.patch(DEFINITION, &PatchParams::default(), &patch).await?;
    Ok(())
}
