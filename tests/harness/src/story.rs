//! A story: one test on the real cluster, with a namespace of its own and an end that leaves nothing.

use std::any::Any;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::FutureExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Resource};
use quorate_cluster::kubectl::Kubectl;
use quorate_cluster::paths::Paths as Places;
use quorate_cluster::settings::{Choice, Settings};
use quorate_cluster::{images, kubeconfig, locks, s3, wait};
use serde_json::json;

use crate::diagnosis;
use crate::waiting::Expired;

/// What a story does to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbs {
    /// It stays in its namespace: others may run at the same time.
    Nothing,
    /// It stops parts, or changes what all share: it runs alone.
    Everything,
}

/// What a story has in hand.
pub struct Story {
    /// Its namespace, which enforces the `restricted` Pod Security standard.
    pub namespace: String,
    /// A client for the API, as the cluster's admin.
    pub client: Client,
    /// What the cluster was started with.
    pub settings: Settings,
    /// Where the cluster keeps its things.
    pub places: Places,
    /// kubectl as the cluster's admin, in no particular namespace.
    pub admin: Kubectl,
    _lock: File,
}

/// Tells a story: begins it, lets it run, explains its failure, and cleans up in either case.
///
/// # Errors
/// The story's own error, with what was seen in its namespace.
pub async fn tell(
    name: &str,
    disturbs: Disturbs,
    plot: impl AsyncFnOnce(&Story) -> Result<()>,
) -> Result<()> {
    let story = Story::begin(name, disturbs)
        .await
        .with_context(|| format!("story {name} could not begin"))?;
    // A failed assertion must not leave the namespace behind any more than an error may.
    let told = AssertUnwindSafe(plot(&story)).catch_unwind().await;
    let told = told.unwrap_or_else(|panic| Err(anyhow!("it panicked: {}", words_of(&*panic))));
    let told = match told {
        Err(error) if !error.is::<Expired>() => {
            let seen = diagnosis::of_namespace(&story.client, &story.namespace).await;
            Err(error.context(format!("in namespace {}:\n{seen}", story.namespace)))
        }
        told => told,
    };
    let told = told.with_context(|| format!("story {name} failed"));
    let ended = story.end().await;
    told.and(ended)
}

fn words_of(panic: &dyn Any) -> &str {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

impl Story {
    async fn begin(name: &str, disturbs: Disturbs) -> Result<Self> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let places = Places::from_environment()?;
        let lock = take_lock(&places, disturbs).await?;
        let settings = Settings::read(&Choice::default(), &places)?;
        let client = kubeconfig::client(&places, "admin").await?;
        let admin = Kubectl::admin(&settings.kubernetes, &places).await?;
        let namespace = make_namespace(&client, name).await?;
        Ok(Self { namespace, client, settings, places, admin, _lock: lock })
    }

    /// An API for objects of the story's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// kubectl in the story's namespace; returns what it printed.
    ///
    /// # Errors
    /// With what kubectl said, if it did not succeed.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let mut all = vec!["--namespace", self.namespace.as_str()];
        all.extend(args);
        self.admin.run(&all).await
    }

    /// A kubectl command in the story's namespace, for what does not end by itself.
    #[must_use]
    pub fn kubectl_command(&self) -> tokio::process::Command {
        let mut command = self.admin.command();
        command.args(["--namespace", &self.namespace]);
        command
    }

    /// Makes sure that an image is in the cluster.
    ///
    /// # Errors
    /// If it cannot be built or imported.
    pub async fn image(&self, name: &str) -> Result<()> {
        let _lock = locks::exclusive(&self.places.lock(), || ())?;
        images::catalog::image(name, &self.places).await?.import(&self.places).await.map(drop)
    }

    /// Makes sure that the S3 server runs.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn s3(&self) -> Result<s3::S3> {
        let _lock = locks::exclusive(&self.places.lock(), || ())?;
        s3::ensure(&self.settings, &self.places).await
    }

    /// Deletes the namespace and waits until it is gone, so that the next story finds the node free.
    async fn end(self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        // Pods first and quickly: nobody waits for their last words.
        let pods = self.api::<k8s_openapi::api::core::v1::Pod>();
        let quickly = DeleteParams::default().grace_period(1);
        drop(pods.delete_collection(&quickly, &kube::api::ListParams::default()).await);
        namespaces.delete(&self.namespace, &DeleteParams::background()).await?;
        wait::until("the story's namespace to be gone", Duration::from_secs(90), async || {
            match namespaces.get_opt(&self.namespace).await? {
                None => Ok(()),
                Some(namespace) => {
                    let conditions = namespace.status.and_then(|status| status.conditions);
                    let words =
                        conditions.into_iter().flatten().filter_map(|condition| condition.message);
                    bail!("it is still there: {}", words.collect::<Vec<_>>().join("; "))
                }
            }
        })
        .await
    }
}

/// Shared by stories that disturb nothing; a file lock, so that it holds across processes and ends with them.
/// Who wants to be alone waits in the gate, and who comes after waits behind: else there would always be somebody.
async fn take_lock(places: &Places, disturbs: Disturbs) -> Result<File> {
    let (gate, path) = (places.e2e_gate(), places.e2e_lock());
    tokio::task::spawn_blocking(move || {
        let (gate, file) = (locks::open(&gate)?, locks::open(&path)?);
        match disturbs {
            Disturbs::Nothing => {
                gate.lock_shared()?;
                file.lock_shared()?;
            }
            Disturbs::Everything => {
                gate.lock()?;
                file.lock()?;
            }
        }
        Ok(file)
    })
    .await?
}

async fn make_namespace(client: &Client, story: &str) -> Result<String> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let wanted: Namespace = serde_json::from_value(json!({
        "metadata": {
            "generateName": format!("story-{story}-"),
            "labels": {
                "pod-security.kubernetes.io/enforce": "restricted",
                "quorate-harness/story": story,
            },
        },
    }))?;
    let made = namespaces
        .create(&PostParams::default(), &wanted)
        .await
        .context("cannot make a namespace")?;
    let name = made.metadata.name.unwrap_or_default();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &name);
    wait::until("the namespace's service account", Duration::from_secs(30), async || {
        accounts.get("default").await?;
        Ok(())
    })
    .await?;
    Ok(name)
}
