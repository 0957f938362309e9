//! The operator is installed with one manifest, becomes ready, and always has a leader, whatever
//! happens to one of its two replicas.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use quorate_harness::{Isolation, TestContext, audit, run};

use super::installation::{
    ELECTION_TIMEOUT, NAMESPACE, SERVICE_ACCOUNT, get_page, leader, metric, replicas,
    wait_other_leader, with_installation,
};

#[tokio::test(flavor = "multi_thread")]
async fn install_manifest_yields_a_ready_operator_with_a_leader() -> Result<()> {
    run("install", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            let pods = replicas(ctx).await?;
            ensure!(pods.len() == 2, "{} replicas", pods.len());
            let leader = leader(ctx).await?;
            ensure!(
                pods.iter().any(|pod| pod.name_any() == leader.name_any()),
                "the leader is not a replica"
            );
            for pod in &pods {
                let own = metric(ctx, &pod.name_any(), "quorate_leader").await?;
                let expected = if pod.name_any() == leader.name_any() { "1" } else { "0" };
                ensure!(own == expected, "{} reports quorate_leader {own}", pod.name_any());
                let ready = get_page(ctx, &pod.name_any(), "readyz").await?;
                ensure!(ready.contains("[+]certificate ok"), "/readyz returns {ready:?}");
            }
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_replica_takes_over_when_the_leader_is_deleted_or_paused() -> Result<()> {
    run("takeover", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            let first = leader(ctx).await?;
            let start = audit::mark(&ctx.paths)?;
            ctx.admin
                .run(&["-n", NAMESPACE, "delete", "pod", &first.name_any(), "--wait=false"])
                .await?;
            let second = wait_other_leader(ctx, &first).await?;

            // A paused leader does not block the others, and stops leading once it is resumed.
            let paused = ctx.pause_pod(&second)?;
            let third = wait_other_leader(ctx, &second).await?;
            drop(paused);
            ctx.wait_until(
                "the resumed replica to report that it does not lead",
                ELECTION_TIMEOUT,
                async || match metric(ctx, &second.name_any(), "quorate_leader").await {
                    Ok(value) if value == "0" => Ok(()),
                    other => Err(format!("{other:?}")),
                },
            )
            .await?;
            let still = leader(ctx).await?;
            ensure!(still.name_any() == third.name_any(), "{} leads again", still.name_any());

            nothing_was_forbidden(ctx, start)
        })
        .await
    })
    .await
}

fn nothing_was_forbidden(ctx: &TestContext, since: audit::Mark) -> Result<()> {
    let mut calls = audit::calls_since(&ctx.paths, since)?;
    calls.retain(|call| call.user.username == SERVICE_ACCOUNT);
    ensure!(!calls.is_empty(), "no call of the operator in the audit log");
    for call in calls {
        // A conflict is allowed: two replicas may write at once, and one of them succeeds.
        ensure!(call.response_status.code != 403, "forbidden: {:?}", call.object_ref);
    }
    Ok(())
}
