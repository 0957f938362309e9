//! Installs, configures, queries and uninstalls the operator, for tests about the operator itself.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_harness::{TestContext, catalog};

pub(super) const NAMESPACE: &str = "quorate-system";
pub(super) const SERVICE_ACCOUNT: &str = "system:serviceaccount:quorate-system:quorate";
/// The holder of a new Lease leads after a full lease duration (15 s); two of them and a margin.
pub(super) const ELECTION_TIMEOUT: Duration = Duration::from_mins(1);

/// The path of the install manifest.
pub(super) fn manifest() -> Result<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/install.yaml");
    Ok(path.to_str().context("a path that is not UTF-8")?.to_owned())
}

/// Installs the operator, runs the test, and uninstalls the operator in either case.
pub(super) async fn with_installation(
    ctx: &TestContext,
    test: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    with_installation_args(ctx, &[], test).await
}

/// The same, with more arguments for the operator.
pub(super) async fn with_installation_args(
    ctx: &TestContext,
    args: &[&str],
    test: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    with_installation_from(ctx, &["--filename", &manifest()?], async || {
        if !args.is_empty() {
            restart_with_new_ca(ctx, args).await?;
        }
        test().await
    })
    .await
}

/// Restarts all replicas with more arguments and a new webhook CA: an existing CA keeps the
/// lifetime that it was issued with.
async fn restart_with_new_ca(ctx: &TestContext, args: &[&str]) -> Result<()> {
    stop_operator(ctx).await?;
    ctx.admin.run(&["-n", NAMESPACE, "delete", "secret", names::WEBHOOK_CA_SECRET]).await?;
    set_operator_args(ctx, args).await?;
    start_operator(ctx).await
}

/// Stops all replicas. A terminating replica still serves, so the deletion of each pod is waited
/// for.
pub(super) async fn stop_operator(ctx: &TestContext) -> Result<()> {
    scale_operator(ctx, "--replicas=0").await?;
    let all = ["pod", "--selector=app.kubernetes.io/name=quorate", "--timeout=60s"];
    let wait = ["-n", NAMESPACE, "wait", "--for=delete"];
    ctx.admin.run(&[&wait[..], &all].concat()).await.map(drop)
}

/// Starts all replicas at once.
pub(super) async fn start_operator(ctx: &TestContext) -> Result<()> {
    scale_operator(ctx, "--replicas=2").await?;
    wait_rollout(ctx).await
}

async fn scale_operator(ctx: &TestContext, replicas: &str) -> Result<()> {
    ctx.admin.run(&["-n", NAMESPACE, "scale", "deployment/quorate", replicas]).await.map(drop)
}

/// The same from another manifest, such as an overlay.
pub(super) async fn with_installation_from(
    ctx: &TestContext,
    source: &[&str],
    test: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    uninstall_if_present(ctx).await?;
    ctx.image(catalog::QUORATE).await?;
    ctx.admin.run(&[&["apply"], source].concat()).await?;
    let result = async {
        wait_rollout(ctx).await?;
        test().await
    };
    let result = match result.await {
        Ok(()) => Ok(()),
        Err(error) => {
            let report =
                quorate_harness::diagnosis::describe_namespace(&ctx.client, NAMESPACE).await;
            Err(error.context(format!("in {NAMESPACE}:\n{report}")))
        }
    };
    let uninstalled = uninstall(ctx).await;
    result.and(uninstalled)
}

/// Sets the operator's arguments, and waits for the rollout.
pub(super) async fn set_operator_args(ctx: &TestContext, args: &[&str]) -> Result<()> {
    let mut all = vec!["run"];
    all.extend(args);
    let patch = serde_json::json!([
        {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": all},
    ]);
    let patch = format!("--patch={patch}");
    ctx.admin.run(&["-n", NAMESPACE, "patch", "deployment/quorate", "--type=json", &patch]).await?;
    wait_rollout(ctx).await
}

/// Waits until every replica is updated and ready.
pub(super) async fn wait_rollout(ctx: &TestContext) -> Result<()> {
    let status = ["rollout", "status", "deployment/quorate", "--timeout=120s"];
    ctx.admin.run(&[&["-n", NAMESPACE], &status[..]].concat()).await.map(drop)
}

/// Uninstalls the operator that other tests share.
pub(super) async fn uninstall_if_present(ctx: &TestContext) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(ctx.client.clone(), NAMESPACE);
    match deployments.get_opt("quorate").await? {
        Some(_installed) => uninstall(ctx).await,
        None => Ok(()),
    }
}

