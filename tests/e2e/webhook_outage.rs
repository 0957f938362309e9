//! An outage of the conversion webhook: no object is lost, and everything recovers automatically.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_harness::{Isolation, TestContext, audit, run};
use serde_json::{Value, json};

use super::installation::{
    SERVICE_ACCOUNT, leader, manifest, replicas, start_operator, stop_operator, with_installation,
};
use super::raw_api::create_etcd_cluster;

const CLUSTERS_CRD: &str = "etcdclusters.etcd.appdelivery.cncf.io";
/// No controller writes objects of this kind, which would rewrite them in the store.
const APPS_CRD: &str = "exampleapps.example-app.appdelivery.cncf.io";
const SAMPLE: &str = "deploy/samples/not-yet/exampleapp-v1alpha1.yaml";
const NAME: &str = "appdelivery-example-app";
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(2);
/// The namespace controller retries several times within these.
const HELD_UP_SECONDS: usize = 15;

#[tokio::test(flavor = "multi_thread")]
async fn namespace_with_unconvertible_objects_terminates_once_the_webhook_is_back() -> Result<()> {
    run("webhook-outage", Isolation::Serial, async |ctx| {
        let (newer, older) =
            (TestNamespace::named(ctx, "newer"), TestNamespace::named(ctx, "older"));
        let result = with_installation(ctx, async || outage(ctx, &newer, &older).await).await;
        let deleted = newer.cleanup(ctx).await.and(older.cleanup(ctx).await);
        result.and(deleted)
    })
    .await
}

