//! Storage of the local cluster: volumes with an enforced size, and an S3 server.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use quorate_harness::waiting::DEFAULT_TIMEOUT;
use quorate_harness::{Isolation, TestContext, catalog, pods, run};
use serde_json::json;

/// More than the initial size of the volume, less than its size after the expansion.
const FILL: [&str; 5] = ["dd", "if=/dev/zero", "of=/data/fill", "bs=1M", "count=400"];

#[tokio::test(flavor = "multi_thread")]
async fn volume_is_bound_filled_expanded_online_and_freed() -> Result<()> {
    run("volume", Isolation::Parallel, async |ctx| {
        ctx.image(catalog::BUSYBOX).await?;
        claim(ctx, "data", "320Mi").await?;
        let mut pod = pods::restricted("writer", catalog::BUSYBOX, &["sleep", "3600"]);
        let source = json!({ "persistentVolumeClaim": { "claimName": "data" } });
        pods::with_volume(&mut pod, "data", "/data", &source);
        ctx.create_pod(pod).await?;
        ctx.wait_pod_ready("writer").await?;
        let volume = bound_volume(ctx, "data").await?;

        let full =
            ctx.exec("writer", &FILL).await.expect_err("more was written than the volume has");
        ensure!(format!("{full:#}").contains("No space left on device"), "{full:#}");
        // While the pod runs and the volume is mounted.
        expand(ctx, "data", "640Mi", 640 << 20).await?;
        ctx.exec("writer", &FILL).await?;

        ctx.kubectl(&["delete", "pod/writer", "pvc/data", "--grace-period=1"]).await?;
        wait_freed(ctx, &volume).await
    })
    .await
}

async fn expand(ctx: &TestContext, claim: &str, size: &str, bytes: u64) -> Result<()> {
    let size_patch = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    let claims = ctx.api::<PersistentVolumeClaim>();
    claims.patch(claim, &PatchParams::default(), &Patch::Merge(size_patch)).await?;
    let is_expanded = |claim: &PersistentVolumeClaim| {
        let capacity =
            claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
        match capacity {
            Some(now) if now.0 == size || now.0 == bytes.to_string() => Ok(()),
            other => Err(format!("the capacity is {other:?}")),
        }
    };
    ctx.wait_for(claim, "to report its new size", Duration::from_mins(2), is_expanded).await
}

/// Waits until the object, the device and the file are deleted.
async fn wait_freed(ctx: &TestContext, volume: &str) -> Result<()> {
    let volumes = Api::<PersistentVolume>::all(ctx.client.clone());
    let backing_file = ctx.paths.volumes().join(format!("{volume}.img"));
    let is_attached = || {
        let blocks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut files = blocks.filter_map(|block| {
            std::fs::read_to_string(block.path().join("loop/backing_file")).ok()
        });
        files.any(|file| file.contains(volume))
    };
    ctx.wait_until("the volume to be freed", DEFAULT_TIMEOUT, async || {
        let object = volumes.get_opt(volume).await.map_err(|error| error.to_string())?;
        match (object.is_some(), backing_file.exists(), is_attached()) {
            (false, false, false) => Ok(()),
            (object, file, device) => {
                Err(format!("object: {object}, file: {file}, device: {device}"))
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_server_accepts_a_multipart_upload_over_tls_from_a_pod() -> Result<()> {
    run("s3", Isolation::Parallel, async |ctx| {
        let s3 = ctx.s3().await?;
        ctx.image(catalog::PROBE).await?;
        // By Secret: the audit log contains the spec of a pod, but not the data of a Secret.
        for (name, secret) in [("valid", s3.secret.as_str()), ("invalid", "not the secret")] {
            let access = format!("--from-literal=S3_ACCESS_KEY={}", s3.access);
            let secret = format!("--from-literal=S3_SECRET_KEY={secret}");
            ctx.kubectl(&["create", "secret", "generic", name, &access, &secret]).await?;
        }
        let ca = format!("--from-literal=ca.crt={}", s3.ca);
        ctx.kubectl(&["create", "configmap", "s3-ca", &ca]).await?;
        let upload = |name: &str| {
            let endpoint = format!("--endpoint={}", s3.endpoint);
            let bucket = format!("--bucket={}", s3.bucket);
            let command = ["/probe", "s3", &endpoint, &bucket, "--ca=/ca/ca.crt"];
            let mut pod = pods::restricted(name, catalog::PROBE, &command);
            pod["spec"]["containers"][0]["envFrom"] = json!([{ "secretRef": { "name": name } }]);
            let source = json!({ "configMap": { "name": "s3-ca" } });
            pods::with_volume(&mut pod, "ca", "/ca", &source);
            pod
        };
        ctx.create_pod(upload("valid")).await?;
        ctx.wait_pod_succeeded("valid", Duration::from_secs(90)).await?;
        let output = ctx.kubectl(&["logs", "valid"]).await?;
        ensure!(output == "15728640 bytes in 3 parts\n", "{output:?}");

        ctx.create_pod(upload("invalid")).await?;
        let denied = ctx.wait_pod_succeeded("invalid", Duration::from_secs(90)).await;
        let denied = format!("{:#}", denied.expect_err("invalid credentials were accepted"));
        ensure!(denied.contains("SignatureDoesNotMatch"), "{denied}");
        Ok(())
    })
    .await
}

async fn claim(ctx: &TestContext, name: &str, size: &str) -> Result<()> {
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": size } } },
    }))?;
    ctx.api::<PersistentVolumeClaim>().create(&PostParams::default(), &claim).await?;
    Ok(())
}

async fn bound_volume(ctx: &TestContext, name: &str) -> Result<String> {
    ctx.wait_for(name, "to be bound", DEFAULT_TIMEOUT, |claim: &PersistentVolumeClaim| {
        let bound = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone());
        bound.ok_or_else(|| "no volume is bound".to_owned())
    })
    .await
}
