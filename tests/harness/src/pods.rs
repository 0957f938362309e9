//! Pods for stories: small, and such that the `restricted` Pod Security standard takes them.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::catalog;
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

/// A pod that serves a page with these words on port 8000.
#[must_use]
pub fn web(name: &str, words: &str) -> Value {
    let serve = format!("echo '{words}' > /www/index.html; exec httpd -f -p 8000 -h /www");
    let mut pod = restricted(name, catalog::BUSYBOX, &["sh", "-c", &serve]);
    with_volume(&mut pod, "www", "/www", &json!({ "emptyDir": {} }));
    let probe = json!({ "httpGet": { "path": "/", "port": 8000 }, "periodSeconds": 1 });
    if let Some(container) = pod.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut) {
        container.insert("readinessProbe".to_owned(), probe);
    }
    pod
}

/// Gives the pod's container a volume of this source.
pub fn with_volume(pod: &mut Value, name: &str, path: &str, source: &Value) {
    let mut volume = source.clone();
    let mut add = |place: &str, list: &str, entry: Value| {
        let owner = pod.pointer_mut(place).and_then(Value::as_object_mut);
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
