//! At most one replica writes, whatever is done to the lease, to the leader, or to the apiserver.
//! The leader is given something to write all the time: a bundle that somebody keeps taking away.

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
use quorate_harness::{Disturbs, Story, audit, tell};
use serde_json::json;
use tokio::task::JoinHandle;

use super::handshake::greeted;
use super::installed::{ACCOUNT, NAMESPACE, another_leader, installed, leader, replicas};

const REPAIRED: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; make stories-long tells it"]
async fn at_most_one_replica_writes_whatever_happens() -> Result<()> {
    tell("writers", Disturbs::Everything, async |story| {
        installed(story, async || {
            a_leader_that_hung_past_its_lease_writes_nothing_when_it_goes_on(story)
                .await
                .context("a leader that hung past its lease writes nothing when it goes on")?;
            a_lease_that_is_deleted_or_replaced_never_makes_two_writers(story)
                .await
                .context("a lease that is deleted or replaced never makes two writers")?;
            an_apiserver_that_is_away_for_a_minute_takes_nobody_down(story)
                .await
                .context("an apiserver that is away for a minute takes nobody down")?;
            Ok(())
        })
        .await
    })
    .await
}

async fn a_leader_that_hung_past_its_lease_writes_nothing_when_it_goes_on(
    story: &Story,
) -> Result<()> {
    let mark = audit::mark(&story.places)?;
    let first = leader(story).await?;
    let vandal = Vandal::begin(story.client.clone());
    repaired_by(story, mark, &first.name_any()).await?;
    let hung = story.stop_pod(&first)?;
    let second = another_leader(story, &first).await?;
    repaired_by(story, mark, &second.name_any()).await?;
    drop(hung);
    tokio::time::sleep(Duration::from_secs(20)).await;
    vandal.end().await?;
    one_after_the_other(story, mark, &[&first.name_any(), &second.name_any()])
}

async fn a_lease_that_is_deleted_or_replaced_never_makes_two_writers(story: &Story) -> Result<()> {
    let mark = audit::mark(&story.places)?;
    let first = leader(story).await?;
    let vandal = Vandal::begin(story.client.clone());
    repaired_by(story, mark, &first.name_any()).await?;
    let leases = Api::<Lease>::namespaced(story.client.clone(), NAMESPACE);
    leases.delete(names::LEASE, &DeleteParams::default()).await?;
    let then = leader(story).await?;
    repaired_by(story, mark, &then.name_any()).await?;

    // A stranger's lease: nobody writes until it has expired.
    leases.delete(names::LEASE, &DeleteParams::default()).await?;
    let now = jiff::Timestamp::now().to_string();
    let foreign: Lease = serde_json::from_value(json!({
        "metadata": {"name": names::LEASE},
        "spec": {
            "holderIdentity": "a-stranger", "leaseDurationSeconds": 15,
            "acquireTime": now, "renewTime": now, "leaseTransitions": 1,
        },
    }))?;
    let replaced = audit::mark(&story.places)?;
    // One of the replicas may be quicker; then its lease is taken from it.
    if leases.create(&PostParams::default(), &foreign).await.is_err() {
        let patch = Patch::Merge(json!({"spec": foreign.spec}));
        leases.patch(names::LEASE, &PatchParams::default(), &patch).await?;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let early = repairs(story, replaced)?;
    ensure!(early.len() <= 1, "somebody wrote under a stranger's lease: {early:?}");
    let last = leader(story).await?;
    repaired_by(story, replaced, &last.name_any()).await?;
    vandal.end().await?;
    never_together(&repairs(story, mark)?)
}

async fn an_apiserver_that_is_away_for_a_minute_takes_nobody_down(story: &Story) -> Result<()> {
    let mark = audit::mark(&story.places)?;
    leader(story).await?;
    let addresses = super::handshake::ready(&story.client).await?;
    ensure!(addresses.len() == 2, "{addresses:?}");
    let bundles = super::handshake::bundles(&story.client).await?;
    let bundle = bundles.first().context("a bundle")?.clone();
    let away = story.stop_part(apiserver::NAME)?;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        for address in &addresses {
            greeted(*address, &bundle).await.context("the webhooks do not answer")?;
        }
    }
    drop(away);
    let vandal = Vandal::begin(story.client.clone());
    let leads = leader(story).await?;
    repaired_by(story, mark, &leads.name_any()).await?;
    vandal.end().await?;
    for pod in replicas(story).await? {
        let statuses = pod.status.and_then(|it| it.container_statuses).unwrap_or_default();
        ensure!(statuses.iter().all(|it| it.restart_count == 0), "a replica was restarted");
    }
    never_together(&repairs(story, mark)?)
}

/// Takes a bundle away every two seconds, so that the leader has something to write.
struct Vandal {
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Vandal {
    fn begin(client: Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let api = Api::<ValidatingWebhookConfiguration>::all(client);
            while !asked.load(Ordering::Relaxed) {
                let patch: json_patch::Patch = serde_json::from_value(json!([
                    {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"},
                ]))
                .unwrap_or_default();
                let patch = Patch::<ValidatingWebhookConfiguration>::Json(patch);
                // It fails while nobody has put the bundle back; that is all right.
                drop(
                    api.patch(names::WEBHOOK_CONFIGURATION, &PatchParams::default(), &patch).await,
                );
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        });
        Self { stop, task }
    }

    async fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}

/// The pods that put the bundle back, in order.
fn repairs(story: &Story, mark: audit::Mark) -> Result<Vec<String>> {
    let mut writes = audit::since(&story.places, mark)?;
    writes.retain(|it| {
        it.user.username == ACCOUNT
            && it.object_ref.resource == "validatingwebhookconfigurations"
            && it.response_status.code < 300
    });
    Ok(writes.iter().map(|it| it.user.pod().unwrap_or("nobody").to_owned()).collect())
}

async fn repaired_by(story: &Story, mark: audit::Mark, pod: &str) -> Result<()> {
    story
        .wait_until(&format!("{pod} to put the bundle back"), REPAIRED, async || {
            let repairs = repairs(story, mark).map_err(|error| format!("{error:#}"))?;
            if repairs.iter().any(|it| it == pod) { Ok(()) } else { Err(format!("{repairs:?}")) }
        })
        .await
}

/// Once another writes, the one before it never writes again; except that it may be elected again.
fn never_together(repairs: &[String]) -> Result<()> {
    let mut turns: Vec<&String> = repairs.iter().collect();
    turns.dedup();
    println!("{} repairs in {} terms", repairs.len(), turns.len());
    ensure!(!repairs.is_empty(), "nobody wrote at all");
    ensure!(turns.len() <= 4, "they wrote in turns: {turns:?}");
    Ok(())
}

fn one_after_the_other(story: &Story, mark: audit::Mark, order: &[&str]) -> Result<()> {
    let mut turns = repairs(story, mark)?;
    turns.dedup();
    ensure!(turns == order, "{turns:?} instead of {order:?}");
    Ok(())
}
