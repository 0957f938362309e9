//! Volumes have a real size, and the S3 server is a real one.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use quorate_harness::waiting::PATIENCE;
use quorate_harness::{Disturbs, Story, catalog, pods, tell};
use serde_json::json;

/// More than the volume has at first, less than it has when it has grown.
const FILL: [&str; 5] = ["dd", "if=/dev/zero", "of=/data/fill", "bs=1M", "count=400"];

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_is_bound_fills_up_grows_under_its_pod_and_is_freed() -> Result<()> {
    tell("volume", Disturbs::Nothing, async |story| {
        story.image(catalog::BUSYBOX).await?;
        claim(story, "data", "320Mi").await?;
        let mut pod = pods::restricted("writer", catalog::BUSYBOX, &["sleep", "3600"]);
        let source = json!({ "persistentVolumeClaim": { "claimName": "data" } });
        pods::with_volume(&mut pod, "data", "/data", &source);
        story.create_pod(pod).await?;
        story.pod_is_ready("writer").await?;
        let volume = bound_volume(story, "data").await?;

        let full = story.exec("writer", &FILL).await.expect_err("it took more than it has");
        ensure!(format!("{full:#}").contains("No space left on device"), "{full:#}");
        // While the pod runs and the volume is mounted.
        grow(story, "data", "640Mi", 640 << 20).await?;
        story.exec("writer", &FILL).await?;

        story.kubectl(&["delete", "pod/writer", "pvc/data", "--grace-period=1"]).await?;
        is_freed(story, &volume).await
    })
    .await
}

async fn grow(story: &Story, claim: &str, size: &str, bytes: u64) -> Result<()> {
    let larger = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    let claims = story.api::<PersistentVolumeClaim>();
    claims.patch(claim, &PatchParams::default(), &Patch::Merge(larger)).await?;
    let reports_it = |claim: &PersistentVolumeClaim| {
        let capacity =
            claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
        match capacity {
            Some(now) if now.0 == size || now.0 == bytes.to_string() => Ok(()),
            other => Err(format!("it reports {other:?}")),
        }
    };
    story.wait_for(claim, "to report its new size", Duration::from_mins(2), reports_it).await
}

/// The object, the device and the file are gone.
async fn is_freed(story: &Story, volume: &str) -> Result<()> {
    let volumes = Api::<PersistentVolume>::all(story.client.clone());
    let behind_it = story.places.volumes().join(format!("{volume}.img"));
    let is_attached = || {
        let blocks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut files = blocks.filter_map(|block| {
            std::fs::read_to_string(block.path().join("loop/backing_file")).ok()
        });
        files.any(|file| file.contains(volume))
    };
    story
        .wait_until("the volume to be freed", PATIENCE, async || {
            let object = volumes.get_opt(volume).await.map_err(|error| error.to_string())?;
            match (object.is_some(), behind_it.exists(), is_attached()) {
                (false, false, false) => Ok(()),
                (object, file, device) => {
                    Err(format!("object: {object}, file: {file}, device: {device}"))
                }
            }
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_s3_server_takes_a_multi_part_upload_over_tls_from_a_pod() -> Result<()> {
    tell("s3", Disturbs::Nothing, async |story| {
        let s3 = story.s3().await?;
        story.image(catalog::PROBE).await?;
        // By Secret: the audit log keeps what a pod's own text says, but nothing of a Secret.
        for (name, secret) in [("friend", s3.secret.as_str()), ("stranger", "not the secret")] {
            let access = format!("--from-literal=S3_ACCESS_KEY={}", s3.access);
            let secret = format!("--from-literal=S3_SECRET_KEY={secret}");
            story.kubectl(&["create", "secret", "generic", name, &access, &secret]).await?;
        }
        let ca = format!("--from-literal=ca.crt={}", s3.ca);
        story.kubectl(&["create", "configmap", "s3-ca", &ca]).await?;
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
        story.create_pod(upload("friend")).await?;
        story.pod_succeeds("friend", Duration::from_secs(90)).await?;
        let said = story.kubectl(&["logs", "friend"]).await?;
        ensure!(said == "15728640 bytes in 3 parts\n", "{said:?}");

        story.create_pod(upload("stranger")).await?;
        let refused = story.pod_succeeds("stranger", Duration::from_secs(90)).await;
        let refused = format!("{:#}", refused.expect_err("a stranger was let in"));
        ensure!(refused.contains("SignatureDoesNotMatch"), "{refused}");
        Ok(())
    })
    .await
}

async fn claim(story: &Story, name: &str, size: &str) -> Result<()> {
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": size } } },
    }))?;
    story.api::<PersistentVolumeClaim>().create(&PostParams::default(), &claim).await?;
    Ok(())
}

async fn bound_volume(story: &Story, name: &str) -> Result<String> {
    story
        .wait_for(name, "to be bound", PATIENCE, |claim: &PersistentVolumeClaim| {
            let bound = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone());
            bound.ok_or_else(|| "it has no volume".to_owned())
        })
        .await
}
