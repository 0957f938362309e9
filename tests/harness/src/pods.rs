//! Pods for stories: small, and such that the `restricted` Pod Security standard takes them.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::story::Story;

/// A pod under `restricted`: one container, no rights, a read-only root.
#[must_use]
pub fn restricted(name: &str, image: &str, command: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "main",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": command,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    })
}

impl Story {
    /// Creates a pod.
    ///
    /// # Errors
    /// If the API refuses it.
    pub async fn create_pod(&self, pod: Value) -> Result<Pod> {
        let pod: Pod = serde_json::from_value(pod).context("that is no pod")?;
        let made = self.api::<Pod>().create(&PostParams::default(), &pod).await;
        made.with_context(|| format!("pod {} was refused", pod.name_any()))
    }

    /// Runs a command in a pod and returns what it printed.
    ///
    /// # Errors
    /// With what it said, if it did not succeed.
    pub async fn exec(&self, pod: &str, command: &[&str]) -> Result<String> {
        let mut args = vec!["exec", pod, "--"];
        args.extend(command);
        self.kubectl(&args).await
    }
}
