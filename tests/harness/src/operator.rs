//! The operator, for stories that share it: put in by the first that needs it, and left for the next.
//!
//! A story that wants another operator, or none, disturbs everything and takes it away first.

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
use crate::diagnosis;
use crate::etcd_cluster::small;
use crate::story::Story;

/// The operator of this checkout, built once in the life of this process.
static BUILT: OnceCell<String> = OnceCell::const_new();
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
/// How long that may take.
const REACHED: Duration = Duration::from_secs(30);
const DEFINITION: &str = "etcdclusters.etcd.appdelivery.cncf.io";

impl Story {
    /// Makes sure that the operator of this checkout runs.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn operator(&self) -> Result<()> {
        let _turn = ONE_AT_A_TIME.lock().await;
        let built = BUILT.get_or_try_init(async || {
            let _lock = locks::exclusive(&self.places.lock(), || ())?;
            catalog::image(catalog::QUORATE, &self.places).await?.key()
        });
        let key = built.await?;
        if self.runs(key).await.is_ok() {
            return Ok(());
        }
        let _lock = locks::exclusive(&self.places.lock(), || ())?;
        install::install_operator(&self.places, &self.admin).await?;
        self.runs(key).await?;
        wait::until("the webhooks to be reached", REACHED, async || self.is_answered().await).await
    }

    /// Whether objects of ours are taken: ready replicas are reached only when every node has heard of them.
    async fn is_answered(&self) -> Result<()> {
        let cluster = self.cluster("asked");
        let object = serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": cluster.name}, "spec": small(1, &json!({})),
        }))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        cluster.objects.create(&dry, &object).await?;
        Ok(())
    }

    async fn runs(&self, key: &str) -> Result<()> {
        let definitions = Api::<CustomResourceDefinition>::all(self.client.clone());
        definitions.get(DEFINITION).await.context("the definitions are not there")?;
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), install::NAMESPACE);
        let deployment = deployments.get("quorate").await?;
        let spec = deployment.spec.unwrap_or_default();
        let annotations = spec.template.metadata.and_then(|it| it.annotations).unwrap_or_default();
        let same = annotations.get(install::IMAGE_ANNOTATION).is_some_and(|it| it == key);
        ensure!(same, "another build of it runs");
        let ready = deployment.status.and_then(|status| status.available_replicas);
        ensure!(ready == spec.replicas && ready.is_some(), "{ready:?} replicas are ready");
        Ok(())
    }

    /// What there is to see of the operator and of the clusters in the story's namespace.
    pub async fn operators_page(&self) -> String {
        let seen = diagnosis::of_namespace(&self.client, install::NAMESPACE).await;
        let objects = self.kubectl(&["get", "etcdclusters,etcdmembers", "--output=yaml"]).await;
        let objects = objects.unwrap_or_else(|error| format!("{error:#}"));
        format!("in {}:\n{seen}\n{objects}", install::NAMESPACE)
    }
}
