//! What happens while nobody converts, and after: nothing is lost, everything goes on by itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_harness::{Disturbs, Story, audit, tell};
use serde_json::{Value, json};

use super::installed::{ACCOUNT, begun, ended, installed, leader, manifest, replicas};
use super::wire::created;

const DEFINITION: &str = "etcdclusters.etcd.appdelivery.cncf.io";
/// Nothing of it is ever written by itself, which would store it anew.
const APPS: &str = "exampleapps.example-app.appdelivery.cncf.io";
const SAMPLE: &str = "deploy/samples/not-yet/exampleapp-v1alpha1.yaml";
const NAME: &str = "appdelivery-example-app";
const DRAINS: Duration = Duration::from_mins(2);
/// The namespace controller tries several times within these.
const HELD_UP_SECONDS: usize = 15;

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_only_the_replicas_can_read_wait_for_them_and_a_namespace_drains_by_itself()
-> Result<()> {
    tell("outage", Disturbs::Everything, async |story| {
        let (newer, older) = (Leaving::named(story, "newer"), Leaving::named(story, "older"));
        let told = installed(story, async || outage(story, &newer, &older).await).await;
        let gone = newer.gone(story).await.and(older.gone(story).await);
        told.and(gone)
    })
    .await
}

async fn outage(story: &Story, newer: &Leaving, older: &Leaving) -> Result<()> {
    // Here objects shall stay as they are stored.
    let paused = format!("{}={}", names::MIGRATION_ANNOTATION, names::MIGRATION_PAUSED);
    story.admin.run(&["annotate", "crd", APPS, &paused]).await?;
    newer.begin(story).await?;
    stored_in(story, "v1alpha1").await?;
    older.begin(story).await?;
    let sample = format!("{}/{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
    story.kubectl(&["apply", "--filename", &sample]).await?;
    stored_in(story, "v1").await?;
    for (namespace, version) in
        [(&newer.0, "v1"), (&older.0, "v1alpha1"), (&story.namespace, "v1alpha1")]
    {
        let api_version = stored(story, namespace).await?.context("it is not stored")?;
        ensure!(api_version.ends_with(&format!("/{version}")), "it is stored in {api_version}");
    }

    ended(story).await?;
    // What is stored in v1 is deleted in v1, and nobody is asked.
    newer.delete(story).await?;
    newer.is_gone(story).await?;
    older.held_up(story).await?;
    // All start at once, with an object of ours that only they can read.
    begun(story).await?;
    let back = Instant::now();
    leader(story).await?;
    let read = story.kubectl(&["get", "exampleapps", NAME, "-o", "json"]).await?;
    let read: Value = serde_json::from_str(&read)?;
    ensure!(read.pointer("/spec/version") == Some(&json!("0.0.1")), "{read}");
    // Nobody does anything about the namespace.
    older.is_gone(story).await?;
    println!("the namespace was gone {:.1?} after somebody converted again", back.elapsed());
    Ok(())
}

/// The version in which an object is stored, if it is.
async fn stored(story: &Story, namespace: &str) -> Result<Option<String>> {
    let key = format!("/registry/example-app.appdelivery.cncf.io/exampleapps/{namespace}/{NAME}");
    let Some(bytes) = story.control_plane().await?.get(&key).await? else {
        return Ok(None);
    };
    let stored: Value = serde_json::from_slice(&bytes)?;
    let api_version = stored.pointer("/apiVersion").and_then(Value::as_str);
    Ok(Some(api_version.unwrap_or_default().to_owned()))
}

/// A namespace that is deleted while nobody converts.
struct Leaving(String);

impl Leaving {
    fn named(story: &Story, word: &str) -> Self {
        Self(format!("{}-{word}", story.namespace))
    }

    /// Makes it, with an object in it.
    async fn begin(&self, story: &Story) -> Result<()> {
        story.admin.run(&["create", "namespace", &self.0]).await?;
        let sample = format!("{}/{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
        story.admin.run(&["-n", &self.0, "apply", "--filename", &sample]).await.map(drop)
    }

    async fn delete(&self, story: &Story) -> Result<()> {
        story.admin.run(&["delete", "namespace", &self.0, "--wait=false"]).await.map(drop)
    }

    async fn is_gone(&self, story: &Story) -> Result<()> {
        let gone = format!("namespace/{}", self.0);
        story.admin.run(&["wait", "--for=delete", &gone, "--timeout=120s"]).await.map(drop)
    }

    /// Deletes it, sees that it says what it waits for, and that it does wait: whoever deletes an object reads what is
    /// stored of it first.
    async fn held_up(&self, story: &Story) -> Result<()> {
        self.delete(story).await?;
        let words = story
            .wait_until("the namespace to say what it waits for", DRAINS, async || {
                self.failure(story).await.map_err(|error| format!("{error:#}"))
            })
            .await?;
        ensure!(words.contains("conversion webhook"), "{words}");
        for _ in 0..HELD_UP_SECONDS {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let words = self.failure(story).await?;
            ensure!(words.contains("conversion webhook"), "{words}");
            let version =
                stored(story, &self.0).await?.context("nobody converts, and it is gone")?;
            ensure!(version.ends_with("/v1alpha1"), "nobody converts, and it is in {version}");
        }
        Ok(())
    }

    /// Why it cannot be emptied.
    async fn failure(&self, story: &Story) -> Result<String> {
        let found = Api::<Namespace>::all(story.client.clone()).get(&self.0).await?;
        let status = found.status.unwrap_or_default();
        ensure!(status.phase.as_deref() == Some("Terminating"), "it is {:?}", status.phase);
        let failure = status.conditions.into_iter().flatten().find(|condition| {
            condition.type_ == "NamespaceDeletionContentFailure" && condition.status == "True"
        });
        Ok(failure.context("it waits for nothing")?.message.unwrap_or_default())
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
    let live = definitions.get(APPS).await?;
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
    definitions.patch(APPS, &PatchParams::default(), &patch).await?;
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
        // One that runs has a story of its own.
        "metadata": {"name": "still"}, "spec": {"size": 3, "version": "3.6.16", "paused": true},
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
