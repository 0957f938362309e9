//! The operator is installed with one manifest, becomes ready, and holds its lease whatever happens to one
//! of its two replicas.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use quorate_harness::{Disturbs, Story, audit, tell};

use super::installed::{
    ACCOUNT, ELECTION, NAMESPACE, another_leader, get, installed, leader, metric, replicas,
};

#[tokio::test(flavor = "multi_thread")]
async fn one_manifest_installs_an_operator_that_is_trusted_and_leads() -> Result<()> {
    tell("install", Disturbs::Everything, async |story| {
        installed(story, async || {
            let pods = replicas(story).await?;
            ensure!(pods.len() == 2, "{} replicas", pods.len());
            let leader = leader(story).await?;
            ensure!(pods.iter().any(|pod| pod.name_any() == leader.name_any()), "a stranger leads");
            for pod in &pods {
                let own = metric(story, &pod.name_any(), "quorate_leader").await?;
                let expected = if pod.name_any() == leader.name_any() { "1" } else { "0" };
                ensure!(own == expected, "{} says quorate_leader {own}", pod.name_any());
                let ready = get(story, &pod.name_any(), "readyz").await?;
                ensure!(ready.contains("[+]certificate ok"), "/readyz says {ready:?}");
            }
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_leaves_or_hangs_the_other_replica_takes_over() -> Result<()> {
    tell("takeover", Disturbs::Everything, async |story| {
        installed(story, async || {
            let first = leader(story).await?;
            let start = audit::mark(&story.places)?;
            story
                .admin
                .run(&["-n", NAMESPACE, "delete", "pod", &first.name_any(), "--wait=false"])
                .await?;
            let second = another_leader(story, &first).await?;

            // A leader that hangs does not hold up the others, and learns that it leads no more.
            let hanging = story.stop_pod(&second)?;
            let third = another_leader(story, &second).await?;
            drop(hanging);
            story
                .wait_until(
                    "the replica that hung to know that it does not lead",
                    ELECTION,
                    async || match metric(story, &second.name_any(), "quorate_leader").await {
                        Ok(value) if value == "0" => Ok(()),
                        other => Err(format!("{other:?}")),
                    },
                )
                .await?;
            let still = leader(story).await?;
            ensure!(still.name_any() == third.name_any(), "{} leads again", still.name_any());

            nothing_was_forbidden(story, start)
        })
        .await
    })
    .await
}

fn nothing_was_forbidden(story: &Story, since: audit::Mark) -> Result<()> {
    let mut calls = audit::calls_since(&story.places, since)?;
    calls.retain(|call| call.user.username == ACCOUNT);
    ensure!(!calls.is_empty(), "the audit log knows nothing of the operator");
    for call in calls {
        // A conflict is no harm: two replicas may try at once, and one of them wins.
        ensure!(call.response_status.code != 403, "forbidden: {:?}", call.object_ref);
    }
    Ok(())
}
