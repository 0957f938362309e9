//! The faults of the harness: pausing a component or a pod and isolating a pod; each ends with its
//! guard.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::PostParams;
use quorate_cluster::components::scheduler;
use quorate_cluster::settings::NODE_NAME;
use quorate_harness::waiting::{DEFAULT_TIMEOUT, phase};
use quorate_harness::{Isolation, TestContext, catalog, pods, run};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn pod_is_pending_while_the_scheduler_is_paused() -> Result<()> {
    run("paused-component", Isolation::Serial, async |ctx| {
        ctx.image(catalog::BUSYBOX).await?;
        let paused = ctx.pause_component(scheduler::NAME)?;
        ctx.create_pod(pods::restricted("pending", catalog::BUSYBOX, &["sleep", "3600"])).await?;
        // Once a pod that needs no scheduler runs, the other would run, too.
        let mut placed = pods::restricted("placed", catalog::BUSYBOX, &["sleep", "3600"]);
        placed["spec"]["nodeName"] = json!(NODE_NAME);
        ctx.create_pod(placed).await?;
        ctx.wait_pod_ready("placed").await?;
        let pod = ctx.api::<Pod>().get("pending").await?;
        ensure!(phase(&pod) == "Pending", "the phase is {}", phase(&pod));
        ensure!(pod.spec.is_some_and(|spec| spec.node_name.is_none()), "the pod was scheduled");
        drop(paused);
        ctx.wait_pod_ready("pending").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_pod_does_not_respond_until_it_is_resumed() -> Result<()> {
    run("paused-pod", Isolation::Parallel, async |ctx| {
        let (server, address) = two_pods(ctx).await?;
        request(ctx, &address, RESPONSE).await?;
        let paused = ctx.pause_pod(&server)?;
        request(ctx, &address, TIMED_OUT).await?;
        drop(paused);
        request(ctx, &address, RESPONSE).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_pod_is_unreachable_until_it_is_connected_again() -> Result<()> {
    run("isolated-pod", Isolation::Parallel, async |ctx| {
        let (server, address) = two_pods(ctx).await?;
        request(ctx, &address, RESPONSE).await?;
        let isolated = ctx.isolate_pod(&server)?;
        request(ctx, &address, TIMED_OUT).await?;
        drop(isolated);
        request(ctx, &address, RESPONSE).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_objects_are_readable_from_the_control_planes_etcd() -> Result<()> {
    run("stored-bytes", Isolation::Parallel, async |ctx| {
        let note: ConfigMap = serde_json::from_value(
            json!({ "metadata": { "name": "note" }, "data": { "word": "sesame" } }),
        )?;
        ctx.api::<ConfigMap>().create(&PostParams::default(), &note).await?;
        let mut etcd = ctx.control_plane().await?;
        let prefix = format!("/registry/configmaps/{}/", ctx.namespace);
        let key = format!("{prefix}note");
        ensure!(etcd.keys(&prefix).await?.contains(&key), "{key} is missing");
        let bytes = etcd.get(&key).await?.unwrap_or_default();
        ensure!(String::from_utf8_lossy(&bytes).contains("sesame"), "{bytes:?}");
        ensure!(etcd.get(&format!("{prefix}nothing")).await?.is_none(), "a missing key was found");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_error_contains_the_expectation_and_the_last_observation() -> Result<()> {
    run("timeout", Isolation::Parallel, async |ctx| {
        let mut pod = pods::restricted("never", "nowhere/none:1", &["x"]);
        pod["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
        ctx.create_pod(pod).await?;
        ctx.wait_for("never", "to report its missing image", DEFAULT_TIMEOUT, |pod: &Pod| {
            let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.clone());
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
        let waited = ctx.wait_for("never", "to run", Duration::from_millis(500), |pod: &Pod| {
            match phase(pod) {
                "Running" => Ok(()),
                other => Err(format!("the phase is {other}")),
            }
        });
        let error = format!("{:#}", waited.await.expect_err("it runs"));
        for part in ["Pod never to run", "the phase is Pending", "ErrImageNeverPull", "event never"]
        {
            ensure!(error.contains(part), "{part:?} is not in: {error}");
        }
        Ok(())
    })
    .await
}

/// The output of a request in the client pod.
const RESPONSE: &str = "here\nended with 0\n";
const TIMED_OUT: &str = "\nended with 143\n";

/// A server pod with its IP, and a client pod.
async fn two_pods(ctx: &TestContext) -> Result<(Pod, String)> {
    ctx.image(catalog::BUSYBOX).await?;
    ctx.create_pod(pods::web("server", "here")).await?;
    ctx.create_pod(pods::restricted("client", catalog::BUSYBOX, &["sleep", "3600"])).await?;
    let server = ctx.wait_pod_ready("server").await?;
    ctx.wait_pod_ready("client").await?;
    let address =
        server.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default();
    ensure!(!address.is_empty(), "{} has no IP", server.name_any());
    Ok((server, address))
}

/// Sends one request. An unreachable server is a timeout: a refused connection would be a response.
async fn request(ctx: &TestContext, address: &str, expected: &str) -> Result<()> {
    let request = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 3 nc {address} 8000");
    let command =
        format!("page=$({request}); code=$?; echo \"$page\" | tail -n 1; echo ended with $code");
    let output = ctx.exec("client", &["sh", "-c", &command]).await?;
    ensure!(output == expected, "{output:?} instead of {expected:?}");
    Ok(())
}
