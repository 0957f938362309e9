//! `make demo`: the operator on a local Kubernetes, as a user sees it. A writer runs during every
//! step, and verifies afterwards that no acknowledged write is lost.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use quorate_cluster::images::catalog;
use quorate_cluster::install::{self, NAMESPACE as OPERATOR_NAMESPACE};
use quorate_cluster::kubectl::Kubectl;
use quorate_cluster::paths::Paths;
use quorate_cluster::settings::{Choice, Settings};
use quorate_cluster::{kubeconfig, locks, wait};
use quorate_harness::etcd_cluster::{Cluster, condition, summary};
use quorate_harness::pods;
use quorate_harness::writer::{WriteSummary, Writer};

const NAMESPACE: &str = "quorate-demo";
const CLUSTER: &str = "main";
/// The version at the start, and the one after the upgrade.
const VERSION: &str = "3.5.35";
const NEXT_VERSION: &str = "3.6.16";
/// A repository that does not exist.
const BAD_REPOSITORY: &str = "registry.invalid/etcd";
const STEP_TIMEOUT: Duration = Duration::from_mins(5);

#[tokio::main]
async fn main() -> Result<()> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let paths = Paths::from_environment()?;
    let settings = Settings::read(&Choice::default(), &paths)?;
    print("Installing the operator into the local cluster.");
    let kubectl = Kubectl::admin(&settings.kubernetes, &paths).await?;
    install(&paths, &kubectl).await?;
    let client = kubeconfig::client(&paths, "admin").await?;
    let cluster = Cluster::at(&client, NAMESPACE, CLUSTER);
    let mut demo = Demo { kubectl, cluster, rows: Vec::new() };
    demo.run().await?;
    demo.print_table();
    print(
        "\nThe cluster keeps running. Next:
  export KUBECONFIG=$(make -s kubeconfig) PATH=$(make -s kubectl-path):$PATH
  kubectl -n quorate-demo get etcd,etcdmembers,pods
  kubectl -n quorate-demo describe etcd main
  kubectl -n quorate-demo scale etcd/main --replicas=5
  make test              # lints, unit, model and end-to-end tests
  make cluster-down      # removes the local cluster",
    );
    Ok(())
}

async fn install(paths: &Paths, kubectl: &Kubectl) -> Result<()> {
    let _lock = locks::exclusive(&paths.lock(), || print("waiting for another quorate-cluster"))?;
    install::install_operator(paths, kubectl).await?;
    for version in [VERSION, NEXT_VERSION] {
        catalog::image(&catalog::etcd_name(version), paths).await?.import(paths).await?;
    }
    Ok(())
}

struct Demo {
    kubectl: Kubectl,
    cluster: Cluster,
    rows: Vec<Row>,
}

/// One row of the table at the end.
struct Row {
    step: &'static str,
    took: Duration,
    writes: Option<WriteSummary>,
}

impl Demo {
    async fn run(&mut self) -> Result<()> {
        let operator = ["--namespace", OPERATOR_NAMESPACE, "get", "deployments,pods,leases"];
        print_command(&self.kubectl, &operator).await?;
        self.create().await?;
        self.connect().await?;
        self.lose_volume().await?;
        self.upgrade().await?;
        self.roll_back().await?;
        self.scale().await?;
        self.kubectl(&["get", "etcd,etcdmembers"]).await?;
        self.kubectl(&["get", "events", EVENTS_OF_THE_CLUSTER, EVENT_COLUMNS]).await
    }

    async fn create(&mut self) -> Result<()> {
        print(&format!("\n## 1. Create a cluster of three members with etcd {VERSION}"));
        self.output(&["delete", "namespace", NAMESPACE, "--ignore-not-found"]).await?;
        self.kubectl.apply_as_user(&namespace().to_string()).await?;
        let started = Instant::now();
        print(&format!("\n$ kubectl apply -f - <<< '{}'", etcd_cluster()));
        self.kubectl.apply_as_user(&etcd_cluster().to_string()).await?;
        self.kubectl(&["wait", "--for=condition=Ready", "etcd/main", "--timeout=300s"]).await?;
        self.rows.push(Row { step: "create 3 members", took: started.elapsed(), writes: None });
        self.kubectl(&["get", "etcd,etcdmembers,pods,pvc"]).await
    }

