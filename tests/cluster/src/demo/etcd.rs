//! The etcd demo: a cluster is bootstrapped, a client writes and reads, a pod is deleted and
//! recreated.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{print, show};
use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::paths::Paths;

const NAMESPACE: &str = "quorate-demo";
/// The release in the sample.
const VERSION: &str = "3.6.16";
const SAMPLE: &str = "deploy/samples/quickstart/etcdcluster.yaml";
const OF_MAIN: &str = "--selector=etcd.appdelivery.cncf.io/cluster=main";

/// Runs the etcd demo.
pub(super) async fn etcd(paths: &Paths, kubectl: &Kubectl) -> Result<()> {
    let image = catalog::etcd_name(VERSION);
    catalog::image(&image, paths).await?.import(paths).await?;
    kubectl.apply_as_user(&namespace().to_string()).await?;

    print("\nA cluster of three members, with PVCs, TLS and a managed CA:");
    print(&format!("\n$ kubectl --namespace {NAMESPACE} apply --filename {SAMPLE}"));
    let sample = format!("{}/../../{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
    print(ours(kubectl, &["apply", "--filename", &sample]).await?.trim_end());
    shown(kubectl, &["wait", "--for=condition=Ready", "etcd/main", "--timeout=300s"]).await?;
    shown(kubectl, &["get", "etcd,etcdmembers,pods"]).await?;

    print("\nA client in a separate pod, with the Secret main-client only:");
    client(kubectl, "writer", &["put", "greeting", "hello"]).await?;
    client(kubectl, "reader", &["get", "greeting"]).await?;

    print("\nA pod is deleted, and the same member is recreated with its PVC:");
    let first = "--output=jsonpath={.items[0].metadata.name}";
    let pod = ours(kubectl, &["get", "pods", OF_MAIN, first]).await?;
    let uid = uid(kubectl, &pod).await?;
    shown(kubectl, &["delete", "pod", &pod]).await?;
    wait_for_recreation(kubectl, &pod, &uid).await?;
    shown(kubectl, &["get", "etcd,etcdmembers,pods"]).await
}

/// Waits until a new pod with this name is ready, and the cluster is Ready.
async fn wait_for_recreation(kubectl: &Kubectl, pod: &str, old: &str) -> Result<()> {
    let object = format!("pod/{pod}");
    ours(kubectl, &["wait", "--for=create", &object, "--timeout=120s"]).await?;
    ours(kubectl, &["wait", "--for=condition=Ready", &object, "--timeout=120s"]).await?;
    ensure!(uid(kubectl, pod).await? != old, "the pod was not recreated");
    // The status may still be from before the deletion.
    let ready = "--for=jsonpath={.status.readyReplicas}=3";
    ours(kubectl, &["wait", ready, "etcd/main", "--timeout=120s"]).await?;
    shown(kubectl, &["wait", "--for=condition=Ready", "etcd/main", "--timeout=120s"]).await
}

async fn uid(kubectl: &Kubectl, pod: &str) -> Result<String> {
    ours(kubectl, &["get", "pod", pod, "--output=jsonpath={.metadata.uid}"]).await
}

/// Runs etcdctl in a pod under the restricted Pod Security standard.
async fn client(kubectl: &Kubectl, name: &str, args: &[&str]) -> Result<()> {
    print(&format!("\n$ etcdctl {}", args.join(" ")));
    ours(kubectl, &["delete", "pod", name, "--ignore-not-found"]).await?;
    kubectl.apply_as_user(&pod(name, args).to_string()).await?;
    let done = "--for=jsonpath={.status.phase}=Succeeded";
    let done = ours(kubectl, &["wait", done, &format!("pod/{name}"), "--timeout=90s"]).await;
    let logs = ours(kubectl, &["logs", name]).await.unwrap_or_default();
    done.with_context(|| format!("the client printed {logs:?}"))?;
    print(logs.trim_end());
    ours(kubectl, &["delete", "pod", name]).await.map(drop)
}

async fn ours(kubectl: &Kubectl, args: &[&str]) -> Result<String> {
    kubectl.run(&[&["--namespace", NAMESPACE], args].concat()).await
}

async fn shown(kubectl: &Kubectl, args: &[&str]) -> Result<()> {
    show(kubectl, &[&["--namespace", NAMESPACE], args].concat()).await
}

fn namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    })
}

fn pod(name: &str, args: &[&str]) -> Value {
    let endpoint = format!("--endpoints=https://main-client.{NAMESPACE}.svc:2379");
    let mut command = vec!["/usr/local/bin/etcdctl", &endpoint];
    command.extend(["--cacert=/secret/ca.crt", "--cert=/secret/tls.crt", "--key=/secret/tls.key"]);
    command.extend(args);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "etcdctl",
                "image": catalog::etcd_name(VERSION),
                "imagePullPolicy": "IfNotPresent",
                "command": command,
                "volumeMounts": [{"name": "secret", "mountPath": "/secret", "readOnly": true}],
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
            "volumes": [{"name": "secret", "secret": {"secretName": "main-client"}}],
        },
    })
}
