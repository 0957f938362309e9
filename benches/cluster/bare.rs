//! The baseline: the same three pods of etcd as a bare StatefulSet, without TLS and without an
//! operator.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use quorate_harness::etcd::EtcdClient;
use quorate_harness::{TestContext, catalog};
use serde_json::{Value, json};

use super::clock::STEP_TIMEOUT;

const LABEL: &str = "app=bare";

/// A StatefulSet with three etcd pods.
pub(super) struct Bare<'ctx> {
    ctx: &'ctx TestContext,
    pub(super) etcd: EtcdClient,
}

impl<'ctx> Bare<'ctx> {
    pub(super) async fn create(ctx: &'ctx TestContext, version: &str) -> Result<Self> {
        let post = PostParams::default();
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "bare"},
            "spec": {
                "clusterIP": "None", "publishNotReadyAddresses": true,
                "selector": {"app": "bare"}, "ports": [{"name": "peer", "port": 2380}],
            },
        }))?;
        ctx.api::<Service>().create(&post, &service).await?;
        let stateful_set: StatefulSet = serde_json::from_value(stateful_set(version))?;
        ctx.api::<StatefulSet>().create(&post, &stateful_set).await?;
        let etcd = EtcdClient::of_pods(&ctx.client, &ctx.namespace, LABEL);
        Ok(Self { ctx, etcd })
    }

    pub(super) async fn pod_uid(&self, name: &str) -> Result<String> {
        let pod = self.ctx.api::<Pod>().get(name).await?;
        pod.uid().context("a pod without a uid")
    }

    /// Deletes everything.
    pub(super) async fn delete(self) -> Result<()> {
        let background = DeleteParams::background();
        self.ctx.api::<StatefulSet>().delete("bare", &background).await?;
        self.ctx.api::<Service>().delete("bare", &background).await?;
        let pvcs = self.ctx.api::<PersistentVolumeClaim>();
        let own = ListParams::default().labels(LABEL);
        pvcs.delete_collection(&background, &own).await?;
        let deleted = async || {
            let pods = self.ctx.api::<Pod>().list(&own).await;
            let pods = pods.map_err(|error| error.to_string())?.items.len();
            let left = pvcs.list(&own).await.map_err(|error| error.to_string())?.items.len();
            if pods == 0 && left == 0 { Ok(()) } else { Err(format!("{pods} pods, {left} PVCs")) }
        };
        self.ctx.wait_until("the bare pods to be deleted", STEP_TIMEOUT, deleted).await
    }
}

fn stateful_set(version: &str) -> Value {
    let own_name = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    json!({
        "metadata": {"name": "bare", "labels": {"app": "bare"}},
        "spec": {
            "replicas": 3, "serviceName": "bare", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "bare"}},
            "template": {
                "metadata": {"labels": {"app": "bare"}},
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
                        "fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "etcd",
                        "image": catalog::etcd_name(version),
                        "imagePullPolicy": "IfNotPresent",
                        "command": command(),
                        "env": [{"name": "POD_NAME", "valueFrom": own_name}],
                        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                        "readinessProbe": {
                            "httpGet": {"path": "/health", "port": 2379}, "periodSeconds": 1,
                        },
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                        "securityContext": {
                            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data", "labels": {"app": "bare"}},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "400Mi"}},
                },
            }],
        },
    })
}

fn command() -> Value {
    let peers = [0, 1, 2].map(|number| format!("bare-{number}=http://bare-{number}.bare:2380"));
    json!([
        "/usr/local/bin/etcd",
        "--name=$(POD_NAME)",
        "--data-dir=/data/etcd",
        "--listen-client-urls=http://0.0.0.0:2379",
        "--advertise-client-urls=http://$(POD_NAME).bare:2379",
        "--listen-peer-urls=http://0.0.0.0:2380",
        "--initial-advertise-peer-urls=http://$(POD_NAME).bare:2380",
        format!("--initial-cluster={}", peers.join(",")),
    ])
}