async fn outage(ctx: &TestContext, newer: &TestNamespace, older: &TestNamespace) -> Result<()> {
    // Without a storage migration the objects stay as they are stored.
    let paused = format!("{}={}", names::MIGRATION_ANNOTATION, names::MIGRATION_PAUSED);
    ctx.admin.run(&["annotate", "crd", APPS_CRD, &paused]).await?;
    newer.create(ctx).await?;
    set_storage_version(ctx, "v1alpha1").await?;
    older.create(ctx).await?;
    let sample = format!("{}/{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
    ctx.kubectl(&["apply", "--filename", &sample]).await?;
    set_storage_version(ctx, "v1").await?;
    for (namespace, version) in
        [(&newer.0, "v1"), (&older.0, "v1alpha1"), (&ctx.namespace, "v1alpha1")]
    {
        let api_version = stored_version(ctx, namespace).await?.context("not stored")?;
        ensure!(api_version.ends_with(&format!("/{version}")), "stored as {api_version}");
    }

    stop_operator(ctx).await?;
    // An object stored as v1 is deleted without a conversion.
    newer.delete(ctx).await?;
    newer.wait_deleted(ctx).await?;
    older.deletion_is_blocked(ctx).await?;
    // All replicas start at once, while an object exists that only they can convert.
    start_operator(ctx).await?;
    let back = Instant::now();
    leader(ctx).await?;
    let read = ctx.kubectl(&["get", "exampleapps", NAME, "-o", "json"]).await?;
    let read: Value = serde_json::from_str(&read)?;
    ensure!(read.pointer("/spec/version") == Some(&json!("0.0.1")), "{read}");
    // The namespace terminates without further action.
    older.wait_deleted(ctx).await?;
    println!("the namespace was deleted {:.1?} after the webhook was back", back.elapsed());
    Ok(())
}

/// The version in which the object is stored, if it exists.
async fn stored_version(ctx: &TestContext, namespace: &str) -> Result<Option<String>> {
    let key = format!("/registry/example-app.appdelivery.cncf.io/exampleapps/{namespace}/{NAME}");
    let Some(bytes) = ctx.control_plane().await?.get(&key).await? else {
        return Ok(None);
    };
    let stored: Value = serde_json::from_slice(&bytes)?;
    let api_version = stored.pointer("/apiVersion").and_then(Value::as_str);
    Ok(Some(api_version.unwrap_or_default().to_owned()))
}

/// A namespace that is deleted during the outage.
struct TestNamespace(String);

impl TestNamespace {
    fn named(ctx: &TestContext, suffix: &str) -> Self {
        Self(format!("{}-{suffix}", ctx.namespace))
    }

    /// Creates it, with an object in it.
    async fn create(&self, ctx: &TestContext) -> Result<()> {
        ctx.admin.run(&["create", "namespace", &self.0]).await?;
        let sample = format!("{}/{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
        ctx.admin.run(&["-n", &self.0, "apply", "--filename", &sample]).await.map(drop)
    }

    async fn delete(&self, ctx: &TestContext) -> Result<()> {
        ctx.admin.run(&["delete", "namespace", &self.0, "--wait=false"]).await.map(drop)
    }

    async fn wait_deleted(&self, ctx: &TestContext) -> Result<()> {
        let namespace = format!("namespace/{}", self.0);
        ctx.admin.run(&["wait", "--for=delete", &namespace, "--timeout=120s"]).await.map(drop)
    }

    /// Deletes it, and checks that the deletion is blocked and reports why: the API server converts
    /// an object before it deletes it.
    async fn deletion_is_blocked(&self, ctx: &TestContext) -> Result<()> {
        self.delete(ctx).await?;
        let message = ctx
            .wait_until(
                "the namespace to report why it is not deleted",
                RECOVERY_TIMEOUT,
                async || self.failure(ctx).await.map_err(|error| format!("{error:#}")),
            )
            .await?;
        ensure!(message.contains("conversion webhook"), "{message}");
        for _ in 0..HELD_UP_SECONDS {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let message = self.failure(ctx).await?;
            ensure!(message.contains("conversion webhook"), "{message}");
            let version =
                stored_version(ctx, &self.0).await?.context("deleted without a conversion")?;
            ensure!(version.ends_with("/v1alpha1"), "stored as {version} without a conversion");
        }
        Ok(())
    }

    /// Why its content cannot be deleted.
    async fn failure(&self, ctx: &TestContext) -> Result<String> {
        let found = Api::<Namespace>::all(ctx.client.clone()).get(&self.0).await?;
        let status = found.status.unwrap_or_default();
        ensure!(status.phase.as_deref() == Some("Terminating"), "the phase is {:?}", status.phase);
        let failure = status.conditions.into_iter().flatten().find(|condition| {
            condition.type_ == "NamespaceDeletionContentFailure" && condition.status == "True"
        });
        Ok(failure.context("no deletion failure is reported")?.message.unwrap_or_default())
    }

    /// Deletes it, if it exists.
    async fn cleanup(&self, ctx: &TestContext) -> Result<()> {
        let line = ["delete", "namespace", &self.0, "--ignore-not-found", "--timeout=120s"];
        ctx.admin.run(&line).await.map(drop)
    }
}

/// Changes the storage version of the CRD.
async fn set_storage_version(ctx: &TestContext, version: &str) -> Result<()> {
    let crds = Api::<CustomResourceDefinition>::all(ctx.client.clone());
    let crd = crds.get(APPS_CRD).await?;
    let changes: Vec<Value> = crd
        .spec
        .versions
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let path = format!("/spec/versions/{index}/storage");
            json!({"op": "replace", "path": path, "value": entry.name == version})
        })
        .collect();
    let patch: json_patch::Patch = serde_json::from_value(json!(changes))?;
    let patch = Patch::<CustomResourceDefinition>::Json(patch);
    crds.patch(APPS_CRD, &PatchParams::default(), &patch).await?;
    // The API server takes some seconds to write in the new storage version.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn recreated_crd_gets_its_ca_bundle_again_and_no_replica_restarts() -> Result<()> {
    run("crd", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            ctx.admin.run(&["delete", "crd", CLUSTERS_CRD]).await?;
            tokio::time::sleep(Duration::from_secs(10)).await;
            ctx.admin.run(&["apply", "--filename", &manifest()?]).await?;
            let crds = Api::<CustomResourceDefinition>::all(ctx.client.clone());
            ctx.wait_until("the CRD to have a CA bundle again", RECOVERY_TIMEOUT, async || {
                let crd = crds.get(CLUSTERS_CRD).await.map_err(|error| error.to_string())?;
                let webhook = crd.spec.conversion.and_then(|conversion| conversion.webhook);
                let bundle = webhook
                    .and_then(|webhook| webhook.client_config)
                    .and_then(|config| config.ca_bundle);
                if bundle.is_some() { Ok(()) } else { Err("no CA bundle".to_owned()) }
            })
            .await?;
            let old = json!({
                "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
                "metadata": {"name": "new"}, "spec": {"size": 3, "version": "3.6.16"},
            });
            ctx.wait_until("objects to be accepted again", RECOVERY_TIMEOUT, async || {
                let created = create_etcd_cluster(ctx, &old).await;
                created.map_err(|error| format!("{error:#}"))
            })
            .await?;
            no_restarts(ctx).await
        })
        .await
    })
    .await
}

/// Fails if a container of the operator was restarted.
async fn no_restarts(ctx: &TestContext) -> Result<()> {
    for pod in replicas(ctx).await? {
        let name = pod.name_any();
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        for container in statuses {
            ensure!(container.restart_count == 0, "{name} was restarted");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn steady_state_causes_no_writes_but_lease_renewals() -> Result<()> {
    run("steady", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || no_writes(ctx).await).await
    })
    .await
}

async fn no_writes(ctx: &TestContext) -> Result<()> {
    leader(ctx).await?;
    let object = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1beta1", "kind": "EtcdCluster",
        // A running cluster has a test of its own.
        "metadata": {"name": "paused"}, "spec": {"size": 3, "version": "3.6.16", "paused": true},
    });
    create_etcd_cluster(ctx, &object).await?;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mark = audit::mark(&ctx.paths)?;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut writes = audit::writes_since(&ctx.paths, mark)?;
    writes.retain(|call| {
        call.user.username == SERVICE_ACCOUNT && call.object_ref.resource != "leases"
    });
    ensure!(writes.is_empty(), "writes in steady state: {writes:?}");
    Ok(())
}
