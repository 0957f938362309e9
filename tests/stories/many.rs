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
const MANY: u32 = 5_000;
const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_mins(2);

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

            let counts = async || {
                let reviews = counted(story, "quorate_webhook_requests_total", "convert").await?;
                let seconds = counted(story, "quorate_webhook_request_duration_seconds_sum", "convert").await?;
                anyhow::Ok((reviews, seconds))
            };
            let before = counts().await?;
            rename(story, &["etcd", "etcdclus", "etcdmany"]).await?;
            let begun = Instant::now();
            // The apiserver takes a moment until it serves the changed definition; until then a list is an old copy.
            let (objects, reviews, seconds) = loop {
                let objects = listed(story).await?;
                let after = counts().await?;
                let (reviews, seconds) = (after.0 - before.0, after.1 - before.1);
                if reviews >= f64::from(MANY) {
                    break (objects, reviews, seconds);
                }
                let waited = begun.elapsed();
                ensure!(waited < PATIENCE, "{reviews} reviews in {waited:?}: the lists prove nothing");
            };
            let took = begun.elapsed();
            println!(
                "{objects} objects listed in v1beta1 in {took:.1?}, {reviews} reviews in {seconds:.1} s"
            );
            rename(story, &["etcd", "etcdclus"]).await?;
            all_deleted(story).await?;
            ensure!(objects == MANY, "{objects} of {MANY}");
            Ok(())
        })
        .await
    })
    .await
}

async fn created(story: &Story, number: u32) -> Result<()> {
    let object = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {"name": format!("one-of-{number}")},
        // Nobody shall run fifteen thousand pods.
        "spec": {
            "replicas": 3, "version": "3.6.16", "paused": true,
            "options": {"snapshotCount": 20000},
        },
    });
    wire::created(story, &object).await.map(drop)
}

async fn listed(story: &Story) -> Result<u32> {
    let path = format!("{API}/v1beta1/namespaces/{}/etcdclusters", story.namespace);
    let answer = call(&story.client, "GET", &path, "application/json", &Value::Null).await?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    let items = answer.body["items"].as_array().map_or(0, Vec::len);
    Ok(u32::try_from(items)?)
}

/// Deletes them some at once: one call for all takes longer than a call may.
async fn all_deleted(story: &Story) -> Result<()> {
    let one = async |number: u32| {
        let path = format!("{API}/v1/namespaces/{}/etcdclusters/one-of-{number}", story.namespace);
        let answer = call(&story.client, "DELETE", &path, "application/json", &json!({})).await?;
        ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
        Ok(())
    };
    stream::iter(0..MANY).map(one).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

/// A change of the definition that changes nothing for the objects.
async fn rename(story: &Story, short: &[&str]) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let patch = Patch::Merge(json!({"spec": {"names": {"shortNames": short}}}));
    definitions.patch(DEFINITION, &PatchParams::default(), &patch).await?;
    Ok(())
}
