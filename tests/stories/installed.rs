//! The operator in the cluster, for stories about what it does there: installed, asked, uninstalled.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_harness::{Story, catalog};

pub(super) const NAMESPACE: &str = "quorate-system";
pub(super) const ACCOUNT: &str = "system:serviceaccount:quorate-system:quorate";
/// A new Lease is held a full lease duration (15 s) before its holder leads; two of them and some slack.
pub(super) const ELECTION: Duration = Duration::from_mins(1);

/// The file that installs everything.
pub(super) fn manifest() -> Result<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/install.yaml");
    Ok(path.to_str().context("a path that is no text")?.to_owned())
}

/// Installs, lets the story go on, and uninstalls in either case.
pub(super) async fn installed(story: &Story, then: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    installed_with(story, &[], then).await
}

/// The same, with more arguments for the operator.
pub(super) async fn installed_with(
    story: &Story,
    args: &[&str],
    then: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    installed_from(story, &["--filename", &manifest()?], async || {
        if !args.is_empty() {
            begun_anew(story, args).await?;
        }
        then().await
    })
    .await
}

/// Starts all replicas with more arguments, and lets them make their authorities anew: those that are there keep the
/// life that they were made with.
async fn begun_anew(story: &Story, args: &[&str]) -> Result<()> {
    ended(story).await?;
    story.admin.run(&["-n", NAMESPACE, "delete", "secret", names::WEBHOOK_CA_SECRET]).await?;
    told(story, args).await?;
    begun(story).await
}

/// Ends all replicas. One that is on its way out still answers, so the last moment of each is waited for.
pub(super) async fn ended(story: &Story) -> Result<()> {
    scaled(story, "--replicas=0").await?;
    let all = ["pod", "--selector=app.kubernetes.io/name=quorate", "--timeout=60s"];
    let wait = ["-n", NAMESPACE, "wait", "--for=delete"];
    story.admin.run(&[&wait[..], &all].concat()).await.map(drop)
}

/// Starts all replicas at once.
pub(super) async fn begun(story: &Story) -> Result<()> {
    scaled(story, "--replicas=2").await?;
    rolled_out(story).await
}

async fn scaled(story: &Story, replicas: &str) -> Result<()> {
    story.admin.run(&["-n", NAMESPACE, "scale", "deployment/quorate", replicas]).await.map(drop)
}

/// The same from another source, such as an overlay.
pub(super) async fn installed_from(
    story: &Story,
    source: &[&str],
    then: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    gone(story).await?;
    story.image(catalog::QUORATE).await?;
    story.admin.run(&[&["apply"], source].concat()).await?;
    let told = async {
        rolled_out(story).await?;
        then().await
    };
    let told = match told.await {
        Ok(()) => Ok(()),
        Err(error) => {
            let seen = quorate_harness::diagnosis::of_namespace(&story.client, NAMESPACE).await;
            Err(error.context(format!("in {NAMESPACE}:\n{seen}")))
        }
    };
    let gone = uninstalled(story).await;
    told.and(gone)
}

/// Gives the operator more arguments, and waits until it runs with them.
pub(super) async fn told(story: &Story, args: &[&str]) -> Result<()> {
    let mut all = vec!["run"];
    all.extend(args);
    let patch = serde_json::json!([
        {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": all},
    ]);
    let patch = format!("--patch={patch}");
    story
        .admin
        .run(&["-n", NAMESPACE, "patch", "deployment/quorate", "--type=json", &patch])
        .await?;
    rolled_out(story).await
}

/// Waits until every replica is of the newest kind, and ready.
pub(super) async fn rolled_out(story: &Story) -> Result<()> {
    let status = ["rollout", "status", "deployment/quorate", "--timeout=120s"];
    story.admin.run(&[&["-n", NAMESPACE], &status[..]].concat()).await.map(drop)
}

/// Takes away what stories that share an operator have left for each other.
pub(super) async fn gone(story: &Story) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(story.client.clone(), NAMESPACE);
    match deployments.get_opt("quorate").await? {
        Some(_left) => uninstalled(story).await,
        None => Ok(()),
    }
}

/// First the objects, while somebody still converts them; then everything else.
pub(super) async fn uninstalled(story: &Story) -> Result<()> {
    let kinds = "etcdclusters,etcdmembers,etcdbackups,etcdrestores,exampleapps";
    let all = ["delete", kinds, "--all-namespaces", "--all", "--timeout=60s"];
    // A story may have ended while nobody ran.
    let begun = begun(story).await;
    let objects = story.admin.run(&all).await;
    let manifest = manifest()?;
    story
        .admin
        .run(&["delete", "--filename", &manifest, "--timeout=90s", "--ignore-not-found"])
        .await?;
    begun.and(objects.map(drop))
}

/// The replicas that are not on their way out.
pub(super) async fn replicas(story: &Story) -> Result<Vec<Pod>> {
    let pods = Api::<Pod>::namespaced(story.client.clone(), NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/name=quorate");
    let listed = pods.list(&ours).await?.items;
    Ok(listed.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
}

/// The replica that the Lease names, once it says itself that it leads.
pub(super) async fn leader(story: &Story) -> Result<Pod> {
    story.wait_until("a replica to lead", ELECTION, async || find_leader(story).await).await
}

pub(super) async fn another_leader(story: &Story, than: &Pod) -> Result<Pod> {
    let what = format!("a leader other than {}", than.name_any());
    story
        .wait_until(&what, ELECTION, async || match find_leader(story).await {
            Ok(pod) if pod.name_any() == than.name_any() => Err("it still leads".to_owned()),
            other => other,
        })
        .await
}

async fn find_leader(story: &Story) -> Result<Pod, String> {
    let leases = Api::<Lease>::namespaced(story.client.clone(), NAMESPACE);
    let lease = leases.get("quorate").await.map_err(|error| format!("no lease: {error}"))?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    let pods = replicas(story).await.map_err(|error| format!("{error:#}"))?;
    let pod = pods.into_iter().find(|pod| holder.starts_with(&pod.name_any()));
    let pod = pod.ok_or_else(|| format!("the holder {holder:?} is no replica"))?;
    let claims = metric(story, &pod.name_any(), "quorate_leader").await;
    match claims {
        Ok(value) if value == "1" => Ok(pod),
        other => Err(format!("{} holds the lease and says {other:?}", pod.name_any())),
    }
}

/// The value of a metric of a replica.
pub(super) async fn metric(story: &Story, pod: &str, name: &str) -> Result<String> {
    let page = get(story, pod, "metrics").await?;
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.with_context(|| format!("no {name} in: {page}"))?;
    Ok(line.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// The sum of a counter over its labels that contain `with`, over all replicas.
pub(super) async fn counted(story: &Story, name: &str, with: &str) -> Result<f64> {
    let mut sum = 0.0;
    for pod in replicas(story).await? {
        let page = get(story, &pod.name_any(), "metrics").await?;
        for line in page.lines().filter(|line| line.starts_with(name) && line.contains(with)) {
            let value: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
            ensure!(value >= 0.0, "{line}");
            sum += value;
        }
    }
    Ok(sum)
}

/// A page of a replica's plain port, through the apiserver.
pub(super) async fn get(story: &Story, pod: &str, page: &str) -> Result<String> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/{page}");
    tokio::time::timeout(Duration::from_secs(5), story.kubectl(&["get", "--raw", &path])).await?
}
