//! Every image runs under its public name as a pod under the `restricted` Pod Security standard.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use quorate_cluster::settings::{COREDNS_VERSION, ETCD_VERSIONS};
use quorate_harness::{Isolation, catalog, pods, run};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn each_etcd_image_contains_etcd_etcdctl_and_etcdutl_of_its_version() -> Result<()> {
    run("etcd-images", Isolation::Parallel, async |ctx| {
        for version in ETCD_VERSIONS {
            let image = catalog::etcd_name(version);
            ctx.image(&image).await?;
            for (program, flag) in
                [("etcd", "--version"), ("etcdctl", "version"), ("etcdutl", "version")]
            {
                let name = format!("{program}-{}", version.replace('.', "-"));
                let path = format!("/usr/local/bin/{program}");
                ctx.create_pod(pods::restricted(&name, &image, &[&path, flag])).await?;
                ctx.wait_pod_succeeded(&name, Duration::from_mins(1)).await?;
                let output = ctx.kubectl(&["logs", &name]).await?;
                ensure!(output.contains(version), "{program} of {image} prints {output:?}");
            }
        }
        Ok(())
    })
    .await
}

/// The recorded flags of the newest patch version of each minor. A unit test checks that no other
/// flag is rendered.
const FLAGS: [(&str, &str); 3] = [
    ("3.5.35", include_str!("../etcd_flags/3.5.35.txt")),
    ("3.6.16", include_str!("../etcd_flags/3.6.16.txt")),
    ("3.7.3", include_str!("../etcd_flags/3.7.3.txt")),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_etcd_version_has_exactly_the_recorded_flags() -> Result<()> {
    run("etcd-flags", Isolation::Parallel, async |ctx| {
        for (version, recorded) in FLAGS {
            let image = catalog::etcd_name(version);
            ctx.image(&image).await?;
            let name = format!("help-{}", version.replace('.', "-"));
            let command = ["/usr/local/bin/etcd", "--help"];
            ctx.create_pod(pods::restricted(&name, &image, &command)).await?;
            ctx.wait_pod_succeeded(&name, Duration::from_mins(1)).await?;
            let output = ctx.kubectl(&["logs", &name]).await?;
            let flag = |line: &str| {
                let flag = line.trim_start().strip_prefix("--")?;
                let end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
                flag.split(end).next().map(str::to_owned)
            };
            let known: BTreeSet<String> = output.lines().filter_map(flag).collect();
            let recorded: BTreeSet<String> = recorded.lines().map(str::to_owned).collect();
            let differ: Vec<_> = known.symmetric_difference(&recorded).collect();
            ensure!(differ.is_empty(), "etcd {version}: {differ:?} differ from the recorded flags");
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_pod_serves_with_the_default_image() -> Result<()> {
    run("etcd-pod", Isolation::Parallel, async |ctx| {
        let image = catalog::etcd_name("3.6.16");
        ctx.image(&image).await?;
        // As in a sample: the image's own command.
        let mut pod = pods::restricted("etcd", &image, &[]);
        pod["spec"]["containers"][0]["command"] = json!(null);
        pod["spec"]["containers"][0]["env"] = json!([{ "name": "ETCD_DATA_DIR", "value": "/data" }]);
        pods::with_volume(&mut pod, "data", "/data", &json!({ "emptyDir": {} }));
        pod["spec"]["containers"][0]["readinessProbe"] =
            json!({ "exec": { "command": ["/usr/local/bin/etcdctl", "endpoint", "health"] }, "periodSeconds": 1 });
        ctx.create_pod(pod).await?;
        ctx.wait_pod_ready("etcd").await?;
        ctx.exec("etcd", &["etcdctl", "put", "key", "value"]).await?;
        let read = ctx.exec("etcd", &["etcdctl", "get", "--print-value-only", "key"]).await?;
        ensure!(read == "value\n", "{read:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_image_is_a_static_binary_that_runs_as_non_root() -> Result<()> {
    run("quorate-image", Isolation::Parallel, async |ctx| {
        ctx.image(catalog::QUORATE).await?;
        // The pod sets no user: the image's own user must not be root, or the kubelet rejects it.
        let mut pod =
            pods::restricted("version", catalog::QUORATE, &["/usr/local/bin/quorate", "version"]);
        pod["spec"]["securityContext"]["runAsUser"] = json!(null);
        pod["spec"]["securityContext"]["runAsGroup"] = json!(null);
        ctx.create_pod(pod).await?;
        ctx.wait_pod_succeeded("version", Duration::from_mins(1)).await?;
        let output = ctx.kubectl(&["logs", "version"]).await?;
        ensure!(output.contains(env!("CARGO_PKG_VERSION")), "{output:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_the_local_cluster_run_as_non_root() -> Result<()> {
    run("other-images", Isolation::Parallel, async |ctx| {
        for (name, image, command, expected) in [
            ("coredns", catalog::COREDNS, ["/coredns", "-version"], COREDNS_VERSION),
            ("versitygw", catalog::VERSITYGW, ["/usr/local/bin/versitygw", "--version"], "Version"),
            ("busybox", catalog::BUSYBOX, ["/bin/id", "-u"], "65532"),
            ("probe", catalog::PROBE, ["/probe", "--help"], "Upload an object"),
        ] {
            ctx.image(image).await?;
            ctx.create_pod(pods::restricted(name, image, &command)).await?;
            ctx.wait_pod_succeeded(name, Duration::from_mins(1)).await?;
            let output = ctx.kubectl(&["logs", name]).await?;
            ensure!(output.contains(expected), "{image} prints {output:?}");
        }
        Ok(())
    })
    .await
}
