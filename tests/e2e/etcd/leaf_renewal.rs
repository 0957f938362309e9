//! Leaf certificates are renewed before they expire.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use quorate::api::names;
use quorate_harness::etcd::EtcdClient;
use quorate_harness::etcd_cluster::{Cluster, member_names};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{healthy_cluster, monitored, pods_recreated, with_operator, writes_continue};
use crate::installation::{set_operator_args, uninstall_if_present};

/// The shortest lifetime that the operator accepts: a kubelet takes up to two minutes to update a
/// Secret volume.
const LIFETIME: &str = "--etcd-leaf-lifetime=10m";
/// After this the first certificates have expired.
const EXPIRY_DELAY: Duration = Duration::from_mins(11);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn leaf_certificates_are_renewed_before_expiry_and_new_clients_always_connect() -> Result<()>
{
    with_operator("etcd-certificates", Isolation::Serial, async |ctx| {
        set_operator_args(ctx, &[LIFETIME]).await?;
        let result = renew(ctx).await;
        // The next test needs an operator with default arguments.
        let uninstalled = uninstall_if_present(ctx).await;
        result.and(uninstalled)
    })
    .await
}

async fn renew(ctx: &TestContext) -> Result<()> {
    let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
    monitored(&cluster, async |monitors| {
        let before = cluster.etcd.member_list().await?;
        let old = certificates(ctx, &cluster).await?;
        let started = Instant::now();
        // An open connection outlives its certificate, so each check uses a new client.
        while started.elapsed() < EXPIRY_DELAY {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let client = EtcdClient::of_cluster(&ctx.client, &cluster.namespace, &cluster.name);
            let healthy = client.healthy(3).await;
            healthy.with_context(|| format!("after {:.0?}", started.elapsed()))?;
        }
        let new = certificates(ctx, &cluster).await?;
        for (name, certificate) in &old {
            let now = new.iter().find(|(other, _)| other == name);
            ensure!(now.is_some_and(|(_, now)| now != certificate), "{name} was not renewed");
        }
        // The same among the members: each of them must be able to connect again.
        for member in member_names(&before) {
            let pod = cluster.pod(&member).await?.metadata.uid.unwrap_or_default();
            cluster.delete_pods(std::slice::from_ref(&member)).await?;
            pods_recreated(ctx, &cluster, &before, &[pod]).await?;
        }
        writes_continue(ctx, monitors).await
    })
    .await?;
    Ok(())
}

/// The leaf certificates in the Secrets of the cluster, by Secret name.
async fn certificates(ctx: &TestContext, cluster: &Cluster) -> Result<Vec<(String, Vec<Vec<u8>>)>> {
    let list = cluster.etcd.member_list().await?;
    let mut secrets: Vec<String> =
        member_names(&list).iter().map(|member| names::member_secret(member)).collect();
    secrets.push(names::client_secret(&cluster.name));
    let mut found = Vec::new();
    for name in secrets {
        let data = ctx.api::<Secret>().get(&name).await?.data.unwrap_or_default();
        let is_certificate = |key: &str| key.contains(".crt") && !key.contains("ca.");
        let all = data.into_iter().filter(|(key, _)| is_certificate(key));
        found.push((name, all.map(|(_, bytes)| bytes.0).collect()));
    }
    Ok(found)
}