    async fn connect(&self) -> Result<()> {
        print("\n## 2. Connect with the Secret main-client, from a pod");
        self.etcdctl("put", &["put", "greeting", "hello"]).await?;
        self.etcdctl("get", &["get", "greeting"]).await
    }

    async fn lose_volume(&mut self) -> Result<()> {
        print("\n## 3. Lose a pod together with its volume: the member is replaced");
        let pods = self.cluster.pods().await?;
        let member = pods.first().and_then(|pod| pod.metadata.name.clone());
        let member = member.context("no pod")?;
        let writer = Writer::start(&self.cluster.etcd);
        let started = Instant::now();
        self.kubectl(&["delete", "pvc,pod", &member]).await?;
        self.wait("the lost member to be replaced", async |demo| {
            let list = demo.cluster.etcd.healthy(3).await.map_err(|error| error.to_string())?;
            let is_listed = list.members.iter().any(|entry| entry.name == member);
            if is_listed { Err(format!("{member} is still a member")) } else { Ok(()) }
        })
        .await?;
        self.wait_ready().await?;
        self.finish("replace a member without its volume", started, writer).await
    }

    async fn upgrade(&mut self) -> Result<()> {
        print(&format!("\n## 4. Upgrade to etcd {NEXT_VERSION}: the plan first, by a dry run"));
        let patch = json!({"spec": {"version": NEXT_VERSION}}).to_string();
        let args = ["patch", "etcd", "main", "--type=merge", "--patch", &patch];
        self.kubectl(&[args.as_slice(), &["--dry-run=server"]].concat()).await?;
        let writer = Writer::start(&self.cluster.etcd);
        let started = Instant::now();
        self.kubectl(&args).await?;
        self.wait_updated().await?;
        self.finish("upgrade 3.5.35 to 3.6.16", started, writer).await
    }

    async fn roll_back(&mut self) -> Result<()> {
        print("\n## 5. Ask for an image that does not exist: rolled back after the first member");
        let writer = Writer::start(&self.cluster.etcd);
        let started = Instant::now();
        let image = json!({"spec": {"image": {"repository": BAD_REPOSITORY}}}).to_string();
        self.kubectl(&["patch", "etcd", "main", "--type=merge", "--patch", &image]).await?;
        self.wait("the rollback", async |demo| {
            let object = demo.cluster.get().await.map_err(|error| error.to_string())?;
            let is_rolled_back = object.pointer("/status/rollback").is_some();
            demo.cluster.etcd.healthy(3).await.map_err(|error| error.to_string())?;
            if is_rolled_back { Ok(()) } else { Err(summary(&object)) }
        })
        .await?;
        let object = self.cluster.get().await?;
        let (_, reason, message) = condition(&object, "Ready").context("no condition Ready")?;
        print(&format!("\nReady: {reason}: {message}"));
        let revert = json!({"spec": {"image": null}}).to_string();
        self.kubectl(&["patch", "etcd", "main", "--type=merge", "--patch", &revert]).await?;
        self.wait_updated().await?;
        self.finish("roll back a bad image", started, writer).await
    }

    async fn scale(&mut self) -> Result<()> {
        print("\n## 6. Scale to five members and back");
        let writer = Writer::start(&self.cluster.etcd);
        let started = Instant::now();
        for replicas in [5, 3] {
            let argument = format!("--replicas={replicas}");
            self.kubectl(&["scale", "etcd/main", &argument]).await?;
            self.wait("the members", async |demo| {
                demo.cluster.etcd.healthy(replicas).await.map_err(|error| error.to_string())
            })
            .await?;
            self.wait_ready().await?;
            self.kubectl(&["get", "etcd"]).await?;
        }
        self.finish("scale 3 to 5 to 3", started, writer).await
    }

    /// Stops the writer, verifies that nothing is lost, and adds a row to the table.
    async fn finish(&mut self, step: &'static str, started: Instant, writer: Writer) -> Result<()> {
        let took = started.elapsed();
        let verified = writer.verify().await?;
        ensure!(verified.acknowledged > 0, "no write was acknowledged");
        self.rows.push(Row { step, took, writes: Some(verified) });
        self.kubectl(&["get", "etcd"]).await
    }

