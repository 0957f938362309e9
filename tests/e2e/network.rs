//! Pod networking: DNS names and Services.

use anyhow::Result;
use k8s_openapi::api::core::v1::Service;
use kube::api::PostParams;
use quorate_harness::waiting::DEFAULT_TIMEOUT;
use quorate_harness::{Isolation, TestContext, catalog, pods, run};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn pod_reaches_another_by_its_service_name() -> Result<()> {
    run("dns", Isolation::Parallel, async |ctx| {
        ctx.image(catalog::BUSYBOX).await?;
        create_service(ctx, "web", 8000).await?;
        ctx.create_pod(pods::web("web", "found")).await?;
        ctx.create_pod(pods::restricted("client", catalog::BUSYBOX, &["sleep", "3600"])).await?;
        ctx.wait_pod_ready("web").await?;
        ctx.wait_pod_ready("client").await?;

        let full = format!("web.{}.svc.cluster.local", ctx.namespace);
        // From another pod by both names, and from the pod itself through its own Service.
        for (client, host) in [("client", "web"), ("client", full.as_str()), ("web", "web")] {
            // A name that was resolved too early stays unknown for the DNS server's negative TTL.
            ctx.wait_until(
                &format!("a response of {host} in {client}"),
                DEFAULT_TIMEOUT,
                async || match ctx.exec(client, &["sh", "-c", &get(host)]).await {
                    Ok(page) if page.ends_with("found\n") => Ok(()),
                    Ok(page) => Err(format!("the page is {page:?}")),
                    Err(error) => Err(format!("{error:#}")),
                },
            )
            .await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn service_without_endpoints_refuses_connections() -> Result<()> {
    run("no-endpoints", Isolation::Parallel, async |ctx| {
        ctx.image(catalog::BUSYBOX).await?;
        create_service(ctx, "empty", 8000).await?;
        ctx.create_pod(pods::restricted("client", catalog::BUSYBOX, &["sleep", "3600"])).await?;
        ctx.wait_pod_ready("client").await?;
        ctx.wait_until("a refused connection", DEFAULT_TIMEOUT, async || {
            let response = ctx.exec("client", &["sh", "-c", &get("empty")]).await;
            match response {
                Ok(page) => Err(format!("a response: {page}")),
                Err(error) if format!("{error:#}").contains("refused") => Ok(()),
                Err(error) => Err(format!("{error:#}")),
            }
        })
        .await
    })
    .await
}

/// HTTP by hand: wget of Debian's static busybox crashes on names.
fn get(host: &str) -> String {
    format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 nc {host} 8000")
}

async fn create_service(ctx: &TestContext, name: &str, port: u16) -> Result<()> {
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "selector": { "app": name }, "ports": [{ "port": port }] },
    }))?;
    ctx.api::<Service>().create(&PostParams::default(), &service).await?;
    Ok(())
}
