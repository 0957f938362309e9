//! An operator outside the cluster that dies at every moment of every deed, once at each, and is begun again each time.
//!
//! It is a build for tests: `src/ports/rehearsal.rs` says how it is asked to die. It looks after the story's namespace
//! alone. What it sees and decides is kept as a diary, which the model of `tests/convergence` must be able to explain.

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
use quorate_harness::etcd_cluster::{Cluster, small};
use quorate_harness::{Disturbs, Story, catalog, tell};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::change::{one_runs, runs, says_because};
use super::upkeep::{fill, no_alarm};
use super::users::takes;
use super::{leader_and_follower, replaced, watched};
use crate::installed::gone;

/// Each death costs a lease.
const PATIENCE: Duration = Duration::from_mins(8);
/// More than the pause between two looks at a cluster that is well.
const REST: Duration = Duration::from_secs(15);
/// What a process ends with that ended itself.
const ABORTED: i32 = 6;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn whoever_dies_at_any_moment_of_any_deed_is_followed_by_one_who_ends_it() -> Result<()> {
    tell("etcd-rehearsed", Disturbs::Everything, async |story| {
        gone(story).await?;
        let definitions = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crds");
        let definitions = definitions.to_str().context("a path that is no text")?;
        story.admin.run(&["apply", "--filename", definitions]).await?;
        let rehearsal = Rehearsal::begin(story)?;
        let told = tokio::select! {
            told = lives(story, &rehearsal) => told,
            error = rehearsal.goes_on(story) => Err(error),
        };
        let told = told.with_context(|| rehearsal.words());
        let kinds = ["etcdclusters", "--all", "--timeout=60s"];
        let cleared = story.kubectl(&[&["delete"], &kinds[..]].concat()).await;
        let taken = story.admin.run(&["delete", "--filename", definitions]).await;
        told.and(cleared.map(drop)).and(taken.map(drop))
    })
    .await
}

/// Two lives: what happens once in a life is done by whoever comes after the first death in it, so the last moment of it is
/// one of the second.
async fn lives(story: &Story, rehearsal: &Rehearsal) -> Result<()> {
    for name in ["first", "second"] {
        life(story, name).await.context(name)?;
    }
    for name in ["third", "fourth"] {
        journey(story, name).await.context(name)?;
    }
    guarded(story, "fifth").await.context("fifth")?;
    for name in ["sixth", "seventh"] {
        crammed(story, name).await.context(name)?;
    }
    rehearsal.is_complete()
}

/// A life in which everything happens that a cluster can need.
async fn life(story: &Story, name: &str) -> Result<()> {
    // Founders that no node takes are given up once the spec is put right.
    let nowhere = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
    let anywhere = json!({"placement": null});
    let cluster = story.make_cluster(name, &small(3, &nowhere)).await?;
    wait_for_a_node(story, &cluster, 3).await?;
    cluster.edit(&anywhere).await?;
    cluster.comes(story, 3, PATIENCE).await.context("founding")?;
    watched(&cluster, async |witnesses| {
        // While nobody leads, nobody can keep the status true.
        witnesses.watchman.be_lenient(true);
        adopted(story, &cluster).await.context("a member whose object is deleted")?;
        lost(story, &cluster).await.context("a member whose volume is lost")?;
        led(story, &cluster).await.context("a leader that goes")?;
        // Members that should be different are made anew, the leader last.
        cluster.edit(&json!({"options": {"snapshotCount": 20_000}})).await?;
        cluster.is_updated(story, 3, PATIENCE).await.context("other options")?;
        // A pod that was made from a bad spec is cleared away.
        cluster.edit(&nowhere).await?;
        let (_, follower) = leader_and_follower(&cluster).await?;
        let pod = cluster.pod(&follower).await?.uid();
        cluster.lose_pods(std::slice::from_ref(&follower)).await?;
        made_again(story, &cluster, &follower, pod).await?;
        cluster.edit(&anywhere).await?;
        cluster.comes(story, 3, PATIENCE).await.context("a bad spec taken back")?;
        Ok(())
    })
    .await?;
    cluster.edit(&json!({"replicas": 0})).await?;
    wait_for_a_node(story, &cluster, 0).await.context("sleep")?;
    cluster.edit(&json!({"replicas": 3})).await?;
    cluster.comes(story, 3, PATIENCE).await.context("waking")?;
    // Whoever comes to rest writes that into the diary, too.
    tokio::time::sleep(REST).await;
    cluster.delete().await
}

