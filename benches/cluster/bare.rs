//! The floor: the same three pods of etcd as a bare StatefulSet, without TLS, and with nobody who looks after them.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use quorate_harness::etcd::EtcdUser;
use quorate_harness::{Story, catalog};
use serde_json::{Value, json};

use super::clock::PATIENCE;

const LABEL: &str = "app=bare";

/// Three pods.
pub(super) struct Bare<'story> {
    story: &'story Story,
    pub(super) user: EtcdUser,
}

impl<'story> Bare<'story> {
    pub(super) async fn make(story: &'story Story, version: &str) -> Result<Self> {
        let post = PostParams::default();
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "bare"},
            "spec": {
                "clusterIP": "None", "publishNotReadyAddresses": true,
                "selector": {"app": "bare"}, "ports": [{"name": "peer", "port": 2380}],
            },
        }))?;
        story.api::<Service>().create(&post, &service).await?;
        let set: StatefulSet = serde_json::from_value(set(version))?;
        story.api::<StatefulSet>().create(&post, &set).await?;
        let user = EtcdUser::of_pods(&story.client, &story.namespace, LABEL);
        Ok(Self { story, user })
    }

    pub(super) async fn pod_uid(&self, name: &str) -> Result<String> {
        let pod = self.story.api::<Pod>().get(name).await?;
        pod.uid().context("a pod without a uid")
    }

    /// Takes everything away.
    pub(super) async fn end(self) -> Result<()> {
        let now = DeleteParams::background();
        self.story.api::<StatefulSet>().delete("bare", &now).await?;
        self.story.api::<Service>().delete("bare", &now).await?;
        let claims = self.story.api::<PersistentVolumeClaim>();
        let own = ListParams::default().labels(LABEL);
        claims.delete_collection(&now, &own).await?;
        let gone = async || {
            let pods = self.story.api::<Pod>().list(&own).await;
            let pods = pods.map_err(|error| error.to_string())?.items.len();
            let left = claims.list(&own).await.map_err(|error| error.to_string())?.items.len();
            if pods == 0 && left == 0 { Ok(()) } else { Err(format!("{pods} pods, {left} claims")) }
        };
        self.story.wait_until("the bare pods to be gone", PATIENCE, gone).await
    }
}

fn set(version: &str) -> Value {
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
