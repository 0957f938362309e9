//! Small pods that the `restricted` Pod Security standard admits.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::catalog;
use crate::context::TestContext;

/// A pod under `restricted`: one container, no privileges, a read-only root filesystem.
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

/// A pod that serves a page with this text on port 8000.
#[must_use]
pub fn web(name: &str, text: &str) -> Value {
    let serve = format!("echo '{text}' > /www/index.html; exec httpd -f -p 8000 -h /www");
    let mut pod = restricted(name, catalog::BUSYBOX, &["sh", "-c", &serve]);
    with_volume(&mut pod, "www", "/www", &json!({ "emptyDir": {} }));
    let probe = json!({ "httpGet": { "path": "/", "port": 8000 }, "periodSeconds": 1 });
    if let Some(container) = pod.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut) {
        container.insert("readinessProbe".to_owned(), probe);
    }
    pod
}

/// Adds a volume of this source to the pod and mounts it into the container.
pub fn with_volume(pod: &mut Value, name: &str, path: &str, source: &Value) {
    let mut volume = source.clone();
    let mut add = |path: &str, list: &str, entry: Value| {
        let owner = pod.pointer_mut(path).and_then(Value::as_object_mut);
        let list = owner.map(|owner| owner.entry(list).or_insert_with(|| json!([])));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.push(entry);
        }
    };
    if let Some(volume) = volume.as_object_mut() {
        volume.insert("name".to_owned(), json!(name));
    }
    add("/spec/containers/0", "volumeMounts", json!({ "name": name, "mountPath": path }));
    add("/spec", "volumes", volume);
}

impl TestContext {
    /// Creates a pod.
    ///
    /// # Errors
    /// If the API server rejects the pod.
    pub async fn create_pod(&self, pod: Value) -> Result<Pod> {
        let pod: Pod = serde_json::from_value(pod).context("not a pod")?;
        let created = self.api::<Pod>().create(&PostParams::default(), &pod).await;
        created.with_context(|| format!("pod {} was rejected", pod.name_any()))
    }

    /// Runs a command in a pod and returns its output.
    ///
    /// # Errors
    /// With the error output, if the command fails.
    pub async fn exec(&self, pod: &str, command: &[&str]) -> Result<String> {
        let mut args = vec!["exec", pod, "--"];
        args.extend(command);
        self.kubectl(&args).await
    }
}
