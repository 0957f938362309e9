//! Every image runs as a pod under the `restricted` Pod Security standard, under its public name.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use quorate_cluster::settings::{COREDNS_VERSION, ETCD_VERSIONS};
use quorate_harness::{Disturbs, catalog, pods, tell};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn each_etcd_image_brings_its_three_programs_in_its_version() -> Result<()> {
    tell("etcd-images", Disturbs::Nothing, async |story| {
        for version in ETCD_VERSIONS {
            let image = catalog::etcd_name(version);
            story.image(&image).await?;
            for (program, flag) in
                [("etcd", "--version"), ("etcdctl", "version"), ("etcdutl", "version")]
            {
                let name = format!("{program}-{}", version.replace('.', "-"));
                let path = format!("/usr/local/bin/{program}");
                story.create_pod(pods::restricted(&name, &image, &[&path, flag])).await?;
                story.pod_succeeds(&name, Duration::from_mins(1)).await?;
                let said = story.kubectl(&["logs", &name]).await?;
                ensure!(said.contains(version), "{program} of {image} says {said:?}");
            }
        }
        Ok(())
    })
    .await
}

/// The flags that each newest release knows, as they are recorded. A unit test renders nothing that is not among them.
const FLAGS: [(&str, &str); 3] = [
    ("3.5.35", include_str!("../etcd_flags/3.5.35.txt")),
    ("3.6.16", include_str!("../etcd_flags/3.6.16.txt")),
    ("3.7.3", include_str!("../etcd_flags/3.7.3.txt")),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_etcd_knows_the_flags_that_are_recorded_of_it() -> Result<()> {
    tell("etcd-flags", Disturbs::Nothing, async |story| {
        for (version, recorded) in FLAGS {
            let image = catalog::etcd_name(version);
            story.image(&image).await?;
            let name = format!("help-{}", version.replace('.', "-"));
            let command = ["/usr/local/bin/etcd", "--help"];
            story.create_pod(pods::restricted(&name, &image, &command)).await?;
            story.pod_succeeds(&name, Duration::from_mins(1)).await?;
            let said = story.kubectl(&["logs", &name]).await?;
            let flag = |line: &str| {
                let word = line.trim_start().strip_prefix("--")?;
                let end = |it: char| !it.is_ascii_alphanumeric() && it != '-';
                word.split(end).next().map(str::to_owned)
            };
            let known: BTreeSet<String> = said.lines().filter_map(flag).collect();
            let recorded: BTreeSet<String> = recorded.lines().map(str::to_owned).collect();
            let differ: Vec<_> = known.symmetric_difference(&recorded).collect();
            ensure!(differ.is_empty(), "etcd {version}: {differ:?} differ from what is recorded");
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_pod_serves_on_the_default_image() -> Result<()> {
    tell("etcd-pod", Disturbs::Nothing, async |story| {
        let image = catalog::etcd_name("3.6.16");
        story.image(&image).await?;
        // As a sample would write it: no command, the image's own.
        let mut pod = pods::restricted("etcd", &image, &[]);
        pod["spec"]["containers"][0]["command"] = json!(null);
        pod["spec"]["containers"][0]["env"] = json!([{ "name": "ETCD_DATA_DIR", "value": "/data" }]);
        pods::with_volume(&mut pod, "data", "/data", &json!({ "emptyDir": {} }));
        pod["spec"]["containers"][0]["readinessProbe"] =
            json!({ "exec": { "command": ["/usr/local/bin/etcdctl", "endpoint", "health"] }, "periodSeconds": 1 });
        story.create_pod(pod).await?;
        story.pod_is_ready("etcd").await?;
        story.exec("etcd", &["etcdctl", "put", "key", "value"]).await?;
        let read = story.exec("etcd", &["etcdctl", "get", "--print-value-only", "key"]).await?;
        ensure!(read == "value\n", "{read:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_image_is_a_static_program_that_runs_as_nobody() -> Result<()> {
    tell("quorate-image", Disturbs::Nothing, async |story| {
        story.image(catalog::QUORATE).await?;
        // No user is named by the pod: the image itself must not be root, or the kubelet refuses it.
        let mut pod =
            pods::restricted("version", catalog::QUORATE, &["/usr/local/bin/quorate", "version"]);
        pod["spec"]["securityContext"]["runAsUser"] = json!(null);
        pod["spec"]["securityContext"]["runAsGroup"] = json!(null);
        story.create_pod(pod).await?;
        story.pod_succeeds("version", Duration::from_mins(1)).await?;
        let said = story.kubectl(&["logs", "version"]).await?;
        ensure!(said.contains(env!("CARGO_PKG_VERSION")), "{said:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_images_of_the_cluster_itself_run_as_nobody_too() -> Result<()> {
    tell("other-images", Disturbs::Nothing, async |story| {
        for (name, image, command, expected) in [
            ("coredns", catalog::COREDNS, ["/coredns", "-version"], COREDNS_VERSION),
            ("versitygw", catalog::VERSITYGW, ["/usr/local/bin/versitygw", "--version"], "Version"),
            ("busybox", catalog::BUSYBOX, ["/bin/id", "-u"], "65532"),
            ("probe", catalog::PROBE, ["/probe", "--help"], "Upload an object"),
        ] {
            story.image(image).await?;
            story.create_pod(pods::restricted(name, image, &command)).await?;
            story.pod_succeeds(name, Duration::from_mins(1)).await?;
            let said = story.kubectl(&["logs", name]).await?;
            ensure!(said.contains(expected), "{image} says {said:?}");
        }
        Ok(())
    })
    .await
}
