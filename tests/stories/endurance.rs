//! The door stays open: admissions and conversions go on while replicas go and come, certificates and their
//! authority change, and the leader dies between any two steps of it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_harness::{Disturbs, Story, tell};

use super::handshake::Sampler;
use super::installed::{NAMESPACE, another_leader, installed_with, leader, replicas, rolled_out};
use super::load::{Load, Tally};

/// The life of an authority is over in a minute and a half, so that a story sees several.
pub(super) const QUICK: [&str; 3] = [
    "--webhook-ca-lifetime=80s",
    "--webhook-leaf-lifetime=20s",
    "--webhook-ca-propagation-delay=3s",
];
/// The kubelet sees an end at once, and kube-proxy learns of it; until then calls may go to the dead.
const KNOWN_TO_BE_DEAD: Duration = Duration::from_secs(10);
const CALLS: usize = 10_000;
const LONG: Duration = Duration::from_mins(8);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; make stories-long tells it"]
async fn nothing_fails_while_replicas_go_and_the_authority_changes() -> Result<()> {
    tell("endurance", Disturbs::Everything, async |story| {
        installed_with(story, &QUICK, async || {
            let load = Load::begin(story).await?;
            let sampler = Sampler::begin(story);
            let mut phases = Phases::default();
            // A replica leaves in order, then the leader, then all are rolled.
            leave(story, false).await?;
            leave(story, true).await?;
            story.admin.run(&["-n", NAMESPACE, "rollout", "restart", "deployment/quorate"]).await?;
            rolled_out(story).await?;
            // The leader leaves at each phase of a whole rotation.
            while phases.seen.len() < 3 || phases.turns < 5 {
                phases.next(story).await?;
                leave(story, true).await?;
            }
            let tally = load.until(CALLS, LONG).await?;
            let handshakes = sampler.end().await?;
            tell_tally(&tally, &format!("{handshakes} handshakes, {} phases", phases.turns));
            ensure!(tally.failed.load(Ordering::Relaxed) == 0, "{}", tally.words());
            ensure!(handshakes > 100, "only {handshakes} handshakes were tried");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; make stories-long tells it"]
async fn when_a_replica_is_killed_only_calls_on_it_fail_and_they_succeed_when_tried_again()
-> Result<()> {
    tell("killed", Disturbs::Everything, async |story| {
        installed_with(story, &QUICK, async || {
            let load = Load::begin(story).await?;
            let mut phases = Phases::default();
            let mut kills = Vec::new();
            for _ in 0..4 {
                phases.next(story).await?;
                let leader = leader(story).await?;
                kills.push(Instant::now());
                story.kill_pod(&leader)?;
            }
            let tally = load.until(2_000, LONG).await?;
            tell_tally(&tally, "leader killed four times");
            ensure!(tally.lost.load(Ordering::Relaxed) == 0, "{}", tally.words());
            for failure in tally.times() {
                let after = |kill: &Instant| failure.saturating_duration_since(*kill);
                let near = kills.iter().any(|it| *it <= failure && after(it) < KNOWN_TO_BE_DEAD);
                ensure!(near, "a call failed while everybody lived: {}", tally.words());
            }
            Ok(())
        })
        .await
    })
    .await
}

fn tell_tally(tally: &Tally, what: &str) {
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    println!(
        "{} admissions, {} conversions, {} failed at first, {} lost; {what}",
        count(&tally.admissions),
        count(&tally.conversions),
        count(&tally.failed),
        count(&tally.lost),
    );
}

/// The phases of a rotation, as the Secret shows them.
#[derive(Default)]
struct Phases {
    last: Option<String>,
    seen: BTreeSet<&'static str>,
    turns: usize,
}

impl Phases {
    /// Waits until the Secret shows another phase than before.
    async fn next(&mut self, story: &Story) -> Result<()> {
        let secrets = Api::<Secret>::namespaced(story.client.clone(), NAMESPACE);
        let look = async || {
            let secret = secrets.get(names::WEBHOOK_CA_SECRET).await;
            let secret = secret.map_err(|error| error.to_string())?;
            let version = secret.resource_version().unwrap_or_default();
            if self.last.as_ref() == Some(&version) {
                return Err("the authorities are the same as before".to_owned());
            }
            let keys = secret.data.unwrap_or_default();
            let phase = match (keys.contains_key("next.crt"), keys.contains_key("previous.crt")) {
                (true, _) => "next is known",
                (false, true) => "previous is still known",
                (false, false) => "one authority",
            };
            Ok((version, phase))
        };
        let (version, phase) =
            story.wait_until("another phase of the rotation", Duration::from_mins(4), look).await?;
        self.last = Some(version);
        self.seen.insert(phase);
        self.turns = self.turns.saturating_add(1);
        Ok(())
    }
}

/// A replica is deleted as people do it, and is waited for until another is there.
async fn leave(story: &Story, leads: bool) -> Result<()> {
    let leader = leader(story).await?;
    let pods = replicas(story).await?;
    let other = pods.into_iter().find(|pod| pod.name_any() != leader.name_any());
    let goes = if leads { leader.clone() } else { other.context("there is one replica only")? };
    story.admin.run(&["-n", NAMESPACE, "delete", "pod", &goes.name_any(), "--wait=false"]).await?;
    if leads {
        another_leader(story, &leader).await?;
    }
    rolled_out(story).await
}
