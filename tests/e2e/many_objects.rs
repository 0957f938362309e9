//! The cost of listing many objects in another version than the storage version, right after a
//! change of the CRD. Takes minutes, so `make e2e-long` runs it.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use quorate_harness::{Isolation, TestContext, run};
use serde_json::{Value, json};

use super::installation::{leader, sum_metric, with_installation};
use super::raw_api::{self, call};

const API: &str = "/apis/etcd.appdelivery.cncf.io";
const CRD: &str = "etcdclusters.etcd.appdelivery.cncf.io";
const OBJECTS: u32 = 5_000;
const CONCURRENCY: usize = 8;
const LIST_TIMEOUT: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn five_thousand_objects_are_listed_in_an_old_version_after_a_crd_change() -> Result<()> {
    run("many", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            leader(ctx).await?;
            let started = Instant::now();
            let calls = stream::iter(0..OBJECTS).map(|number| create(ctx, number));
            calls.buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
            println!("{OBJECTS} objects created in {:.1?}", started.elapsed());
            // Now every version has the objects in its watch cache.
            list(ctx).await?;

            let counts = async || {
                let reviews = sum_metric(ctx, "quorate_webhook_requests_total", "convert").await?;
                let seconds = sum_metric(ctx, "quorate_webhook_request_duration_seconds_sum", "convert").await?;
                anyhow::Ok((reviews, seconds))
            };
            let before = counts().await?;
            set_short_names(ctx, &["etcd", "etcdclus", "etcdmany"]).await?;
            let started = Instant::now();
            // Until the API server serves the changed CRD, a list is served from the old cache.
            let (objects, reviews, seconds) = loop {
                let objects = list(ctx).await?;
                let after = counts().await?;
                let (reviews, seconds) = (after.0 - before.0, after.1 - before.1);
                if reviews >= f64::from(OBJECTS) {
                    break (objects, reviews, seconds);
                }
                let waited = started.elapsed();
                ensure!(waited < LIST_TIMEOUT, "{reviews} reviews in {waited:?}: the lists caused no conversions");
            };
            let took = started.elapsed();
            println!(
                "{objects} objects listed in v1beta1 in {took:.1?}, {reviews} reviews in {seconds:.1} s"
            );
            set_short_names(ctx, &["etcd", "etcdclus"]).await?;
            delete_all(ctx).await?;
            ensure!(objects == OBJECTS, "{objects} of {OBJECTS}");
            Ok(())
        })
        .await
    })
    .await
}

async fn create(ctx: &TestContext, number: u32) -> Result<()> {
    let object = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {"name": format!("one-of-{number}")},
        // Paused: the machine cannot run fifteen thousand pods.
        "spec": {
            "replicas": 3, "version": "3.6.16", "paused": true,
            "options": {"snapshotCount": 20000},
        },
    });
    raw_api::create_etcd_cluster(ctx, &object).await.map(drop)
}

async fn list(ctx: &TestContext) -> Result<u32> {
    let path = format!("{API}/v1beta1/namespaces/{}/etcdclusters", ctx.namespace);
    let response = call(&ctx.client, "GET", &path, "application/json", &Value::Null).await?;
    ensure!(response.code == 200, "{} {}", response.code, response.body);
    let items = response.body["items"].as_array().map_or(0, Vec::len);
    Ok(u32::try_from(items)?)
}

/// Deletes the objects one by one: a single call for all would time out.
async fn delete_all(ctx: &TestContext) -> Result<()> {
    let delete = async |number: u32| {
        let path = format!("{API}/v1/namespaces/{}/etcdclusters/one-of-{number}", ctx.namespace);
        let response = call(&ctx.client, "DELETE", &path, "application/json", &json!({})).await?;
        ensure!(response.code == 200, "{} {}", response.code, response.body);
        Ok(())
    };
    stream::iter(0..OBJECTS).map(delete).buffer_unordered(CONCURRENCY).try_collect::<()>().await
}

/// A change of the CRD that does not affect the objects.
async fn set_short_names(ctx: &TestContext, names: &[&str]) -> Result<()> {
    let crds = Api::<CustomResourceDefinition>::all(ctx.client.clone());
    let patch = Patch::Merge(json!({"spec": {"names": {"shortNames": names}}}));
    crds.patch(CRD, &PatchParams::default(), &patch).await?;
    Ok(())
}
