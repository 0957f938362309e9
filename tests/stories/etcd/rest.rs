//! A cluster at rest costs the API nothing: no write, and no read but watches, whether it is written to or not.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorate_harness::audit::{self, Call, Mark};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{healthy, watched, with_operator};
use crate::installed::ACCOUNT;

/// After the last change some news are still on their way.
const SETTLES: Duration = Duration::from_mins(2);
const QUIET: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_at_rest_costs_no_calls_although_it_is_written_to() -> Result<()> {
    with_operator("etcd-rest", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| rests(story, Duration::from_mins(1)).await).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn in_five_minutes_of_rest_nothing_is_written_with_or_without_a_writer() -> Result<()> {
    with_operator("etcd-rest-long", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        rests(story, Duration::from_mins(5)).await?;
        watched(&cluster, async |_| rests(story, Duration::from_mins(5)).await).await?;
        Ok(())
    })
    .await
}

/// Waits until it is quiet, and then wants it to stay so.
async fn rests(story: &Story, long: Duration) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mark = audit::mark(&story.places)?;
        tokio::time::sleep(QUIET).await;
        let calls = of_operator(story, mark)?;
        if calls.is_empty() {
            break;
        }
        ensure!(begun.elapsed() < SETTLES, "it does not come to rest: {}", words(&calls));
    }
    let mark = audit::mark(&story.places)?;
    tokio::time::sleep(long).await;
    let calls = of_operator(story, mark)?;
    ensure!(calls.is_empty(), "in {long:?} of rest it called: {}", words(&calls));
    Ok(())
}

/// What the operator did about this story: others may go on beside it.
fn of_operator(story: &Story, mark: Mark) -> Result<Vec<Call>> {
    let mut calls = audit::calls_since(&story.places, mark)?;
    calls.retain(|call| {
        call.user.username == ACCOUNT
            && call.object_ref.namespace == story.namespace
            && call.verb != "watch"
    });
    Ok(calls)
}

fn words(calls: &[Call]) -> String {
    let one = |call: &Call| {
        let target = &call.object_ref;
        format!("{} {}/{} {}", call.verb, target.resource, target.subresource, target.name)
    };
    calls.iter().map(one).collect::<Vec<_>>().join(", ")
}