/// From release to release, up and down; and a change that nobody starts with.
async fn journey(story: &Story, name: &str) -> Result<()> {
    for release in ["3.5.35", "3.6.16", "3.7.3"] {
        story.image(&catalog::etcd_name(release)).await?;
    }
    let first = json!({"version": "3.5.35", "options": {"snapshotCount": 1000}});
    let cluster = story.make_cluster(name, &small(3, &first)).await?;
    cluster.comes(story, 3, PATIENCE).await.context("founding")?;
    watched(&cluster, async |witnesses| {
        witnesses.watchman.be_lenient(true);
        cluster.edit(&json!({"version": "3.7.3"})).await?;
        runs(story, &cluster, "3.7.3").await.context("up")?;
        cluster.edit(&json!({"version": "3.6.16"})).await?;
        one_runs(story, &cluster, "3.6.16").await.context("down")?;
        cluster.edit(&json!({"version": "3.7.3"})).await?;
        runs(story, &cluster, "3.7.3").await.context("up again")?;
        cluster.edit(&json!({"image": {"repository": "registry.invalid/etcd"}})).await?;
        says_because(story, &cluster, "RolledBack").await.context("a bad image")?;
        cluster.edit(&json!({"image": null})).await?;
        cluster.comes(story, 3, PATIENCE).await.map(drop)
    })
    .await?;
    cluster.delete().await
}

