//! An EtcdCluster is applied, comes up in a restricted namespace, looks as it is documented, and serves whoever has
//! its client Secret.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use quorate::api::names;
use quorate_harness::etcd::Listed;
use quorate_harness::etcd_cluster::{Cluster, small};
use quorate_harness::{Disturbs, Story, catalog, pods};
use serde_json::json;

use super::{COMES, SAYS, watched, with_operator, writes_go_on};

const RUNS: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn three_members_come_up_look_as_documented_and_serve_a_client() -> Result<()> {
    with_operator("etcd-install", Disturbs::Nothing, async |story| {
        comes_up_and_serves(story, "main", 3, "3.6.16").await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn one_three_or_five_members_of_each_minor_release_come_up_and_serve() -> Result<()> {
    with_operator("etcd-sizes", Disturbs::Nothing, async |story| {
        for version in ["3.5.35", "3.6.16", "3.7.3"] {
            for replicas in [1, 3, 5] {
                let name = format!("e{}-{replicas}", version.replace('.', "-"));
                let told = comes_up_and_serves(story, &name, replicas, version).await;
                told.with_context(|| format!("{replicas} members of {version}"))?;
                story.cluster(&name).delete().await?;
            }
        }
        Ok(())
    })
    .await
}

async fn comes_up_and_serves(
    story: &Story,
    name: &str,
    replicas: i32,
    version: &str,
) -> Result<()> {
    story.image(&catalog::etcd_name(version)).await?;
    let spec = small(replicas, &json!({"version": version, "deletionPolicy": "Delete"}));
    let cluster = story.make_cluster(name, &spec).await?;
    let mut listed = None;
    watched(&cluster, async |witnesses| {
        listed = Some(cluster.comes(story, usize::try_from(replicas)?, COMES).await?);
        // One member comes faster than a watchman looks.
        writes_go_on(story, witnesses).await
    })
    .await?;
    let listed = listed.context("nobody is listed")?;
    looks_as_documented(story, &cluster, &listed, version).await?;
    a_client_writes_and_reads(story, &cluster, version).await
}

async fn looks_as_documented(
    story: &Story,
    cluster: &Cluster,
    listed: &Listed,
    version: &str,
) -> Result<()> {
    for member in &listed.members {
        member_looks_right(story, cluster, &member.name).await?;
    }
    let name = &cluster.name;
    let peers = story.api::<Service>().get(name).await?.spec.unwrap_or_default();
    ensure!(peers.cluster_ip.as_deref() == Some("None"), "{name} is not headless");
    ensure!(peers.publish_not_ready_addresses == Some(true), "members cannot find each other");
    let clients = story.api::<Service>().get(&names::client_service(name)).await?;
    let ports = clients.spec.unwrap_or_default().ports.unwrap_or_default();
    ensure!(ports.iter().any(|it| it.port == i32::from(names::ETCD_CLIENT_PORT)), "{ports:?}");
    let voters = i32::try_from(listed.members.len())?;
    budget_counts(story, name, voters).await?;
    story.kubectl(&["get", "secret", &names::ca_secret(name)]).await?;

    let wait = ["wait", "--for=condition=Ready", "--timeout=5s"];
    story.kubectl(&[&wait[..], &[&format!("etcd/{name}")]].concat()).await?;
    let object = cluster.look().await?;
    let status = &object["status"];
    let id = u64::from_str_radix(status["clusterID"].as_str().unwrap_or_default(), 16);
    ensure!(id == Ok(listed.cluster), "clusterID is {}", status["clusterID"]);
    ensure!(status["currentVersion"] == version, "{}", status["currentVersion"]);
    ensure!(status["serviceName"] == names::client_service(name), "{}", status["serviceName"]);
    ensure!(status["binding"]["name"] == names::client_secret(name), "{}", status["binding"]);
    let leader = status["leader"].as_str().unwrap_or_default();
    ensure!(listed.id_of(leader).is_some(), "{leader:?} leads, which is no member");
    Ok(())
}

async fn member_looks_right(story: &Story, cluster: &Cluster, member: &str) -> Result<()> {
    let suffix = member.strip_prefix(&format!("{}-", cluster.name)).unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    ensure!(suffix.len() == 5 && suffix.chars().all(plain), "a member is called {member}");
    let pod = story.api::<Pod>().get(member).await.context("a pod of its name")?;
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
    story.api::<PersistentVolumeClaim>().get(member).await.context("a volume of its name")?;
    story.api::<Secret>().get(&names::member_secret(member)).await.context("its certificates")?;
    story.kubectl(&["get", "etcdmember", member]).await.context("an EtcdMember of its name")?;
    Ok(())
}

/// Of three or more voters one may be away; of one none.
async fn budget_counts(story: &Story, name: &str, voters: i32) -> Result<()> {
    let allowed = i32::from(voters > 2);
    story
        .wait_for(name, "to count the voters", SAYS, |budget: &PodDisruptionBudget| {
            let status = budget.status.clone().unwrap_or_default();
            let right = status.current_healthy == voters && status.disruptions_allowed >= allowed;
            if right { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await
}

/// From a pod of the user's, with nothing but the Secret.
async fn a_client_writes_and_reads(story: &Story, cluster: &Cluster, version: &str) -> Result<()> {
    let secret = story.api::<Secret>().get(&names::client_secret(&cluster.name)).await?;
    let secret: BTreeMap<String, String> = secret
        .data
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into_owned()))
        .collect();
    let keys = "type provider host port uri endpoints ca.crt tls.crt tls.key";
    for key in keys.split(' ') {
        ensure!(secret.get(key).is_some_and(|value| !value.is_empty()), "it has no {key}");
    }
    let endpoints = secret.get("endpoints").cloned().unwrap_or_default();
    ensure!(endpoints.starts_with("https://"), "endpoints is {endpoints:?}");
    for (number, words) in
        [&["put", "greeting", "hello"][..], &["get", "greeting"]].iter().enumerate()
    {
        let name = format!("{}-client-{number}", cluster.name);
        let pod = etcdctl(&name, version, &names::client_secret(&cluster.name), &endpoints, words);
        story.create_pod(pod).await?;
        story.pod_succeeds(&name, RUNS).await?;
    }
    let said = story.kubectl(&["logs", &format!("{}-client-1", cluster.name)]).await?;
    ensure!(said == "greeting\nhello\n", "a client read {said:?}");
    Ok(())
}

fn etcdctl(
    name: &str,
    version: &str,
    secret: &str,
    endpoints: &str,
    words: &[&str],
) -> serde_json::Value {
    let endpoints = format!("--endpoints={endpoints}");
    let mut command = vec!["/usr/local/bin/etcdctl", &endpoints];
    command.extend(["--cacert=/secret/ca.crt", "--cert=/secret/tls.crt", "--key=/secret/tls.key"]);
    command.extend(words);
    let mut pod = pods::restricted(name, &catalog::etcd_name(version), &command);
    let source = json!({"secret": {"secretName": secret}});
    pods::with_volume(&mut pod, "secret", "/secret", &source);
    pod
}