/// Deletes the custom resources first, while the conversion webhook still runs; then everything
/// else.
pub(super) async fn uninstall(ctx: &TestContext) -> Result<()> {
    let kinds = "etcdclusters,etcdmembers,etcdbackups,etcdrestores,exampleapps";
    let all = ["delete", kinds, "--all-namespaces", "--all", "--timeout=60s"];
    // A failed test may have left the operator stopped.
    let started = start_operator(ctx).await;
    let objects = ctx.admin.run(&all).await;
    let manifest = manifest()?;
    ctx.admin
        .run(&["delete", "--filename", &manifest, "--timeout=90s", "--ignore-not-found"])
        .await?;
    started.and(objects.map(drop))
}

/// The replicas that are not terminating.
pub(super) async fn replicas(ctx: &TestContext) -> Result<Vec<Pod>> {
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), NAMESPACE);
    let selector = ListParams::default().labels("app.kubernetes.io/name=quorate");
    let listed = pods.list(&selector).await?.items;
    Ok(listed.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
}

/// The holder of the Lease, once its metrics report that it leads.
pub(super) async fn leader(ctx: &TestContext) -> Result<Pod> {
    ctx.wait_until("a replica to lead", ELECTION_TIMEOUT, async || find_leader(ctx).await).await
}

pub(super) async fn wait_other_leader(ctx: &TestContext, than: &Pod) -> Result<Pod> {
    let what = format!("a leader other than {}", than.name_any());
    ctx.wait_until(&what, ELECTION_TIMEOUT, async || match find_leader(ctx).await {
        Ok(pod) if pod.name_any() == than.name_any() => {
            Err("the old leader still leads".to_owned())
        }
        other => other,
    })
    .await
}

async fn find_leader(ctx: &TestContext) -> Result<Pod, String> {
    let leases = Api::<Lease>::namespaced(ctx.client.clone(), NAMESPACE);
    let lease = leases.get("quorate").await.map_err(|error| format!("no lease: {error}"))?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    let pods = replicas(ctx).await.map_err(|error| format!("{error:#}"))?;
    let pod = pods.into_iter().find(|pod| holder.starts_with(&pod.name_any()));
    let pod = pod.ok_or_else(|| format!("the holder {holder:?} is not a replica"))?;
    let leads = metric(ctx, &pod.name_any(), "quorate_leader").await;
    match leads {
        Ok(value) if value == "1" => Ok(pod),
        other => {
            Err(format!("{} holds the lease and reports quorate_leader {other:?}", pod.name_any()))
        }
    }
}

/// The value of a metric without labels of a replica.
pub(super) async fn metric(ctx: &TestContext, pod: &str, name: &str) -> Result<String> {
    let page = get_page(ctx, pod, "metrics").await?;
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.with_context(|| format!("no {name} in: {page}"))?;
    Ok(line.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// The sum of a counter over its labels that contain `with`, over all replicas.
pub(super) async fn sum_metric(ctx: &TestContext, name: &str, with: &str) -> Result<f64> {
    let mut sum = 0.0;
    for pod in replicas(ctx).await? {
        let page = get_page(ctx, &pod.name_any(), "metrics").await?;
        for line in page.lines().filter(|line| line.starts_with(name) && line.contains(with)) {
            let value: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
            ensure!(value >= 0.0, "{line}");
            sum += value;
        }
    }
    Ok(sum)
}

/// A page of a replica's metrics port, through the API server.
pub(super) async fn get_page(ctx: &TestContext, pod: &str, page: &str) -> Result<String> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/{page}");
    tokio::time::timeout(Duration::from_secs(5), ctx.kubectl(&["get", "--raw", &path])).await?
}
