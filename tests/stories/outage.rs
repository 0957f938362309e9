//! What happens while nobody converts, and after: nothing is lost, everything goes on by itself.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use quorate_harness::{Disturbs, Story, audit, tell};
use serde_json::{Value, json};

use super::installed::{ACCOUNT, begun, ended, installed, leader, manifest, replicas};
use super::wire::created;

const DEFINITION: &str = "etcdclusters.etcd.appdelivery.cncf.io";
const SAMPLE: &str = "deploy/samples/etcdcluster-v1alpha1.yaml";
const NAME: &str = "example-etcd-cluster";
const DRAINS: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_only_the_replicas_can_read_wait_for_them_and_a_namespace_drains_by_itself()
-> Result<()> {
    tell("outage", Disturbs::Everything, async |story| {
        let other = Leaving::namespace(story).await?;
        let told = installed(story, async || outage(story, &other).await).await;
        let gone = other.gone(story).await;
        told.and(gone)
    })
    .await
}

async fn outage(story: &Story, other: &Leaving) -> Result<()> {
    stored_in(story, "v1alpha1").await?;
    let sample = format!("{}/{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
    for namespace in [&story.namespace, &other.0] {
        story.admin.run(&["-n", namespace, "apply", "--filename", &sample]).await?;
    }
    stored_in(story, "v1").await?;
    let mut etcd = story.control_plane().await?;
    let key = format!("/registry/etcd.appdelivery.cncf.io/etcdclusters/{}/{NAME}", story.namespace);
    let bytes = etcd.get(&key).await?.context("it is not stored")?;
    let stored: Value = serde_json::from_slice(&bytes)?;
    let api_version = stored.pointer("/apiVersion").and_then(Value::as_str).unwrap_or_default();
    ensure!(api_version.ends_with("/v1alpha1"), "it is stored in {api_version}");

    ended(story).await?;
    other.held_up(story).await?;
    // All start at once, with an object of ours that only they can read.
    begun(story).await?;
    leader(story).await?;
    let read = story.kubectl(&["get", "etcdclusters", NAME, "-o", "json"]).await?;
    let read: Value = serde_json::from_str(&read)?;
    ensure!(read.pointer("/spec/replicas") == Some(&json!(3)), "{read}");
    // Nobody does anything about the namespace.
    let gone = format!("namespace/{}", other.0);
    story.admin.run(&["wait", "--for=delete", &gone, "--timeout=120s"]).await.map(drop)
}

/// A namespace that is deleted while nobody can read what is in it.
struct Leaving(String);

impl Leaving {
    async fn namespace(story: &Story) -> Result<Self> {
        let name = format!("{}-leaves", story.namespace);
        story.admin.run(&["create", "namespace", &name]).await?;
        Ok(Self(name))
    }

    /// Deletes it, and sees that it says what it waits for.
    async fn held_up(&self, story: &Story) -> Result<()> {
        story.admin.run(&["delete", "namespace", &self.0, "--wait=false"]).await?;
        let namespaces = Api::<Namespace>::all(story.client.clone());
        let words = story
            .wait_until("the namespace to say what it waits for", DRAINS, async || {
                let found = namespaces.get(&self.0).await.map_err(|error| error.to_string())?;
                let all = found.status.and_then(|status| status.conditions).unwrap_or_default();
                let failure = all.into_iter().find(|condition| {
                    condition.type_ == "NamespaceDeletionContentFailure"
                        && condition.status == "True"
                });
                let failure = failure.ok_or_else(|| "it waits for nothing".to_owned())?;
                Ok(failure.message.unwrap_or_default())
            })
            .await?;
        ensure!(words.contains("conversion webhook"), "{words}");
        Ok(())
    }

    /// Deletes it, if it is still there.
    async fn gone(&self, story: &Story) -> Result<()> {
        let line = ["delete", "namespace", &self.0, "--ignore-not-found", "--timeout=120s"];
        story.admin.run(&line).await.map(drop)
    }
}

/// Changes the version that the definition stores.
async fn stored_in(story: &Story, version: &str) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let live = definitions.get(DEFINITION).await?;
    let changes: Vec<Value> = live
        .spec
        .versions
        .iter()
        .enumerate()
        .map(|(index, it)| {
            let path = format!("/spec/versions/{index}/storage");
            json!({"op": "replace", "path": path, "value": it.name == version})
        })
        .collect();
    let patch: json_patch::Patch = serde_json::from_value(json!(changes))?;
    let patch = Patch::<CustomResourceDefinition>::Json(patch);
    definitions.patch(DEFINITION, &PatchParams::default(), &patch).await?;
    // The apiserver takes some moments until it writes so.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_deleted_and_made_anew_is_trusted_again_and_nobody_crashes()
-> Result<()> {
    tell("definition", Disturbs::Everything, async |story| {
        installed(story, async || {
            story.admin.run(&["delete", "crd", DEFINITION]).await?;
            tokio::time::sleep(Duration::from_secs(10)).await;
            story.admin.run(&["apply", "--filename", &manifest()?]).await?;
            let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
            story
                .wait_until("the definition to be trusted again", DRAINS, async || {
                    let live =
                        definitions.get(DEFINITION).await.map_err(|error| error.to_string())?;
                    let webhook = live.spec.conversion.and_then(|it| it.webhook);
                    let bundle =
                        webhook.and_then(|it| it.client_config).and_then(|it| it.ca_bundle);
                    if bundle.is_some() { Ok(()) } else { Err("it has no bundle".to_owned()) }
                })
                .await?;
            let old = json!({
                "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
                "metadata": {"name": "new"}, "spec": {"size": 3, "version": "3.6.16"},
            });
            story
                .wait_until("objects to be taken again", DRAINS, async || {
                    let made = created(story, &old).await;
                    made.map_err(|error| format!("{error:#}"))
                })
                .await?;
            unbroken(story).await
        })
        .await
    })
    .await
}

/// No container of the operator was ever started twice.
async fn unbroken(story: &Story) -> Result<()> {
    for pod in replicas(story).await? {
        let name = pod.name_any();
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        for container in statuses {
            ensure!(container.restart_count == 0, "{name} was started again");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; make stories-long tells it"]
async fn at_rest_the_operator_writes_nothing_but_its_lease() -> Result<()> {
    tell("rest", Disturbs::Everything, async |story| {
        installed(story, async || rests(story).await).await
    })
    .await
}

async fn rests(story: &Story) -> Result<()> {
    leader(story).await?;
    let object = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1beta1", "kind": "EtcdCluster",
        "metadata": {"name": "still"}, "spec": {"size": 3, "version": "3.6.16"},
    });
    created(story, &object).await?;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mark = audit::mark(&story.places)?;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut writes = audit::since(&story.places, mark)?;
    writes.retain(|it| it.user.username == ACCOUNT && it.object_ref.resource != "leases");
    ensure!(writes.is_empty(), "at rest it wrote {writes:?}");
    Ok(())
}
