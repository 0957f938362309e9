//! An operator outside the cluster that aborts at every crash point of every action, once at each,
//! and is restarted each time.
//!
//! The operator is a debug build with fault injection, see `src/clients/fault_injection.rs`. It
//! watches the test's namespace alone. Its observations and decisions are recorded as a trace,
//! which the model of `tests/convergence` must be able to replay.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use quorate::etcd_cluster::plan::names::CrashPoint;
use quorate::etcd_cluster::plan::{Step, Task};
use quorate_harness::etcd_cluster::{Cluster, small_spec};
use quorate_harness::{Isolation, TestContext, catalog, run};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::auth::wait_root_login;
use super::defragmentation::{fill_quota, wait_no_alarm};
use super::rolling_update::{wait_first_member_version, wait_update_reason, wait_version};
use super::{leader_and_follower, member_replaced, monitored};
use crate::installation::uninstall_if_present;

/// Each crash costs a lease.
const STEP_TIMEOUT: Duration = Duration::from_mins(8);
/// More than the interval between two reconciliations of a healthy cluster.
const IDLE_DELAY: Duration = Duration::from_secs(15);
/// The signal of an aborted process.
const SIGABRT: i32 = 6;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn every_action_completes_after_a_crash_at_any_crash_point() -> Result<()> {
    run("etcd-crash-points", Isolation::Serial, async |ctx| {
        uninstall_if_present(ctx).await?;
        let crds = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crds");
        let crds = crds.to_str().context("a path that is not UTF-8")?;
        ctx.admin.run(&["apply", "--filename", crds]).await?;
        let faults = FaultInjection::start(ctx)?;
        let result = tokio::select! {
            result = scenarios(ctx, &faults) => result,
            error = faults.run_operator(ctx) => Err(error),
        };
        let result = result.with_context(|| faults.log_tail());
        let kinds = ["etcdclusters", "--all", "--timeout=60s"];
        let clusters = ctx.kubectl(&[&["delete"], &kinds[..]].concat()).await;
        let deleted = ctx.admin.run(&["delete", "--filename", crds]).await;
        result.and(clusters.map(drop)).and(deleted.map(drop))
    })
    .await
}

/// Each scenario runs twice: after a crash in an action that happens once per cluster, the
/// restarted operator completes the action, and its later crash points are only reached with the
/// second cluster.
async fn scenarios(ctx: &TestContext, faults: &FaultInjection) -> Result<()> {
    for name in ["first", "second"] {
        lifecycle(ctx, name).await.context(name)?;
    }
    for name in ["third", "fourth"] {
        version_changes(ctx, name).await.context(name)?;
    }
    tls_and_auth(ctx, "fifth").await.context("fifth")?;
    for name in ["sixth", "seventh"] {
        quota_exceeded(ctx, name).await.context(name)?;
    }
    faults.is_complete()
}

/// Bootstrap, repair, rolling update and hibernation.
async fn lifecycle(ctx: &TestContext, name: &str) -> Result<()> {
    // Unschedulable initial members are replaced once the spec is fixed.
    let unschedulable = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
    let schedulable = json!({"placement": null});
    let cluster = ctx.create_cluster(name, &small_spec(3, &unschedulable)).await?;
    wait_ungated_pods(ctx, &cluster, 3).await?;
    cluster.edit(&schedulable).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.context("bootstrap")?;
    monitored(&cluster, async |monitors| {
        // While no replica leads, the status is not updated.
        monitors.invariants.allow_stale_status(true);
        delete_member_object(ctx, &cluster).await.context("a deleted EtcdMember")?;
        lose_member(ctx, &cluster).await.context("a lost volume")?;
        remove_leader(ctx, &cluster).await.context("a removed leader")?;
        // A rolling update, the leader last.
        cluster.edit(&json!({"options": {"snapshotCount": 20_000}})).await?;
        cluster.wait_updated(ctx, 3, STEP_TIMEOUT).await.context("other options")?;
        // A pod created from a bad spec is deleted.
        cluster.edit(&unschedulable).await?;
        let (_, follower) = leader_and_follower(&cluster).await?;
        let pod = cluster.pod(&follower).await?.uid();
        cluster.delete_pods(std::slice::from_ref(&follower)).await?;
        wait_new_pod(ctx, &cluster, &follower, pod).await?;
        cluster.edit(&schedulable).await?;
        cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.context("a reverted bad spec")?;
        Ok(())
    })
    .await?;
    cluster.edit(&json!({"replicas": 0})).await?;
    wait_ungated_pods(ctx, &cluster, 0).await.context("hibernation")?;
    cluster.edit(&json!({"replicas": 3})).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.context("resumption")?;
    // The steady state is recorded in the trace, too.
    tokio::time::sleep(IDLE_DELAY).await;
    cluster.delete().await
}

