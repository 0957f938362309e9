//! etcd authentication: the operator and applications authenticate with their client certificates,
//! and root with a password that is in a Secret and nowhere else.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{
    CREATE_TIMEOUT, STATUS_TIMEOUT, healthy_cluster, leader_and_follower, member_replaced,
    monitored, with_operator, writes_continue,
};
use crate::installation::{NAMESPACE, leader, wait_other_leader, wait_rollout};

/// The operator reads the Secret every half minute.
const AUTH_TIMEOUT: Duration = Duration::from_mins(2);
const FIRST: &str = "correct horse";
const SECOND: &str = "battery staple";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn auth_is_enabled_and_disabled_while_a_member_and_the_leader_are_replaced() -> Result<()> {
    with_operator("etcd-auth", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let auth = json!({"auth": {"enabled": true, "rootSecretRef": {"name": "main-root"}}});
            cluster.edit(&auth).await?;
            let (reason, message) =
                cluster.wait_condition(ctx, "Stalled", "True", STATUS_TIMEOUT).await?;
            let missing = reason == "RootPasswordMissing" && message.contains("main-root");
            ensure!(missing, "{reason}: {message}");
            let login = cluster.etcd.authenticate("root", FIRST).await?;
            ensure!(login.is_none(), "authentication is enabled without a password");
            let literal = format!("--from-literal=password={FIRST}");
            ctx.kubectl(&["create", "secret", "generic", "main-root", &literal]).await?;
            wait_root_login(ctx, &cluster, FIRST, Some(true)).await?;
            wait_root_login(ctx, &cluster, SECOND, Some(false)).await?;
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            writes_continue(ctx, monitors).await.context("with authentication")?;
            rotate_password(ctx, &cluster).await?;
            writes_continue(ctx, monitors).await.context("with another password")?;
            replace_follower(ctx, &cluster).await.context("a lost member")?;
            monitors.invariants.allow_stale_status(true);
            let old = leader(ctx).await?;
            let delete = ["-n", NAMESPACE, "delete", "pod", &old.name_any(), "--wait=false"];
            ctx.admin.run(&delete).await?;
            wait_other_leader(ctx, &old).await?;
            cluster.edit(&json!({"options": {"snapshotCount": 20_000}})).await?;
            cluster.wait_updated(ctx, 3, CREATE_TIMEOUT).await.context("another leader")?;
            cluster.edit(&json!({"auth": null})).await?;
            wait_root_login(ctx, &cluster, SECOND, None).await?;
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            writes_continue(ctx, monitors).await.context("without authentication")
        })
        .await?;
        password_is_nowhere(ctx, &cluster).await?;
        wait_rollout(ctx).await
    })
    .await
}

/// Changes the password; the old one is rejected afterwards.
async fn rotate_password(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let patch = format!(r#"--patch={{"stringData":{{"password":"{SECOND}"}}}}"#);
    ctx.kubectl(&["patch", "secret", "main-root", "--type=merge", &patch]).await?;
    wait_root_login(ctx, cluster, SECOND, Some(true)).await?;
    wait_root_login(ctx, cluster, FIRST, Some(false)).await?;
    cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop)
}

async fn replace_follower(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let before = cluster.etcd.member_list().await?;
    let (_, follower) = leader_and_follower(cluster).await?;
    let id = before.id_of(&follower).context("the follower is not listed")?;
    cluster.delete_pod_and_pvc(&follower).await?;
    member_replaced(ctx, cluster, 3, id).await.map(drop)
}

/// Waits until a login as root has this outcome; `None` if authentication is disabled.
pub(super) async fn wait_root_login(
    ctx: &TestContext,
    cluster: &Cluster,
    password: &str,
    expected: Option<bool>,
) -> Result<()> {
    ctx.wait_until("the expected outcome of a login as root", AUTH_TIMEOUT, async || match cluster
        .etcd
        .authenticate("root", password)
        .await
    {
        Ok(found) if found == expected => Ok(()),
        Ok(found) => Err(format!("{found:?} instead of {expected:?}")),
        Err(error) => Err(format!("{error:#}")),
    })
    .await
}

/// Neither objects, Events nor logs contain the passwords.
async fn password_is_nowhere(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let kinds = "etcdclusters,etcdmembers,pods,events,services";
    let mut all = ctx.kubectl(&["get", kinds, "--output", "yaml"]).await?;
    let logs = ["-n", NAMESPACE, "logs", "--selector=app.kubernetes.io/name=quorate", "--tail=-1"];
    all.push_str(&ctx.admin.run(&logs).await?);
    for pod in cluster.pods().await? {
        all.push_str(&ctx.kubectl(&["logs", &pod.name_any()]).await?);
    }
    for password in [FIRST, SECOND] {
        ensure!(!all.contains(password), "a password is in an object or a log");
    }
    Ok(())
}
