//! The context of one end-to-end test: a namespace of its own, deleted at the end.

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
use quorate_cluster::paths::Paths;
use quorate_cluster::settings::{Choice, Settings};
use quorate_cluster::{images, kubeconfig, locks, s3, wait};
use serde_json::json;

use crate::diagnosis;
use crate::waiting::DeadlineExceeded;

/// Whether a test may run beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The test stays in its namespace: others may run at the same time.
    Parallel,
    /// The test pauses components or changes shared objects: no other test runs meanwhile.
    Serial,
}

/// What a test works with.
pub struct TestContext {
    /// The test's namespace, which enforces the `restricted` Pod Security standard.
    pub namespace: String,
    /// A Kubernetes client with cluster-admin permissions.
    pub client: Client,
    /// The settings of the local cluster.
    pub settings: Settings,
    /// The paths of the local cluster.
    pub paths: Paths,
    /// kubectl as the cluster's admin, in no particular namespace.
    pub admin: Kubectl,
    _lock: File,
}

/// Runs a test in a new namespace, adds diagnostics to a failure, and cleans up in either case.
///
/// # Errors
/// The test's own error, with the state of its namespace.
pub async fn run(
    name: &str,
    isolation: Isolation,
    test: impl AsyncFnOnce(&TestContext) -> Result<()>,
) -> Result<()> {
    let ctx = TestContext::start(name, isolation)
        .await
        .with_context(|| format!("test {name} could not start"))?;
    // A failed assertion must clean up the namespace just as an error does.
    let result = AssertUnwindSafe(test(&ctx)).catch_unwind().await;
    let result =
        result.unwrap_or_else(|panic| Err(anyhow!("panicked: {}", panic_message(&*panic))));
    let result = match result {
        Err(error) if !error.is::<DeadlineExceeded>() => {
            let state = diagnosis::describe_namespace(&ctx.client, &ctx.namespace).await;
            Err(error.context(format!("in namespace {}:\n{state}", ctx.namespace)))
        }
        result => result,
    };
    let result = result.with_context(|| format!("test {name} failed"));
    let cleanup = ctx.cleanup().await;
    result.and(cleanup)
}

fn panic_message(panic: &dyn Any) -> &str {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

impl TestContext {
    async fn start(name: &str, isolation: Isolation) -> Result<Self> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let paths = Paths::from_environment()?;
        let lock = take_lock(&paths, isolation).await?;
        let settings = Settings::read(&Choice::default(), &paths)?;
        let client = kubeconfig::client(&paths, "admin").await?;
        let admin = Kubectl::admin(&settings.kubernetes, &paths).await?;
        let namespace = create_namespace(&client, name).await?;
        Ok(Self { namespace, client, settings, paths, admin, _lock: lock })
    }

    /// An API for objects of the test's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Runs kubectl in the test's namespace and returns its output.
    ///
    /// # Errors
    /// With kubectl's error output, if it fails.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let mut all = vec!["--namespace", self.namespace.as_str()];
        all.extend(args);
        self.admin.run(&all).await
    }

    /// A kubectl command in the test's namespace, for commands that run until they are killed.
    #[must_use]
    pub fn kubectl_command(&self) -> tokio::process::Command {
        let mut command = self.admin.command();
        command.args(["--namespace", &self.namespace]);
        command
    }

    /// Imports an image into the cluster, if missing.
    ///
    /// # Errors
    /// If the image cannot be built or imported.
    pub async fn image(&self, name: &str) -> Result<()> {
        let _lock = locks::exclusive(&self.paths.lock(), || ())?;
        images::catalog::image(name, &self.paths).await?.import(&self.paths).await.map(drop)
    }

    /// Starts the S3 server, if it does not run.
    ///
    /// # Errors
    /// If the server does not become ready.
    pub async fn s3(&self) -> Result<s3::S3> {
        let _lock = locks::exclusive(&self.paths.lock(), || ())?;
        s3::ensure(&self.settings, &self.paths).await
    }

    /// Deletes the namespace and waits until the deletion is complete, so that the next test has
    /// the whole node.
    async fn cleanup(self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        // Pods first, with a short grace period: no test needs their shutdown.
        let pods = self.api::<k8s_openapi::api::core::v1::Pod>();
        let short_grace = DeleteParams::default().grace_period(1);
        drop(pods.delete_collection(&short_grace, &kube::api::ListParams::default()).await);
        namespaces.delete(&self.namespace, &DeleteParams::background()).await?;
        wait::until("the test's namespace to be deleted", Duration::from_secs(90), async || {
            match namespaces.get_opt(&self.namespace).await? {
                None => Ok(()),
                Some(namespace) => {
                    let conditions = namespace.status.and_then(|status| status.conditions);
                    let messages =
                        conditions.into_iter().flatten().filter_map(|condition| condition.message);
                    bail!("it still exists: {}", messages.collect::<Vec<_>>().join("; "))
                }
            }
        })
        .await
    }
}

/// A file lock, shared by parallel tests: it holds across processes and is released when they exit.
/// A serial test first takes the gate exclusively, so that later tests wait behind it: otherwise
/// parallel tests could hold the lock for ever.
async fn take_lock(paths: &Paths, isolation: Isolation) -> Result<File> {
    let (gate, path) = (paths.e2e_gate(), paths.e2e_lock());
    tokio::task::spawn_blocking(move || {
        let (gate, file) = (locks::open(&gate)?, locks::open(&path)?);
        match isolation {
            Isolation::Parallel => {
                gate.lock_shared()?;
                file.lock_shared()?;
            }
            Isolation::Serial => {
                gate.lock()?;
                file.lock()?;
            }
        }
        Ok(file)
    })
    .await?
}

async fn create_namespace(client: &Client, test: &str) -> Result<String> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let namespace: Namespace = serde_json::from_value(json!({
        "metadata": {
            "generateName": format!("e2e-{test}-"),
            "labels": {
                "pod-security.kubernetes.io/enforce": "restricted",
                "quorate-harness/test": test,
            },
        },
    }))?;
    let created = namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .context("cannot create a namespace")?;
    let name = created.metadata.name.unwrap_or_default();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &name);
    wait::until("the namespace's service account", Duration::from_secs(30), async || {
        accounts.get("default").await?;
        Ok(())
    })
    .await?;
    Ok(name)
}