/// Upgrades and a downgrade; and a change with which no member starts.
async fn version_changes(ctx: &TestContext, name: &str) -> Result<()> {
    for version in ["3.5.35", "3.6.16", "3.7.3"] {
        ctx.image(&catalog::etcd_name(version)).await?;
    }
    let first = json!({"version": "3.5.35", "options": {"snapshotCount": 1000}});
    let cluster = ctx.create_cluster(name, &small_spec(3, &first)).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.context("bootstrap")?;
    monitored(&cluster, async |monitors| {
        monitors.invariants.allow_stale_status(true);
        cluster.edit(&json!({"version": "3.7.3"})).await?;
        wait_version(ctx, &cluster, "3.7.3").await.context("upgrade")?;
        cluster.edit(&json!({"version": "3.6.16"})).await?;
        wait_first_member_version(ctx, &cluster, "3.6.16").await.context("downgrade")?;
        cluster.edit(&json!({"version": "3.7.3"})).await?;
        wait_version(ctx, &cluster, "3.7.3").await.context("second upgrade")?;
        cluster.edit(&json!({"image": {"repository": "registry.invalid/etcd"}})).await?;
        wait_update_reason(ctx, &cluster, "RolledBack").await.context("a bad image")?;
        cluster.edit(&json!({"image": null})).await?;
        cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.map(drop)
    })
    .await?;
    cluster.delete().await
}

