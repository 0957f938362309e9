//! A field manager that applied in a version that is no longer served continues with v1, and owns
//! the same fields.

use anyhow::{Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use quorate_harness::{Isolation, TestContext, run};
use serde_json::{Value, json};

use super::{CLUSTERS_CRD, STEP_TIMEOUT, api, record};
use crate::installation::with_installation;

const GROUP: &str = "etcd.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
async fn field_manager_of_an_unserved_version_keeps_and_can_release_its_fields() -> Result<()> {
    run("managed-fields", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            let older = json!({
                "size": 3, "version": "3.6.16", "paused": true,
                "pod": {"nodeSelector": {"disk": "fast"}, "labels": {"team": "blue"}},
            });
            apply(ctx, "v1alpha1", &older).await?;
            set_served(ctx, "v1alpha1", false).await?;
            wait_managed_fields_migrated(ctx).await?;

            // The same fields in v1, without the labels of the pods.
            let newer = json!({
                "replicas": 3, "version": "3.6.16", "paused": true,
                "placement": {"nodeSelector": {"disk": "fast"}},
            });
            apply(ctx, "v1", &newer).await?;
            let object = api(ctx, GROUP, "v1", "EtcdCluster").get("owned").await?;
            let spec = &object.data["spec"];
            ensure!(spec["placement"]["nodeSelector"] == json!({"disk": "fast"}), "{spec}");
            ensure!(
                spec["podMetadata"]["labels"].is_null(),
                "the released field still exists: {spec}"
            );
            ensure!(spec["replicas"] == 3, "{spec}");
            set_served(ctx, "v1alpha1", true).await
        })
        .await
    })
    .await
}

async fn apply(ctx: &TestContext, version: &str, spec: &Value) -> Result<()> {
    let object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "EtcdCluster",
        "metadata": {"name": "owned"}, "spec": spec,
    });
    let params = PatchParams::apply("team");
    api(ctx, GROUP, version, "EtcdCluster").patch("owned", &params, &Patch::Apply(&object)).await?;
    Ok(())
}

async fn set_served(ctx: &TestContext, version: &str, served: bool) -> Result<()> {
    let crds = Api::<CustomResourceDefinition>::all(ctx.client.clone());
    let mut crd = crds.get(CLUSTERS_CRD).await?;
    for entry in &mut crd.spec.versions {
        if entry.name == version {
            entry.served = served;
        }
    }
    let patch = Patch::Merge(json!({"spec": {"versions": crd.spec.versions}}));
    crds.patch(CLUSTERS_CRD, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until no managed fields entry uses v1alpha1.
async fn wait_managed_fields_migrated(ctx: &TestContext) -> Result<()> {
    ctx.wait_until("the managed fields to use v1", STEP_TIMEOUT, async || {
        let chain = |error: anyhow::Error| format!("{error:#}");
        let record = record(ctx).await.map_err(chain)?;
        let served = &record[CLUSTERS_CRD]["servedByManagers"];
        if *served != json!(["v1", "v1beta1"]) {
            return Err(format!("{record}"));
        }
        let object = api(ctx, GROUP, "v1", "EtcdCluster").get("owned").await;
        let object = object.map_err(|error| error.to_string())?;
        let entries = serde_json::to_string(&object.metadata.managed_fields).unwrap_or_default();
        if entries.contains("v1alpha1") { Err(entries) } else { Ok(()) }
    })
    .await
}