/// Members change how they call each other; and etcd asks for users, twice, because each moment of what happens once is another's.
async fn guarded(story: &Story, name: &str) -> Result<()> {
    let cluster = story.make_cluster(name, &small(3, &json!({}))).await?;
    cluster.comes(story, 3, PATIENCE).await.context("founding")?;
    watched(&cluster, async |witnesses| {
        witnesses.watchman.be_lenient(true);
        cluster.edit(&json!({"tls": {"peer": {"source": "Disabled"}}})).await?;
        cluster.is_updated(story, 3, PATIENCE).await.context("no TLS among members")?;
        let secret = |password: &str| format!(r#"{{"stringData":{{"password":"{password}"}}}}"#);
        story.kubectl(&["create", "secret", "generic", "root"]).await?;
        for password in ["first", "second"] {
            let patch = format!("--patch={}", secret(password));
            story.kubectl(&["patch", "secret", "root", "--type=merge", &patch]).await?;
            let auth = json!({"auth": {"enabled": true, "rootSecretRef": {"name": "root"}}});
            cluster.edit(&auth).await?;
            takes(story, &cluster, password, Some(true)).await.context("users")?;
            let patch = format!("--patch={}", secret("another"));
            story.kubectl(&["patch", "secret", "root", "--type=merge", &patch]).await?;
            takes(story, &cluster, "another", Some(true)).await.context("another password")?;
            cluster.edit(&json!({"auth": null})).await?;
            takes(story, &cluster, "another", None).await.context("no users")?;
        }
        cluster.comes(story, 3, PATIENCE).await.map(drop)
    })
    .await?;
    cluster.delete().await
}

/// A cluster that is full makes room, and takes writes again.
async fn crammed(story: &Story, name: &str) -> Result<()> {
    let cluster =
        story.make_cluster(name, &small(3, &json!({"options": {"quota": "32Mi"}}))).await?;
    cluster.comes(story, 3, PATIENCE).await.context("founding")?;
    watched(&cluster, async |witnesses| {
        witnesses.watchman.be_lenient(true);
        fill(&cluster, 4).await?;
        no_alarm(story, &cluster).await?;
        cluster.comes(story, 3, PATIENCE).await.map(drop)
    })
    .await?;
    cluster.delete().await
}

/// Waits until there are so many pods, and all of them were let go.
async fn wait_for_a_node(story: &Story, cluster: &Cluster, count: usize) -> Result<()> {
    let is_gated = |pod: &Pod| {
        let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
        gates.is_some_and(|gates| !gates.is_empty())
    };
    story
        .wait_until("pods that nobody holds back", PATIENCE, async || {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            let gated = pods.iter().filter(|pod| is_gated(pod)).count();
            let words = format!("{} pods, {gated} of them are held back", pods.len());
            if pods.len() == count && gated == 0 { Ok(()) } else { Err(words) }
        })
        .await
}

async fn adopted(story: &Story, cluster: &Cluster) -> Result<()> {
    let (_, follower) = leader_and_follower(cluster).await?;
    let pod = cluster.pod(&follower).await?.uid();
    story.kubectl(&["delete", "etcdmember", &follower]).await?;
    made_again(story, cluster, &follower, pod).await?;
    cluster.comes(story, 3, PATIENCE).await.map(drop)
}

async fn lost(story: &Story, cluster: &Cluster) -> Result<()> {
    let before = cluster.user.listed().await?;
    let (_, follower) = leader_and_follower(cluster).await?;
    cluster.lose_member(&follower).await?;
    let lost = before.id_of(&follower).context("nobody was lost")?;
    replaced(story, cluster, 3, lost).await.map(drop)
}

/// Somebody writes by hand that the leader shall go.
async fn led(story: &Story, cluster: &Cluster) -> Result<()> {
    let before = cluster.user.listed().await?;
    let (leader, _) = leader_and_follower(cluster).await?;
    let patch = r#"--patch={"spec":{"intent":"Leave"}}"#;
    story.kubectl(&["patch", "etcdmember", &leader, "--type=merge", patch]).await?;
    let goes = before.id_of(&leader).context("nobody goes")?;
    replaced(story, cluster, 3, goes).await.map(drop)
}

/// Waits until a member has another pod than before.
async fn made_again(
    story: &Story,
    cluster: &Cluster,
    member: &str,
    before: Option<String>,
) -> Result<()> {
    story
        .wait_until("a new pod", PATIENCE, async || match cluster.pod(member).await {
            Ok(pod) if pod.uid() != before => Ok(()),
            Ok(_) => Err("the old one is still there".to_owned()),
            Err(error) => Err(format!("{error:#}")),
        })
        .await
}

/// A folder with a file for each moment that somebody died at, the diary, and the log.
struct Rehearsal {
    folder: PathBuf,
}

impl Rehearsal {
    fn begin(story: &Story) -> Result<Self> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&story.namespace);
        fs::create_dir_all(&folder)?;
        File::create(folder.join("trace"))?;
        Ok(Self { folder })
    }

    /// Begins an operator, and another one whenever it has died as it was asked to. Comes back only if it ends otherwise.
    async fn goes_on(&self, story: &Story) -> anyhow::Error {
        loop {
            let ended = match self.operator(story) {
                Ok(mut operator) => operator.wait().await,
                Err(error) => return error,
            };
            match ended {
                Ok(status) if died_as_asked(status) => {}
                Ok(status) => return anyhow::anyhow!("the operator ended with {status}"),
                Err(error) => return error.into(),
            }
        }
    }

    fn operator(&self, story: &Story) -> Result<Child> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command
            .env("KUBECONFIG", story.places.kubeconfig("admin"))
            .env("QUORATE_FAULT_INJECTION", &self.folder)
            .args(["run", "--log-format=text", "--listen=127.0.0.1:0"])
            .args(["--watch-namespace", &story.namespace, "--lease-namespace", &story.namespace])
            .args(["--lease-duration=2s", "--renew-deadline=1500ms", "--retry-period=400ms"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        Ok(command.spawn()?)
    }

    /// Whether somebody has died at each moment of each deed.
    fn is_complete(&self) -> Result<()> {
        let deeds = Task::NAMES.into_iter().chain(Step::NAMES);
        let all = deeds.flat_map(|deed| CrashPoint::ALL.map(|it| format!("{deed}.{}", it.name())));
        let (done, left): (Vec<_>, Vec<_>) = all.partition(|it| self.folder.join(it).exists());
        ensure!(left.is_empty(), "nobody has died at {}", left.join(", "));
        println!("{} moments, a death at each", done.len());
        self.keep_diary()
    }

    /// Copies the diary to where it is asked for, without what repeats.
    fn keep_diary(&self) -> Result<()> {
        let Some(path) = std::env::var_os("QUORATE_DIARY") else { return Ok(()) };
        let text = fs::read_to_string(self.folder.join("trace"))?;
        // Of journeys the model is told elsewhere.
        let is_life = |line: &&str| {
            let cluster = page(line).ok().and_then(|it| it.get("cluster").cloned());
            cluster.is_some_and(|it| it == "first" || it == "second")
        };
        let mut lines: Vec<&str> = text.lines().filter(is_life).collect();
        lines.dedup_by_key(|line| page(line).ok());
        ensure!(!lines.is_empty(), "the diary is empty");
        fs::write(Path::new(&path), lines.join("\n") + "\n")?;
        println!("{} pages in {}", lines.len(), Path::new(&path).display());
        Ok(())
    }

    /// The end of the log.
    fn words(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(40).collect();
        format!(
            "the operator said last:\n{}",
            lines.into_iter().rev().collect::<Vec<_>>().join("\n")
        )
    }
}

/// A page without the names that were free: they are others each time.
fn page(line: &str) -> Result<Value> {
    let mut page: Value = serde_json::from_str(line)?;
    let Some(seen) = page.pointer_mut("/seen").and_then(Value::as_object_mut) else {
        bail!("a page on which nothing was seen: {line}")
    };
    seen.remove("free_names");
    Ok(page)
}

fn died_as_asked(status: ExitStatus) -> bool {
    status.signal() == Some(ABORTED)
}
