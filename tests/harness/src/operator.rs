//! The operator, for tests that share one: installed by the first test that needs it, and kept for
//! the next.
//!
//! A test that needs another operator, or none, is [`Serial`](crate::Isolation::Serial) and
//! uninstalls it first.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use quorate_cluster::{install, locks, wait};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

use crate::catalog;
use crate::context::TestContext;
use crate::diagnosis;
use crate::etcd_cluster::small_spec;

/// The key of the operator's image of this checkout, built once per process.
static IMAGE_KEY: OnceCell<String> = OnceCell::const_new();
static INSTALLING: Mutex<()> = Mutex::const_new(());
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);
const CRD: &str = "etcdclusters.etcd.appdelivery.cncf.io";

impl TestContext {
    /// Installs the operator of this checkout, if it does not run.
    ///
    /// # Errors
    /// If the operator does not become ready.
    pub async fn ensure_operator(&self) -> Result<()> {
        let _turn = INSTALLING.lock().await;
        let key = IMAGE_KEY.get_or_try_init(async || {
            let _lock = locks::exclusive(&self.paths.lock(), || ())?;
            catalog::image(catalog::QUORATE, &self.paths).await?.key()
        });
        let key = key.await?;
        if self.operator_runs(key).await.is_ok() {
            return Ok(());
        }
        let _lock = locks::exclusive(&self.paths.lock(), || ())?;
        install::install_operator(&self.paths, &self.admin).await?;
        self.operator_runs(key).await?;
        let respond = async || self.webhooks_respond().await;
        wait::until("the webhooks to respond", WEBHOOK_TIMEOUT, respond).await
    }

    /// Creates an object in a dry run: a ready replica is reachable only once kube-proxy knows its
    /// endpoint.
    async fn webhooks_respond(&self) -> Result<()> {
        let cluster = self.cluster("dry-run");
        let object = serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": cluster.name}, "spec": small_spec(1, &json!({})),
        }))?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        cluster.objects.create(&dry_run, &object).await?;
        Ok(())
    }

    async fn operator_runs(&self, key: &str) -> Result<()> {
        let crds = Api::<CustomResourceDefinition>::all(self.client.clone());
        crds.get(CRD).await.context("the CRDs are not installed")?;
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), install::NAMESPACE);
        let deployment = deployments.get("quorate").await?;
        let spec = deployment.spec.unwrap_or_default();
        let annotations =
            spec.template.metadata.and_then(|metadata| metadata.annotations).unwrap_or_default();
        let same = annotations.get(install::IMAGE_ANNOTATION).is_some_and(|found| found == key);
        ensure!(same, "another build of the operator runs");
        let ready = deployment.status.and_then(|status| status.available_replicas);
        ensure!(ready == spec.replicas && ready.is_some(), "{ready:?} replicas are ready");
        Ok(())
    }

    /// Diagnostics of the operator and of the clusters in the test's namespace.
    pub async fn operator_diagnosis(&self) -> String {
        let report = diagnosis::describe_namespace(&self.client, install::NAMESPACE).await;
        let objects = self.kubectl(&["get", "etcdclusters,etcdmembers", "--output=yaml"]).await;
        let objects = objects.unwrap_or_else(|error| format!("{error:#}"));
        format!("in {}:\n{report}\n{objects}", install::NAMESPACE)
    }
}