/// Peer TLS is switched off; and authentication is enabled twice, so that all crash points of each
/// action are reached.
async fn tls_and_auth(ctx: &TestContext, name: &str) -> Result<()> {
    let cluster = ctx.create_cluster(name, &small_spec(3, &json!({}))).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.context("bootstrap")?;
    monitored(&cluster, async |monitors| {
        monitors.invariants.allow_stale_status(true);
        cluster.edit(&json!({"tls": {"peer": {"source": "Disabled"}}})).await?;
        cluster.wait_updated(ctx, 3, STEP_TIMEOUT).await.context("peer TLS off")?;
        let secret = |password: &str| format!(r#"{{"stringData":{{"password":"{password}"}}}}"#);
        ctx.kubectl(&["create", "secret", "generic", "root"]).await?;
        for password in ["first", "second"] {
            let patch = format!("--patch={}", secret(password));
            ctx.kubectl(&["patch", "secret", "root", "--type=merge", &patch]).await?;
            let auth = json!({"auth": {"enabled": true, "rootSecretRef": {"name": "root"}}});
            cluster.edit(&auth).await?;
            wait_root_login(ctx, &cluster, password, Some(true))
                .await
                .context("authentication enabled")?;
            let patch = format!("--patch={}", secret("another"));
            ctx.kubectl(&["patch", "secret", "root", "--type=merge", &patch]).await?;
            wait_root_login(ctx, &cluster, "another", Some(true))
                .await
                .context("another password")?;
            cluster.edit(&json!({"auth": null})).await?;
            wait_root_login(ctx, &cluster, "another", None)
                .await
                .context("authentication disabled")?;
        }
        cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.map(drop)
    })
    .await?;
    cluster.delete().await
}

/// A cluster that exceeds its quota reclaims space, and accepts writes again.
async fn quota_exceeded(ctx: &TestContext, name: &str) -> Result<()> {
    let cluster =
        ctx.create_cluster(name, &small_spec(3, &json!({"options": {"quota": "32Mi"}}))).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.context("bootstrap")?;
    monitored(&cluster, async |monitors| {
        monitors.invariants.allow_stale_status(true);
        fill_quota(&cluster, 4).await?;
        wait_no_alarm(ctx, &cluster).await?;
        cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.map(drop)
    })
    .await?;
    cluster.delete().await
}

/// Waits until this many pods exist without a scheduling gate.
async fn wait_ungated_pods(ctx: &TestContext, cluster: &Cluster, count: usize) -> Result<()> {
    let is_gated = |pod: &Pod| {
        let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
        gates.is_some_and(|gates| !gates.is_empty())
    };
    ctx.wait_until("pods without a scheduling gate", STEP_TIMEOUT, async || {
        let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        let gated = pods.iter().filter(|pod| is_gated(pod)).count();
        let message = format!("{} pods, {gated} of them gated", pods.len());
        if pods.len() == count && gated == 0 { Ok(()) } else { Err(message) }
    })
    .await
}

async fn delete_member_object(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let (_, follower) = leader_and_follower(cluster).await?;
    let pod = cluster.pod(&follower).await?.uid();
    ctx.kubectl(&["delete", "etcdmember", &follower]).await?;
    wait_new_pod(ctx, cluster, &follower, pod).await?;
    cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.map(drop)
}

async fn lose_member(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let before = cluster.etcd.member_list().await?;
    let (_, follower) = leader_and_follower(cluster).await?;
    cluster.delete_pod_and_pvc(&follower).await?;
    let lost = before.id_of(&follower).context("the follower is not listed")?;
    member_replaced(ctx, cluster, 3, lost).await.map(drop)
}

/// A user marks the leader for removal.
async fn remove_leader(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let before = cluster.etcd.member_list().await?;
    let (leader, _) = leader_and_follower(cluster).await?;
    let patch = r#"--patch={"spec":{"intent":"Leave"}}"#;
    ctx.kubectl(&["patch", "etcdmember", &leader, "--type=merge", patch]).await?;
    let removed = before.id_of(&leader).context("the leader is not listed")?;
    member_replaced(ctx, cluster, 3, removed).await.map(drop)
}

/// Waits until a member has another pod than before.
async fn wait_new_pod(
    ctx: &TestContext,
    cluster: &Cluster,
    member: &str,
    before: Option<String>,
) -> Result<()> {
    ctx.wait_until("a new pod", STEP_TIMEOUT, async || match cluster.pod(member).await {
        Ok(pod) if pod.uid() != before => Ok(()),
        Ok(_) => Err("the old pod exists".to_owned()),
        Err(error) => Err(format!("{error:#}")),
    })
    .await
}

/// A directory with a file for each crash point that was reached, the trace, and the log.
struct FaultInjection {
    folder: PathBuf,
}

impl FaultInjection {
    fn start(ctx: &TestContext) -> Result<Self> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&ctx.namespace);
        fs::create_dir_all(&folder)?;
        File::create(folder.join("trace"))?;
        Ok(Self { folder })
    }

    /// Starts an operator, and restarts it after each injected crash. Returns only if it exits
    /// otherwise.
    async fn run_operator(&self, ctx: &TestContext) -> anyhow::Error {
        loop {
            let exited = match self.spawn_operator(ctx) {
                Ok(mut operator) => operator.wait().await,
                Err(error) => return error,
            };
            match exited {
                Ok(status) if is_injected_crash(status) => {}
                Ok(status) => return anyhow::anyhow!("the operator exited with {status}"),
                Err(error) => return error.into(),
            }
        }
    }

    fn spawn_operator(&self, ctx: &TestContext) -> Result<Child> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command
            .env("KUBECONFIG", ctx.paths.kubeconfig("admin"))
            .env("QUORATE_FAULT_INJECTION", &self.folder)
            .args(["run", "--log-format=text", "--listen=127.0.0.1:0"])
            .args(["--watch-namespace", &ctx.namespace, "--lease-namespace", &ctx.namespace])
            .args(["--lease-duration=2s", "--renew-deadline=1500ms", "--retry-period=400ms"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        Ok(command.spawn()?)
    }

    /// Fails unless the operator crashed at each crash point of each action.
    fn is_complete(&self) -> Result<()> {
        let actions = Task::NAMES.into_iter().chain(Step::NAMES);
        let all = actions
            .flat_map(|action| CrashPoint::ALL.map(|point| format!("{action}.{}", point.name())));
        let (reached, missing): (Vec<_>, Vec<_>) =
            all.partition(|name| self.folder.join(name).exists());
        ensure!(missing.is_empty(), "no crash at {}", missing.join(", "));
        println!("{} crash points, a crash at each", reached.len());
        self.save_trace()
    }

    /// Copies the trace to the requested file, without repeated records.
    fn save_trace(&self) -> Result<()> {
        let Some(path) = std::env::var_os("QUORATE_TRACE") else { return Ok(()) };
        let text = fs::read_to_string(self.folder.join("trace"))?;
        // The model replays the lifecycle scenario alone; version changes have models of their own.
        let is_lifecycle = |line: &&str| {
            let cluster = parse_record(line).ok().and_then(|record| record.get("cluster").cloned());
            cluster.is_some_and(|name| name == "first" || name == "second")
        };
        let mut lines: Vec<&str> = text.lines().filter(is_lifecycle).collect();
        lines.dedup_by_key(|line| parse_record(line).ok());
        ensure!(!lines.is_empty(), "the trace is empty");
        fs::write(Path::new(&path), lines.join("\n") + "\n")?;
        println!("{} records in {}", lines.len(), Path::new(&path).display());
        Ok(())
    }

    /// The end of the operator's log.
    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(40).collect();
        format!(
            "the end of the operator's log:\n{}",
            lines.into_iter().rev().collect::<Vec<_>>().join("\n")
        )
    }
}

/// A record without the candidate names, which are random in each observation.
fn parse_record(line: &str) -> Result<Value> {
    let mut record: Value = serde_json::from_str(line)?;
    let Some(state) = record.pointer_mut("/state").and_then(Value::as_object_mut) else {
        bail!("a record without an observed state: {line}")
    };
    ensure!(state.remove("candidate_names").is_some(), "a record without candidate names: {line}");
    Ok(record)
}

fn is_injected_crash(status: ExitStatus) -> bool {
    status.signal() == Some(SIGABRT)
}
