//! etcd asks for users: the operator and the applications are known by their certificates, and root by a password that is in a
//! Secret and nowhere else.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{
    COMES, SAYS, healthy, leader_and_follower, replaced, watched, with_operator, writes_go_on,
};
use crate::installed::{NAMESPACE, another_leader, leader, rolled_out};

/// A changed Secret is seen within half a minute.
const SEEN: Duration = Duration::from_mins(2);
const FIRST: &str = "correct horse";
const SECOND: &str = "battery staple";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn users_come_and_go_and_members_and_operators_are_replaced_meanwhile() -> Result<()> {
    with_operator("etcd-users", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let auth = json!({"auth": {"enabled": true, "rootSecretRef": {"name": "main-root"}}});
            cluster.edit(&auth).await?;
            let (why, words) = cluster.says(story, "Stalled", "True", SAYS).await?;
            ensure!(why == "RootPasswordMissing" && words.contains("main-root"), "{why}: {words}");
            ensure!(cluster.user.takes("root", FIRST).await?.is_none(), "nobody has a password");
            let literal = format!("--from-literal=password={FIRST}");
            story.kubectl(&["create", "secret", "generic", "main-root", &literal]).await?;
            takes(story, &cluster, FIRST, Some(true)).await?;
            takes(story, &cluster, SECOND, Some(false)).await?;
            cluster.comes(story, 3, COMES).await?;
            writes_go_on(story, witnesses).await.context("with users")?;
            rotated(story, &cluster).await?;
            writes_go_on(story, witnesses).await.context("with another password")?;
            lost(story, &cluster).await.context("a member is lost")?;
            witnesses.watchman.be_lenient(true);
            let old = leader(story).await?;
            let delete = ["-n", NAMESPACE, "delete", "pod", &old.name_any(), "--wait=false"];
            story.admin.run(&delete).await?;
            another_leader(story, &old).await?;
            cluster.edit(&json!({"options": {"snapshotCount": 20_000}})).await?;
            cluster.is_updated(story, 3, COMES).await.context("another operator")?;
            cluster.edit(&json!({"auth": null})).await?;
            takes(story, &cluster, SECOND, None).await?;
            cluster.comes(story, 3, COMES).await?;
            writes_go_on(story, witnesses).await.context("without users")
        })
        .await?;
        is_told_nowhere(story, &cluster).await?;
        rolled_out(story).await
    })
    .await
}

/// The password is another one, and the old one is refused.
async fn rotated(story: &Story, cluster: &Cluster) -> Result<()> {
    let patch = format!(r#"--patch={{"stringData":{{"password":"{SECOND}"}}}}"#);
    story.kubectl(&["patch", "secret", "main-root", "--type=merge", &patch]).await?;
    takes(story, cluster, SECOND, Some(true)).await?;
    takes(story, cluster, FIRST, Some(false)).await?;
    cluster.comes(story, 3, COMES).await.map(drop)
}

async fn lost(story: &Story, cluster: &Cluster) -> Result<()> {
    let before = cluster.user.listed().await?;
    let (_, follower) = leader_and_follower(cluster).await?;
    let id = before.id_of(&follower).context("nobody was lost")?;
    cluster.lose_member(&follower).await?;
    replaced(story, cluster, 3, id).await.map(drop)
}

/// Waits until etcd says this of root with a password.
pub(super) async fn takes(
    story: &Story,
    cluster: &Cluster,
    password: &str,
    expected: Option<bool>,
) -> Result<()> {
    story
        .wait_until("etcd to say what it should of root", SEEN, async || {
            match cluster.user.takes("root", password).await {
                Ok(found) if found == expected => Ok(()),
                Ok(found) => Err(format!("{found:?} instead of {expected:?}")),
                Err(error) => Err(format!("{error:#}")),
            }
        })
        .await
}

/// Neither the objects nor the Events nor the operators' logs have the passwords.
async fn is_told_nowhere(story: &Story, cluster: &Cluster) -> Result<()> {
    let kinds = "etcdclusters,etcdmembers,pods,events,services";
    let mut all = story.kubectl(&["get", kinds, "--output", "yaml"]).await?;
    let logs = ["-n", NAMESPACE, "logs", "--selector=app.kubernetes.io/name=quorate", "--tail=-1"];
    all.push_str(&story.admin.run(&logs).await?);
    for pod in cluster.pods().await? {
        all.push_str(&story.kubectl(&["logs", &pod.name_any()]).await?);
    }
    for password in [FIRST, SECOND] {
        ensure!(!all.contains(password), "a password is told somewhere");
    }
    Ok(())
}
