//! Members that are far from each other are given more time, by what they have measured themselves.

use std::time::Duration;

use anyhow::{Result, ensure};
use quorate_harness::etcd_cluster::{names as members_of, uids};
use quorate_harness::{Disturbs, Story};
use serde_json::{Value, json};

use super::{are_the_same, healthy, return_to, watched, with_operator, writes_go_on};

/// Each way: there and back is longer than etcd's own heartbeat of 100 ms.
const FAR: Duration = Duration::from_millis(80);
/// Two looks with three minutes between them, a first one that came too early, and three members started anew.
const PATIENCE: Duration = Duration::from_mins(15);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn members_that_are_far_from_each_other_are_given_more_time() -> Result<()> {
    with_operator("etcd-pace", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        ensure!(told(&cluster.look().await?) == Some("100".to_owned()), "not etcd's own pace");
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            let members = members_of(&before);
            let slowed = story.slow_down(&members, FAR).await?;
            // Who is connected stays connected, so all have to come anew. Nobody writes meanwhile.
            witnesses.watchman.be_lenient(true);
            let pods: Vec<String> =
                uids(&cluster.pods().await?).into_iter().map(|(_, uid)| uid).collect();
            cluster.lose_pods(&members).await?;
            return_to(story, &cluster, &before, &pods).await?;
            witnesses.watchman.be_lenient(false);

            let is_slower = async || {
                let object = cluster.look().await.map_err(|error| format!("{error:#}"))?;
                match told(&object) {
                    Some(heartbeat) if heartbeat == "250" => Ok(()),
                    other => Err(format!("the heartbeat is {other:?}")),
                }
            };
            story.wait_until("members to be given more time", PATIENCE, is_slower).await?;
            cluster.is_updated(story, 3, PATIENCE).await?;
            for pod in cluster.pods().await? {
                let words = serde_json::to_string(&pod.spec)?;
                ensure!(words.contains("--heartbeat-interval=250"), "{words}");
                ensure!(words.contains("--election-timeout=2500"), "{words}");
            }
            are_the_same(&cluster, &before).await?;
            writes_go_on(story, witnesses).await?;
            drop(slowed);
            Ok(())
        })
        .await?;
        asked(story).await
    })
    .await
}

/// What somebody asks for is done, whatever was measured.
async fn asked(story: &Story) -> Result<()> {
    let cluster = story.cluster("main");
    cluster.edit(&json!({"options": {"heartbeatMilliseconds": 150}})).await?;
    cluster.is_updated(story, 3, PATIENCE).await?;
    let object = cluster.look().await?;
    ensure!(told(&object).is_none(), "{object}");
    Ok(())
}

/// The heartbeat that the operator says it has chosen.
fn told(object: &Value) -> Option<String> {
    let tuning = object.pointer("/status/tuning")?.as_array()?;
    let chosen = tuning.iter().find(|it| it.get("option") == Some(&json!("heartbeat-interval")))?;
    Some(chosen.get("value")?.as_str()?.to_owned())
}
