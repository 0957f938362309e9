//! The part of the demo about etcd: a cluster comes up, a client writes and reads, a member is lost and returns.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{say, show};
use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::places::Places;

const NAMESPACE: &str = "quorate-demo";
/// The release that the sample asks for.
const VERSION: &str = "3.6.16";
const SAMPLE: &str = "deploy/samples/quickstart/etcdcluster.yaml";
const OF_MAIN: &str = "--selector=etcd.appdelivery.cncf.io/cluster=main";

/// Shows it.
pub(super) async fn etcd(places: &Places, kubectl: &Kubectl) -> Result<()> {
    let image = catalog::etcd_name(VERSION);
    catalog::image(&image, places).await?.import(places).await?;
    kubectl.apply_as_user(&namespace().to_string()).await?;

    say("\nA cluster of three members, with disks, TLS and a certificate authority of its own:");
    say(&format!("\n$ kubectl --namespace {NAMESPACE} apply --filename {SAMPLE}"));
    let sample = format!("{}/../../{SAMPLE}", env!("CARGO_MANIFEST_DIR"));
    say(ours(kubectl, &["apply", "--filename", &sample]).await?.trim_end());
    shown(kubectl, &["wait", "--for=condition=Ready", "etcd/main", "--timeout=300s"]).await?;
    shown(kubectl, &["get", "etcd,etcdmembers,pods"]).await?;

    say("\nA client in a pod of its own, with nothing but the Secret main-client:");
    client(kubectl, "writer", &["put", "greeting", "hello"]).await?;
    client(kubectl, "reader", &["get", "greeting"]).await?;

    say("\nA pod is lost, and the same member comes back on its disk:");
    let first = "--output=jsonpath={.items[0].metadata.name}";
    let pod = ours(kubectl, &["get", "pods", OF_MAIN, first]).await?;
    let uid = uid(kubectl, &pod).await?;
    shown(kubectl, &["delete", "pod", &pod]).await?;
    returned(kubectl, &pod, &uid).await?;
    shown(kubectl, &["get", "etcd,etcdmembers,pods"]).await
}

/// Waits until another pod of the name is ready, and the cluster says that all is well.
async fn returned(kubectl: &Kubectl, pod: &str, old: &str) -> Result<()> {
    let object = format!("pod/{pod}");
    ours(kubectl, &["wait", "--for=create", &object, "--timeout=120s"]).await?;
    ours(kubectl, &["wait", "--for=condition=Ready", &object, "--timeout=120s"]).await?;
    ensure!(uid(kubectl, pod).await? != old, "it is the old pod");
    // The object may not have heard yet that a pod was gone at all.
    let ready = "--for=jsonpath={.status.readyReplicas}=3";
    ours(kubectl, &["wait", ready, "etcd/main", "--timeout=120s"]).await?;
    shown(kubectl, &["wait", "--for=condition=Ready", "etcd/main", "--timeout=120s"]).await
}

async fn uid(kubectl: &Kubectl, pod: &str) -> Result<String> {
    ours(kubectl, &["get", "pod", pod, "--output=jsonpath={.metadata.uid}"]).await
}

/// Runs etcdctl in a pod under the restricted Pod Security standard.
async fn client(kubectl: &Kubectl, name: &str, words: &[&str]) -> Result<()> {
    say(&format!("\n$ etcdctl {}", words.join(" ")));
    ours(kubectl, &["delete", "pod", name, "--ignore-not-found"]).await?;
    kubectl.apply_as_user(&pod(name, words).to_string()).await?;
    let done = "--for=jsonpath={.status.phase}=Succeeded";
    let done = ours(kubectl, &["wait", done, &format!("pod/{name}"), "--timeout=90s"]).await;
    let said = ours(kubectl, &["logs", name]).await.unwrap_or_default();
    done.with_context(|| format!("the client said {said:?}"))?;
    say(said.trim_end());
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

fn pod(name: &str, words: &[&str]) -> Value {
    let endpoint = format!("--endpoints=https://main-client.{NAMESPACE}.svc:2379");
    let mut command = vec!["/usr/local/bin/etcdctl", &endpoint];
    command.extend(["--cacert=/secret/ca.crt", "--cert=/secret/tls.crt", "--key=/secret/tls.key"]);
    command.extend(words);
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
