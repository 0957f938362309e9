//! Pods find each other: by address, by name, through Services.

use anyhow::Result;
use k8s_openapi::api::core::v1::Service;
use kube::api::PostParams;
use quorate_harness::waiting::PATIENCE;
use quorate_harness::{Disturbs, Story, catalog, pods, tell};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_finds_another_by_the_name_of_its_service() -> Result<()> {
    tell("dns", Disturbs::Nothing, async |story| {
        story.image(catalog::BUSYBOX).await?;
        make_service(story, "web", 8000).await?;
        story.create_pod(pods::web("web", "found")).await?;
        story.create_pod(pods::restricted("asker", catalog::BUSYBOX, &["sleep", "3600"])).await?;
        story.pod_is_ready("web").await?;
        story.pod_is_ready("asker").await?;

        let full = format!("web.{}.svc.cluster.local", story.namespace);
        // From another pod by both names, and from the pod itself through its own Service.
        for (asker, host) in [("asker", "web"), ("asker", full.as_str()), ("web", "web")] {
            // A name that was asked for too early stays unknown for the name server's negative TTL.
            story
                .wait_until(&format!("an answer of {host} in {asker}"), PATIENCE, async || {
                    match story.exec(asker, &["sh", "-c", &get(host)]).await {
                        Ok(page) if page.ends_with("found\n") => Ok(()),
                        Ok(page) => Err(format!("the page is {page:?}")),
                        Err(error) => Err(format!("{error:#}")),
                    }
                })
                .await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_endpoints_refuses_at_once() -> Result<()> {
    tell("no-endpoints", Disturbs::Nothing, async |story| {
        story.image(catalog::BUSYBOX).await?;
        make_service(story, "nobody", 8000).await?;
        story.create_pod(pods::restricted("asker", catalog::BUSYBOX, &["sleep", "3600"])).await?;
        story.pod_is_ready("asker").await?;
        story
            .wait_until("a refusal", PATIENCE, async || {
                let asked = story.exec("asker", &["sh", "-c", &get("nobody")]).await;
                match asked {
                    Ok(page) => Err(format!("somebody answered: {page}")),
                    Err(error) if format!("{error:#}").contains("refused") => Ok(()),
                    Err(error) => Err(format!("{error:#}")),
                }
            })
            .await
    })
    .await
}

/// Asks by hand: Debian's static busybox has a wget that crashes on names.
fn get(host: &str) -> String {
    format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 nc {host} 8000")
}

async fn make_service(story: &Story, name: &str, port: u16) -> Result<()> {
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "selector": { "app": name }, "ports": [{ "port": port }] },
    }))?;
    story.api::<Service>().create(&PostParams::default(), &service).await?;
    Ok(())
}
