//! A cluster in steady state causes no API calls but watches, whether clients write to etcd or not.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorate_harness::audit::{self, Call, Mark};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{healthy_cluster, monitored, with_operator};
use crate::installation::SERVICE_ACCOUNT;

/// How long the last events of a change may cause calls.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);
const QUIET_INTERVAL: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn steady_state_causes_no_api_calls_while_clients_write() -> Result<()> {
    with_operator("etcd-steady", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| no_calls_for(ctx, Duration::from_mins(1)).await).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn five_minutes_of_steady_state_cause_no_api_calls_with_and_without_a_writer() -> Result<()> {
    with_operator("etcd-steady-long", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        no_calls_for(ctx, Duration::from_mins(5)).await?;
        monitored(&cluster, async |_| no_calls_for(ctx, Duration::from_mins(5)).await).await?;
        Ok(())
    })
    .await
}

/// Waits until the operator makes no calls, and fails if it makes any in the following time.
async fn no_calls_for(ctx: &TestContext, time: Duration) -> Result<()> {
    let started = Instant::now();
    loop {
        let mark = audit::mark(&ctx.paths)?;
        tokio::time::sleep(QUIET_INTERVAL).await;
        let calls = operator_calls(ctx, mark)?;
        if calls.is_empty() {
            break;
        }
        ensure!(started.elapsed() < SETTLE_TIMEOUT, "no steady state: {}", describe(&calls));
    }
    let mark = audit::mark(&ctx.paths)?;
    tokio::time::sleep(time).await;
    let calls = operator_calls(ctx, mark)?;
    ensure!(calls.is_empty(), "calls in {time:?} of steady state: {}", describe(&calls));
    Ok(())
}

/// The operator's calls in this test's namespace: other tests may run at the same time.
fn operator_calls(ctx: &TestContext, mark: Mark) -> Result<Vec<Call>> {
    let mut calls = audit::calls_since(&ctx.paths, mark)?;
    calls.retain(|call| {
        call.user.username == SERVICE_ACCOUNT
            && call.object_ref.namespace == ctx.namespace
            && call.verb != "watch"
    });
    Ok(calls)
}

fn describe(calls: &[Call]) -> String {
    let describe = |call: &Call| {
        let target = &call.object_ref;
        format!("{} {}/{} {}", call.verb, target.resource, target.subresource, target.name)
    };
    calls.iter().map(describe).collect::<Vec<_>>().join(", ")
}
