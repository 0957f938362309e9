//! Availability of the webhooks: admissions and conversions succeed while replicas are replaced,
//! the CA and the certificates rotate, and the leader is killed between any two steps of a
//! rotation.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_harness::{Isolation, TestContext, run};

use super::installation::{
    NAMESPACE, leader, replicas, wait_other_leader, wait_rollout, with_installation_args,
};
use super::load::{Load, LoadStats};
use super::webhook_tls::Sampler;

/// A CA lives less than a minute and a half, so that a test observes several.
pub(super) const SHORT_LIFETIMES: [&str; 3] = [
    "--webhook-ca-lifetime=80s",
    "--webhook-leaf-lifetime=20s",
    "--webhook-ca-propagation-delay=3s",
];
/// How long kube-proxy may route calls to a killed replica.
const ENDPOINT_REMOVAL_GRACE: Duration = Duration::from_secs(10);
const CALLS: usize = 10_000;
const LOAD_TIMEOUT: Duration = Duration::from_mins(8);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn no_call_fails_while_replicas_terminate_and_the_ca_rotates() -> Result<()> {
    run("webhook-load", Isolation::Serial, async |ctx| {
        with_installation_args(ctx, &SHORT_LIFETIMES, async || {
            let load = Load::start(ctx).await?;
            let sampler = Sampler::start(ctx);
            let mut phases = Phases::default();
            // A follower terminates, then the leader, then all replicas are restarted.
            delete_replica(ctx, false).await?;
            delete_replica(ctx, true).await?;
            ctx.admin.run(&["-n", NAMESPACE, "rollout", "restart", "deployment/quorate"]).await?;
            wait_rollout(ctx).await?;
            // The leader terminates at each phase of a whole rotation.
            while phases.observed.len() < 3 || phases.changes < 5 {
                phases.next(ctx).await?;
                delete_replica(ctx, true).await?;
            }
            let stats = load.until(CALLS, LOAD_TIMEOUT).await?;
            let handshakes = sampler.finish().await?;
            print_stats(&stats, &format!("{handshakes} handshakes, {} phases", phases.changes));
            ensure!(stats.failed.load(Ordering::Relaxed) == 0, "{}", stats.errors());
            ensure!(handshakes > 100, "only {handshakes} handshakes");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn only_calls_to_a_killed_replica_fail_and_succeed_when_retried() -> Result<()> {
    run("killed", Isolation::Serial, async |ctx| {
        with_installation_args(ctx, &SHORT_LIFETIMES, async || {
            let load = Load::start(ctx).await?;
            let mut phases = Phases::default();
            let mut kills = Vec::new();
            for _ in 0..4 {
                phases.next(ctx).await?;
                let leader = leader(ctx).await?;
                kills.push(Instant::now());
                ctx.kill_pod(&leader)?;
            }
            let stats = load.until(2_000, LOAD_TIMEOUT).await?;
            print_stats(&stats, "leader killed four times");
            ensure!(stats.lost.load(Ordering::Relaxed) == 0, "{}", stats.errors());
            for failure in stats.times() {
                let after = |kill: &Instant| failure.saturating_duration_since(*kill);
                let near = kills
                    .iter()
                    .any(|kill| *kill <= failure && after(kill) < ENDPOINT_REMOVAL_GRACE);
                ensure!(near, "a call failed without a killed replica: {}", stats.errors());
            }
            Ok(())
        })
        .await
    })
    .await
}

fn print_stats(stats: &LoadStats, what: &str) {
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    println!(
        "{} admissions, {} conversions, {} failed at first, {} lost; {what}",
        count(&stats.admissions),
        count(&stats.conversions),
        count(&stats.failed),
        count(&stats.lost),
    );
}

/// The phases of a rotation, by the keys of the CA Secret.
#[derive(Default)]
struct Phases {
    last: Option<String>,
    observed: BTreeSet<&'static str>,
    changes: usize,
}

impl Phases {
    /// Waits until the Secret is in another phase than before.
    async fn next(&mut self, ctx: &TestContext) -> Result<()> {
        let secrets = Api::<Secret>::namespaced(ctx.client.clone(), NAMESPACE);
        let observe = async || {
            let secret = secrets.get(names::WEBHOOK_CA_SECRET).await;
            let secret = secret.map_err(|error| error.to_string())?;
            let version = secret.resource_version().unwrap_or_default();
            if self.last.as_ref() == Some(&version) {
                return Err("the Secret has not changed".to_owned());
            }
            let keys = secret.data.unwrap_or_default();
            let phase = match (keys.contains_key("next.crt"), keys.contains_key("previous.crt")) {
                (true, _) => "next CA staged",
                (false, true) => "previous CA trusted",
                (false, false) => "one CA",
            };
            Ok((version, phase))
        };
        let (version, phase) = ctx
            .wait_until("another phase of the rotation", Duration::from_mins(4), observe)
            .await?;
        self.last = Some(version);
        self.observed.insert(phase);
        self.changes = self.changes.saturating_add(1);
        Ok(())
    }
}

/// Deletes a replica with kubectl, and waits until another is ready.
async fn delete_replica(ctx: &TestContext, leads: bool) -> Result<()> {
    let leader = leader(ctx).await?;
    let pods = replicas(ctx).await?;
    let other = pods.into_iter().find(|pod| pod.name_any() != leader.name_any());
    let deleted = if leads { leader.clone() } else { other.context("only one replica")? };
    ctx.admin.run(&["-n", NAMESPACE, "delete", "pod", &deleted.name_any(), "--wait=false"]).await?;
    if leads {
        wait_other_leader(ctx, &leader).await?;
    }
    wait_rollout(ctx).await
}
