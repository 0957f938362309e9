//! The harness can disturb: stop a part, stop a pod's process, cut a pod's network; and each ends by itself.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::PostParams;
use quorate_cluster::components::scheduler;
use quorate_cluster::settings::NODE_NAME;
use quorate_harness::waiting::{PATIENCE, phase};
use quorate_harness::{Disturbs, Story, catalog, pods, tell};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_waits_while_the_scheduler_stands_still() -> Result<()> {
    tell("stopped-part", Disturbs::Everything, async |story| {
        story.image(catalog::BUSYBOX).await?;
        let stopped = story.stop_part(scheduler::NAME)?;
        story.create_pod(pods::restricted("waiter", catalog::BUSYBOX, &["sleep", "3600"])).await?;
        // Once a pod that needs no scheduler runs, the other would have run too.
        let mut placed = pods::restricted("placed", catalog::BUSYBOX, &["sleep", "3600"]);
        placed["spec"]["nodeName"] = json!(NODE_NAME);
        story.create_pod(placed).await?;
        story.pod_is_ready("placed").await?;
        let pod = story.api::<Pod>().get("waiter").await?;
        ensure!(phase(&pod) == "Pending", "it is {}", phase(&pod));
        ensure!(pod.spec.is_some_and(|spec| spec.node_name.is_none()), "somebody scheduled it");
        drop(stopped);
        story.pod_is_ready("waiter").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_process_stands_still_does_not_answer_until_it_goes_on() -> Result<()> {
    tell("stopped-pod", Disturbs::Nothing, async |story| {
        let (server, address) = two_pods(story).await?;
        hears(story, &address, ANSWERED).await?;
        let stopped = story.stop_pod(&server)?;
        hears(story, &address, TIMED_OUT).await?;
        drop(stopped);
        hears(story, &address, ANSWERED).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_cut_off_is_not_reached_until_it_is_connected_again() -> Result<()> {
    tell("cut-off", Disturbs::Nothing, async |story| {
        let (server, address) = two_pods(story).await?;
        hears(story, &address, ANSWERED).await?;
        let cut = story.cut_off(&server)?;
        hears(story, &address, TIMED_OUT).await?;
        drop(cut);
        hears(story, &address, ANSWERED).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_apiserver_stored_can_be_read_from_its_etcd() -> Result<()> {
    tell("stored-bytes", Disturbs::Nothing, async |story| {
        let note: ConfigMap = serde_json::from_value(
            json!({ "metadata": { "name": "note" }, "data": { "word": "sesame" } }),
        )?;
        story.api::<ConfigMap>().create(&PostParams::default(), &note).await?;
        let mut etcd = story.control_plane().await?;
        let prefix = format!("/registry/configmaps/{}/", story.namespace);
        let key = format!("{prefix}note");
        ensure!(etcd.keys(&prefix).await?.contains(&key), "{key} is not there");
        let bytes = etcd.get(&key).await?.unwrap_or_default();
        ensure!(String::from_utf8_lossy(&bytes).contains("sesame"), "{bytes:?}");
        ensure!(
            etcd.get(&format!("{prefix}nothing")).await?.is_none(),
            "it found what is not there"
        );
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_says_what_was_waited_for_and_what_was_seen() -> Result<()> {
    tell("deadline", Disturbs::Nothing, async |story| {
        let mut pod = pods::restricted("never", "nowhere/none:1", &["x"]);
        pod["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
        story.create_pod(pod).await?;
        story
            .wait_for("never", "to be told about its image", PATIENCE, |pod: &Pod| {
                let statuses =
                    pod.status.as_ref().and_then(|status| status.container_statuses.clone());
                let state = statuses
                    .into_iter()
                    .flatten()
                    .find_map(|container| container.state?.waiting?.reason);
                if state.as_deref() == Some("ErrImageNeverPull") {
                    Ok(())
                } else {
                    Err(format!("{state:?}"))
                }
            })
            .await?;
        let waited =
            story.wait_for("never", "to run", Duration::from_millis(500), |pod: &Pod| match phase(
                pod,
            ) {
                "Running" => Ok(()),
                other => Err(format!("it is {other}")),
            });
        let error = format!("{:#}", waited.await.expect_err("it runs"));
        for part in ["Pod never to run", "it is Pending", "ErrImageNeverPull", "event never"] {
            ensure!(error.contains(part), "{part:?} is not in: {error}");
        }
        Ok(())
    })
    .await
}

/// What the one who asks experiences, as its shell tells it.
const ANSWERED: &str = "here\nended with 0\n";
const TIMED_OUT: &str = "\nended with 143\n";

/// One that serves, one that asks; and where to ask.
async fn two_pods(story: &Story) -> Result<(Pod, String)> {
    story.image(catalog::BUSYBOX).await?;
    story.create_pod(pods::web("server", "here")).await?;
    story.create_pod(pods::restricted("asker", catalog::BUSYBOX, &["sleep", "3600"])).await?;
    let server = story.pod_is_ready("server").await?;
    story.pod_is_ready("asker").await?;
    let address =
        server.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default();
    ensure!(!address.is_empty(), "{} has no address", server.name_any());
    Ok((server, address))
}

/// Asks once. Silence is a question that times out: a refusal would be an answer.
async fn hears(story: &Story, address: &str, expected: &str) -> Result<()> {
    let question = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 3 nc {address} 8000");
    let command =
        format!("page=$({question}); code=$?; echo \"$page\" | tail -n 1; echo ended with $code");
    let heard = story.exec("asker", &["sh", "-c", &command]).await?;
    ensure!(heard == expected, "expected {expected:?}, heard {heard:?}");
    Ok(())
}
