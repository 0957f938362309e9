//! An EtcdCluster bootstraps in a restricted namespace, has the documented objects, and serves
//! clients that use its client Secret.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use quorate::api::names;
use quorate_harness::etcd::MemberList;
use quorate_harness::etcd_cluster::{Cluster, small_spec};
use quorate_harness::{Isolation, TestContext, catalog, pods};
use serde_json::json;

use super::{CREATE_TIMEOUT, STATUS_TIMEOUT, monitored, with_operator, writes_continue};

const CLIENT_POD_TIMEOUT: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn three_members_bootstrap_with_documented_objects_and_serve_a_client() -> Result<()> {
    with_operator("etcd-bootstrap", Isolation::Parallel, async |ctx| {
        bootstraps_and_serves(ctx, "main", 3, "3.6.16").await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn clusters_of_1_3_and_5_members_bootstrap_in_each_minor_version() -> Result<()> {
    with_operator("etcd-sizes", Isolation::Parallel, async |ctx| {
        for version in ["3.5.35", "3.6.16", "3.7.3"] {
            for replicas in [1, 3, 5] {
                let name = format!("e{}-{replicas}", version.replace('.', "-"));
                let result = bootstraps_and_serves(ctx, &name, replicas, version).await;
                result.with_context(|| format!("{replicas} members of {version}"))?;
                ctx.cluster(&name).delete().await?;
            }
        }
        Ok(())
    })
    .await
}

async fn bootstraps_and_serves(
    ctx: &TestContext,
    name: &str,
    replicas: i32,
    version: &str,
) -> Result<()> {
    ctx.image(&catalog::etcd_name(version)).await?;
    let spec = small_spec(replicas, &json!({"version": version, "deletionPolicy": "Delete"}));
    let cluster = ctx.create_cluster(name, &spec).await?;
    let mut list = None;
    monitored(&cluster, async |monitors| {
        list = Some(cluster.wait_healthy(ctx, usize::try_from(replicas)?, CREATE_TIMEOUT).await?);
        // A single member bootstraps faster than the first invariant check.
        writes_continue(ctx, monitors).await
    })
    .await?;
    let list = list.context("no member is listed")?;
    has_documented_objects(ctx, &cluster, &list, version).await?;
    a_client_writes_and_reads(ctx, &cluster, version).await
}

async fn has_documented_objects(
    ctx: &TestContext,
    cluster: &Cluster,
    list: &MemberList,
    version: &str,
) -> Result<()> {
    for member in &list.members {
        has_member_objects(ctx, cluster, &member.name).await?;
    }
    let name = &cluster.name;
    let peers = ctx.api::<Service>().get(name).await?.spec.unwrap_or_default();
    ensure!(peers.cluster_ip.as_deref() == Some("None"), "{name} is not headless");
    ensure!(
        peers.publish_not_ready_addresses == Some(true),
        "addresses of unready members are not published"
    );
    let clients = ctx.api::<Service>().get(&names::client_service(name)).await?;
    let ports = clients.spec.unwrap_or_default().ports.unwrap_or_default();
    ensure!(
        ports.iter().any(|entry| entry.port == i32::from(names::ETCD_CLIENT_PORT)),
        "{ports:?}"
    );
    let voters = i32::try_from(list.members.len())?;
    pdb_counts_voters(ctx, name, voters).await?;
    ctx.kubectl(&["get", "secret", &names::ca_secret(name)]).await?;

    let wait = ["wait", "--for=condition=Ready", "--timeout=5s"];
    ctx.kubectl(&[&wait[..], &[&format!("etcd/{name}")]].concat()).await?;
    let object = cluster.get().await?;
    let status = &object["status"];
    let id = u64::from_str_radix(status["clusterID"].as_str().unwrap_or_default(), 16);
    ensure!(id == Ok(list.cluster), "clusterID is {}", status["clusterID"]);
    ensure!(status["currentVersion"] == version, "{}", status["currentVersion"]);
    ensure!(status["serviceName"] == names::client_service(name), "{}", status["serviceName"]);
    ensure!(status["binding"]["name"] == names::client_secret(name), "{}", status["binding"]);
    let leader = status["leader"].as_str().unwrap_or_default();
    ensure!(list.id_of(leader).is_some(), "the leader {leader:?} is not a member");
    Ok(())
}

async fn has_member_objects(ctx: &TestContext, cluster: &Cluster, member: &str) -> Result<()> {
    let suffix = member.strip_prefix(&format!("{}-", cluster.name)).unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    ensure!(suffix.len() == 5 && suffix.chars().all(plain), "unexpected member name {member}");
    let pod = ctx.api::<Pod>().get(member).await.context("the pod")?;
    let expected = [
        (names::CLUSTER_LABEL, cluster.name.as_str()),
        (names::MEMBER_LABEL, member),
        (names::ROLE_LABEL, names::VOTER),
        ("app", "etcd"),
        ("etcd_cluster", cluster.name.as_str()),
    ];
    for (label, value) in expected {
        let found = pod.labels().get(label).map(String::as_str);
        ensure!(found == Some(value), "the pod of {member} has {label}={found:?}");
    }
    ctx.api::<PersistentVolumeClaim>().get(member).await.context("the PVC")?;
    ctx.api::<Secret>().get(&names::member_secret(member)).await.context("the certificates")?;
    ctx.kubectl(&["get", "etcdmember", member]).await.context("the EtcdMember")?;
    Ok(())
}

/// With three or more voters the PDB allows one disruption; with one none.
async fn pdb_counts_voters(ctx: &TestContext, name: &str, voters: i32) -> Result<()> {
    let allowed = i32::from(voters > 2);
    ctx.wait_for(name, "to count the voters", STATUS_TIMEOUT, |pdb: &PodDisruptionBudget| {
        let status = pdb.status.clone().unwrap_or_default();
        let right = status.current_healthy == voters && status.disruptions_allowed >= allowed;
        if right { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await
}

/// From a user's pod, with nothing but the client Secret.
async fn a_client_writes_and_reads(
    ctx: &TestContext,
    cluster: &Cluster,
    version: &str,
) -> Result<()> {
    let secret = ctx.api::<Secret>().get(&names::client_secret(&cluster.name)).await?;
    let secret: BTreeMap<String, String> = secret
        .data
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into_owned()))
        .collect();
    let keys = "type provider host port uri endpoints ca.crt tls.crt tls.key";
    for key in keys.split(' ') {
        ensure!(secret.get(key).is_some_and(|value| !value.is_empty()), "the Secret has no {key}");
    }
    let endpoints = secret.get("endpoints").cloned().unwrap_or_default();
    ensure!(endpoints.starts_with("https://"), "endpoints is {endpoints:?}");
    for (number, args) in
        [&["put", "greeting", "hello"][..], &["get", "greeting"]].iter().enumerate()
    {
        let name = format!("{}-client-{number}", cluster.name);
        let pod = etcdctl(&name, version, &names::client_secret(&cluster.name), &endpoints, args);
        ctx.create_pod(pod).await?;
        ctx.wait_pod_succeeded(&name, CLIENT_POD_TIMEOUT).await?;
    }
    let output = ctx.kubectl(&["logs", &format!("{}-client-1", cluster.name)]).await?;
    ensure!(output == "greeting\nhello\n", "a client read {output:?}");
    Ok(())
}

fn etcdctl(
    name: &str,
    version: &str,
    secret: &str,
    endpoints: &str,
    args: &[&str],
) -> serde_json::Value {
    let endpoints = format!("--endpoints={endpoints}");
    let mut command = vec!["/usr/local/bin/etcdctl", &endpoints];
    command.extend(["--cacert=/secret/ca.crt", "--cert=/secret/tls.crt", "--key=/secret/tls.key"]);
    command.extend(args);
    let mut pod = pods::restricted(name, &catalog::etcd_name(version), &command);
    let source = json!({"secret": {"secretName": secret}});
    pods::with_volume(&mut pod, "secret", "/secret", &source);
    pod
}