    async fn wait_ready(&self) -> Result<()> {
        let is_ready = async |demo: &Self| {
            let object = demo.cluster.get().await.map_err(|error| error.to_string())?;
            let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
            let is_current = number("/status/observedGeneration") == number("/metadata/generation");
            let ready = condition(&object, "Ready").is_some_and(|(status, ..)| status == "True");
            if is_current && ready { Ok(()) } else { Err(summary(&object)) }
        };
        self.wait("the condition Ready", is_ready).await
    }

    async fn wait_updated(&self) -> Result<()> {
        self.wait("all members to be up to date", async |demo| {
            let object = demo.cluster.get().await.map_err(|error| error.to_string())?;
            let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
            let is_current = number("/status/observedGeneration") == number("/metadata/generation");
            let all = number("/status/updatedReplicas") == Some(3);
            if is_current && all { Ok(()) } else { Err(summary(&object)) }
        })
        .await?;
        self.wait_ready().await
    }

    async fn wait<T>(
        &self,
        what: &str,
        check: impl AsyncFn(&Self) -> Result<T, String>,
    ) -> Result<T> {
        wait::until(what, STEP_TIMEOUT, async || check(self).await.map_err(anyhow::Error::msg))
            .await
    }

    /// Runs etcdctl in a pod that has nothing but the client Secret.
    async fn etcdctl(&self, name: &str, args: &[&str]) -> Result<()> {
        print(&format!("\n$ etcdctl {}", args.join(" ")));
        let endpoint = format!("--endpoints=https://main-client.{NAMESPACE}.svc:2379");
        let files = ["--cacert=/secret/ca.crt", "--cert=/secret/tls.crt", "--key=/secret/tls.key"];
        let command =
            [&["/usr/local/bin/etcdctl", endpoint.as_str()], files.as_slice(), args].concat();
        let mut pod = pods::restricted(name, &catalog::etcd_name(VERSION), &command);
        let secret = json!({"secret": {"secretName": "main-client"}});
        pods::with_volume(&mut pod, "secret", "/secret", &secret);
        set(&mut pod, "/metadata/namespace", json!(NAMESPACE));
        self.kubectl.apply_as_user(&pod.to_string()).await?;
        let done = "--for=jsonpath={.status.phase}=Succeeded";
        let object = format!("pod/{name}");
        let waited = self.output(&["wait", done, &object, "--timeout=90s"]).await;
        let output = self.output(&["logs", name]).await.unwrap_or_default();
        waited.with_context(|| format!("etcdctl printed {output:?}"))?;
        print(output.trim_end());
        self.output(&["delete", "pod", name]).await.map(drop)
    }

    async fn output(&self, args: &[&str]) -> Result<String> {
        self.kubectl.run(&[&["--namespace", NAMESPACE], args].concat()).await
    }

    async fn kubectl(&self, args: &[&str]) -> Result<()> {
        print_command(&self.kubectl, &[&["--namespace", NAMESPACE], args].concat()).await
    }

    fn print_table(&self) {
        print("\n| step | seconds | writes acknowledged | lost | longest gap |");
        print("| --- | ---: | ---: | ---: | ---: |");
        for Row { step, took, writes } in &self.rows {
            let seconds = took.as_secs_f64();
            let cells = writes.as_ref().map_or_else(
                || "- | - | -".to_owned(),
                |writes| {
                    let gap = writes.longest_gap.as_secs_f64();
                    format!("{} | 0 | {gap:.1} s", writes.acknowledged)
                },
            );
            print(&format!("| {step} | {seconds:.1} | {cells} |"));
        }
    }
}

const EVENTS_OF_THE_CLUSTER: &str = "--field-selector=involvedObject.kind=EtcdCluster";
const EVENT_COLUMNS: &str = "--output=custom-columns=TYPE:.type,REASON:.reason,KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message";

fn namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    })
}

fn etcd_cluster() -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {"name": CLUSTER, "namespace": NAMESPACE},
        "spec": {
            "replicas": 3, "version": VERSION, "storage": {"size": "400Mi"},
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        },
    })
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
        parent.insert(key.to_owned(), value);
    }
}

/// The demo is the output of its command, so it goes to standard output.
fn print(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

async fn print_command(kubectl: &Kubectl, args: &[&str]) -> Result<()> {
    print(&format!("\n$ kubectl {}", args.join(" ")));
    print(kubectl.run(args).await?.trim_end());
    Ok(())
}
