//! Controllers do not run while a CRD lists a stored version that this release does not know; the
//! webhooks do.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use quorate_harness::{Isolation, TestContext, run};
use serde_json::json;

use super::{STEP_TIMEOUT, api};
use crate::installation::{leader, metric, with_installation};

/// A CRD without a conversion webhook, so that nothing else depends on it.
const MEMBERS_CRD: &str = "etcdmembers.etcd.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
async fn unknown_stored_version_blocks_controllers_and_not_webhooks() -> Result<()> {
    run("unknown-version", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            set_stored_versions(ctx, &["v2", "v1"]).await?;
            wait_blocked(ctx, "1").await?;
            // A new object is not reconciled, and is converted nevertheless.
            let object = serde_json::from_value(json!({
                "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
                "metadata": {"name": "unreconciled"}, "spec": {"size": 1, "version": "3.6.16"},
            }))?;
            let older = api(ctx, "etcd.appdelivery.cncf.io", "v1alpha1", "EtcdCluster");
            older.create(&kube::api::PostParams::default(), &object).await?;
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let beta = api(ctx, "etcd.appdelivery.cncf.io", "v1beta1", "EtcdCluster");
            let object = beta.get("unreconciled").await?;
            ensure!(object.data["status"].is_null(), "the object is reconciled: {}", object.data);
            let events = ctx.admin.run(&["get", "events", "-n", "default", "-o", "json"]).await?;
            ensure!(events.contains("UnknownStoredVersion"), "{events}");
            set_stored_versions(ctx, &["v1"]).await?;
            wait_blocked(ctx, "0").await?;
            ctx.wait_until("the object to be reconciled", STEP_TIMEOUT, async || {
                let object = beta.get("unreconciled").await.map_err(|error| error.to_string())?;
                if object.data["status"].is_null() { Err("no status".to_owned()) } else { Ok(()) }
            })
            .await
        })
        .await
    })
    .await
}

async fn set_stored_versions(ctx: &TestContext, versions: &[&str]) -> Result<()> {
    let patch = json!({"status": {"storedVersions": versions}}).to_string();
    let args =
        ["patch", "crd", MEMBERS_CRD, "--subresource=status", "--type=merge", "--patch", &patch];
    ctx.admin.run(&args).await.map(drop)
}

async fn wait_blocked(ctx: &TestContext, value: &str) -> Result<()> {
    let leader = leader(ctx).await?.name_any();
    ctx.wait_until(
        &format!("quorate_controllers_blocked to be {value}"),
        STEP_TIMEOUT,
        async || match metric(ctx, &leader, "quorate_controllers_blocked").await {
            Ok(found) if found == value => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await
}
