//! Members raise an alarm: it is named, and nobody is disturbed until it is over.

use anyhow::{Result, ensure};
use etcd_client::{AlarmAction, AlarmType};
use quorate_harness::{Disturbs, catalog};
use serde_json::json;

use super::{COMES, NEVER, SAYS, are_the_same, healthy, pod_uids, with_operator};

/// No writer here: with its alarm raised etcd takes no writes, which is what it is for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn while_an_alarm_is_raised_it_is_named_and_nobody_is_disturbed() -> Result<()> {
    with_operator("etcd-alarm", Disturbs::Nothing, async |story| {
        for release in ["3.6.10", "3.6.16"] {
            story.image(&catalog::etcd_name(release)).await?;
        }
        let cluster = healthy(story, 3, &json!({"version": "3.6.10"})).await?;
        let before = cluster.user.listed().await?;
        let release = json!({"version": "3.6.16"});
        let option = json!({"options": {"snapshotCount": 20_000}});
        for (alarm, word, change) in
            [(AlarmType::Nospace, "NOSPACE", release), (AlarmType::Corrupt, "CORRUPT", option)]
        {
            let pods = pod_uids(&cluster).await?;
            cluster.user.alarm(AlarmAction::Activate, alarm).await?;
            story
                .wait_until(&format!("{word} to be named"), SAYS, async || {
                    let (_, words) = cluster
                        .says(story, "Ready", "False", SAYS)
                        .await
                        .map_err(|error| format!("{error:#}"))?;
                    if words.contains(word) { Ok(()) } else { Err(words) }
                })
                .await?;
            // Something is to be done, and waits.
            cluster.edit(&change).await?;
            tokio::time::sleep(NEVER).await;
            ensure!(pod_uids(&cluster).await? == pods, "members were disturbed beside {word}");
            cluster.user.alarm(AlarmAction::Deactivate, alarm).await?;
            cluster.is_updated(story, 3, COMES).await?;
        }
        are_the_same(&cluster, &before).await
    })
    .await
}
