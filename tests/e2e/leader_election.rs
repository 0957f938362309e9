//! At most one replica writes, whatever happens to the Lease, to the leader, or to the API server.
//! The leader always has something to write: a CA bundle that the test keeps removing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use quorate::api::names;
use quorate_cluster::components::apiserver;
use quorate_harness::{Isolation, TestContext, audit, run};
use serde_json::json;
use tokio::task::JoinHandle;

use super::installation::{
    NAMESPACE, SERVICE_ACCOUNT, leader, replicas, wait_other_leader, with_installation,
};
use super::webhook_tls::verify_handshake;

const REPAIR_TIMEOUT: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn at_most_one_replica_writes_whatever_happens() -> Result<()> {
    run("single-writer", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            leader_paused_past_its_lease_writes_nothing_when_resumed(ctx)
                .await
                .context("leader paused past its lease writes nothing when resumed")?;
            deleted_or_replaced_lease_never_causes_two_writers(ctx)
                .await
                .context("deleted or replaced lease never causes two writers")?;
            replicas_survive_a_minute_without_the_api_server(ctx)
                .await
                .context("replicas survive a minute without the API server")?;
            Ok(())
        })
        .await
    })
    .await
}

async fn leader_paused_past_its_lease_writes_nothing_when_resumed(ctx: &TestContext) -> Result<()> {
    let mark = audit::mark(&ctx.paths)?;
    let first = leader(ctx).await?;
    let remover = BundleRemover::start(ctx.client.clone());
    repaired_by(ctx, mark, &first.name_any()).await?;
    let paused = ctx.pause_pod(&first)?;
    let second = wait_other_leader(ctx, &first).await?;
    repaired_by(ctx, mark, &second.name_any()).await?;
    drop(paused);
    tokio::time::sleep(Duration::from_secs(20)).await;
    remover.stop().await?;
    wrote_in_order(ctx, mark, &[&first.name_any(), &second.name_any()])
}

async fn deleted_or_replaced_lease_never_causes_two_writers(ctx: &TestContext) -> Result<()> {
    let mark = audit::mark(&ctx.paths)?;
    let first = leader(ctx).await?;
    let remover = BundleRemover::start(ctx.client.clone());
    repaired_by(ctx, mark, &first.name_any()).await?;
    let leases = Api::<Lease>::namespaced(ctx.client.clone(), NAMESPACE);
    leases.delete(names::LEASE, &DeleteParams::default()).await?;
    let second = leader(ctx).await?;
    repaired_by(ctx, mark, &second.name_any()).await?;

    // A Lease of another holder: no replica writes until it has expired.
    leases.delete(names::LEASE, &DeleteParams::default()).await?;
    let now = jiff::Timestamp::now().to_string();
    let foreign: Lease = serde_json::from_value(json!({
        "metadata": {"name": names::LEASE},
        "spec": {
            "holderIdentity": "another-holder", "leaseDurationSeconds": 15,
            "acquireTime": now, "renewTime": now, "leaseTransitions": 1,
        },
    }))?;
    let replaced = audit::mark(&ctx.paths)?;
    // If a replica was quicker, its Lease is overwritten.
    if leases.create(&PostParams::default(), &foreign).await.is_err() {
        let patch = Patch::Merge(json!({"spec": foreign.spec}));
        leases.patch(names::LEASE, &PatchParams::default(), &patch).await?;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let early = repairs(ctx, replaced)?;
    ensure!(early.len() <= 1, "a replica wrote under another holder's lease: {early:?}");
    let last = leader(ctx).await?;
    repaired_by(ctx, replaced, &last.name_any()).await?;
    remover.stop().await?;
    never_together(&repairs(ctx, mark)?)
}

async fn replicas_survive_a_minute_without_the_api_server(ctx: &TestContext) -> Result<()> {
    let mark = audit::mark(&ctx.paths)?;
    leader(ctx).await?;
    let addresses = super::webhook_tls::ready_endpoints(&ctx.client).await?;
    ensure!(addresses.len() == 2, "{addresses:?}");
    let bundles = super::webhook_tls::ca_bundles(&ctx.client).await?;
    let bundle = bundles.first().context("no CA bundle")?.clone();
    let paused = ctx.pause_component(apiserver::NAME)?;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        for address in &addresses {
            verify_handshake(*address, &bundle).await.context("the webhooks do not respond")?;
        }
    }
    drop(paused);
    let remover = BundleRemover::start(ctx.client.clone());
    let leads = leader(ctx).await?;
    repaired_by(ctx, mark, &leads.name_any()).await?;
    remover.stop().await?;
    for pod in replicas(ctx).await? {
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        ensure!(statuses.iter().all(|status| status.restart_count == 0), "a replica was restarted");
    }
    never_together(&repairs(ctx, mark)?)
}

/// Removes a CA bundle every two seconds, so that the leader has something to write.
struct BundleRemover {
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl BundleRemover {
    fn start(client: Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let api = Api::<ValidatingWebhookConfiguration>::all(client);
            while !stopped.load(Ordering::Relaxed) {
                let patch: json_patch::Patch = serde_json::from_value(json!([
                    {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"},
                ]))
                .unwrap_or_default();
                let patch = Patch::<ValidatingWebhookConfiguration>::Json(patch);
                // The patch fails while the bundle is missing, which is expected.
                drop(
                    api.patch(names::WEBHOOK_CONFIGURATION, &PatchParams::default(), &patch).await,
                );
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        });
        Self { stop, task }
    }

    async fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}

/// The pods that restored the bundle, in order.
fn repairs(ctx: &TestContext, mark: audit::Mark) -> Result<Vec<String>> {
    let mut writes = audit::writes_since(&ctx.paths, mark)?;
    writes.retain(|call| {
        call.user.username == SERVICE_ACCOUNT
            && call.object_ref.resource == "validatingwebhookconfigurations"
            && call.response_status.code < 300
    });
    Ok(writes.iter().map(|call| call.user.pod().unwrap_or("no pod").to_owned()).collect())
}

async fn repaired_by(ctx: &TestContext, mark: audit::Mark, pod: &str) -> Result<()> {
    ctx.wait_until(&format!("{pod} to restore the bundle"), REPAIR_TIMEOUT, async || {
        let repairs = repairs(ctx, mark).map_err(|error| format!("{error:#}"))?;
        if repairs.iter().any(|name| name == pod) { Ok(()) } else { Err(format!("{repairs:?}")) }
    })
    .await
}

/// Once another replica writes, the one before it does not; except that it may be elected again.
fn never_together(repairs: &[String]) -> Result<()> {
    let mut terms: Vec<&String> = repairs.iter().collect();
    terms.dedup();
    println!("{} repairs in {} terms", repairs.len(), terms.len());
    ensure!(!repairs.is_empty(), "no replica wrote at all");
    ensure!(terms.len() <= 4, "replicas wrote alternately: {terms:?}");
    Ok(())
}

fn wrote_in_order(ctx: &TestContext, mark: audit::Mark, order: &[&str]) -> Result<()> {
    let mut terms = repairs(ctx, mark)?;
    terms.dedup();
    ensure!(terms == order, "{terms:?} instead of {order:?}");
    Ok(())
}
