//! The operator is installed with one manifest, becomes ready, and holds its lease whatever happens to one
//! of its two replicas.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use quorate_harness::{Disturbs, Story, audit, catalog, tell};

const NAMESPACE: &str = "quorate-system";
const ACCOUNT: &str = "system:serviceaccount:quorate-system:quorate";
/// A new Lease is held a full lease duration (15 s) before its holder leads; two of them and some slack.
const ELECTION: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn one_manifest_installs_an_operator_that_leads_and_may_do_nothing_else() -> Result<()> {
    tell("install", Disturbs::Everything, async |story| {
        installed(story, async || {
            let pods = replicas(story).await?;
            ensure!(pods.len() == 2, "{} replicas", pods.len());
            let leader = leader(story).await?;
            ensure!(pods.iter().any(|pod| pod.name_any() == leader.name_any()), "a stranger leads");
            for pod in &pods {
                let own = metric(story, &pod.name_any(), "quorate_leader").await?;
                let expected = if pod.name_any() == leader.name_any() { "1" } else { "0" };
                ensure!(own == expected, "{} says quorate_leader {own}", pod.name_any());
                let ready = get(story, &pod.name_any(), "readyz").await?;
                ensure!(ready.contains("kubernetes-api"), "/readyz says {ready:?}");
            }
            only_these_rights(story).await?;
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_leaves_or_hangs_the_other_replica_takes_over() -> Result<()> {
    tell("takeover", Disturbs::Everything, async |story| {
        installed(story, async || {
            let first = leader(story).await?;
            let start = audit::mark(&story.places)?;
            story
                .admin
                .run(&["-n", NAMESPACE, "delete", "pod", &first.name_any(), "--wait=false"])
                .await?;
            let second = another_leader(story, &first).await?;

            // A leader that hangs does not hold up the others, and learns that it leads no more.
            let hanging = story.stop_pod(&second)?;
            let third = another_leader(story, &second).await?;
            drop(hanging);
            story
                .wait_until(
                    "the replica that hung to know that it does not lead",
                    ELECTION,
                    async || match metric(story, &second.name_any(), "quorate_leader").await {
                        Ok(value) if value == "0" => Ok(()),
                        other => Err(format!("{other:?}")),
                    },
                )
                .await?;
            let still = leader(story).await?;
            ensure!(still.name_any() == third.name_any(), "{} leads again", still.name_any());

            only_leases_were_written(story, start)
        })
        .await
    })
    .await
}

/// What the operator may do beyond any service account, in its own namespace and in another.
async fn only_these_rights(story: &Story) -> Result<()> {
    let anybody = format!("system:serviceaccount:{}:default", story.namespace);
    let in_its_own = [
        "leases.coordination.k8s.io [] [] [create]",
        "leases.coordination.k8s.io [] [quorate] [get update]",
    ];
    for (namespace, expected) in [(NAMESPACE, &in_its_own[..]), (&story.namespace, &[])] {
        let of_anybody = rights(story, &anybody, namespace).await?;
        let mut special = rights(story, ACCOUNT, namespace).await?;
        special.retain(|right| !of_anybody.contains(right));
        ensure!(special == expected, "in {namespace} it may:\n{}", special.join("\n"));
    }
    Ok(())
}

async fn rights(story: &Story, account: &str, namespace: &str) -> Result<Vec<String>> {
    let list = ["auth", "can-i", "--list", "--no-headers", "--as", account, "-n", namespace];
    let listed = story.admin.run(&list).await?;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rights: Vec<String> = listed.lines().map(words).collect();
    rights.sort();
    Ok(rights)
}

fn only_leases_were_written(story: &Story, since: audit::Mark) -> Result<()> {
    let mut writes = audit::since(&story.places, since)?;
    writes.retain(|write| write.user.username == ACCOUNT);
    ensure!(!writes.is_empty(), "the audit log knows nothing of the operator");
    for write in writes {
        ensure!(write.object_ref.resource == "leases", "it wrote {:?}", write.object_ref);
        // A conflict is no harm: two replicas may try at once, and one of them wins.
        ensure!(write.response_status.code != 403, "forbidden: {:?}", write.object_ref);
    }
    Ok(())
}

/// Installs, lets the story go on, and uninstalls in either case.
async fn installed(story: &Story, then: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    story.image(catalog::QUORATE).await?;
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/install.yaml");
    let manifest = manifest.to_str().context("a path that is no text")?;
    story.admin.run(&["apply", "--filename", manifest]).await?;
    let told = async {
        story
            .admin
            .run(&["-n", NAMESPACE, "rollout", "status", "deployment/quorate", "--timeout=120s"])
            .await?;
        then().await
    };
    let told = told.await;
    let told = match told {
        Ok(()) => Ok(()),
        Err(error) => {
            let seen = quorate_harness::diagnosis::of_namespace(&story.client, NAMESPACE).await;
            Err(error.context(format!("in {NAMESPACE}:\n{seen}")))
        }
    };
    story.admin.run(&["delete", "--filename", manifest, "--timeout=60s"]).await?;
    told
}

async fn replicas(story: &Story) -> Result<Vec<Pod>> {
    let pods = Api::<Pod>::namespaced(story.client.clone(), NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/name=quorate");
    let listed = pods.list(&ours).await?.items;
    Ok(listed.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
}

/// The replica that the Lease names, once it says itself that it leads.
async fn leader(story: &Story) -> Result<Pod> {
    story.wait_until("a replica to lead", ELECTION, async || find_leader(story).await).await
}

async fn another_leader(story: &Story, than: &Pod) -> Result<Pod> {
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
async fn metric(story: &Story, pod: &str, name: &str) -> Result<String> {
    let page = get(story, pod, "metrics").await?;
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.with_context(|| format!("no {name} in: {page}"))?;
    Ok(line.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// A page of a replica's plain port, through the apiserver.
async fn get(story: &Story, pod: &str, page: &str) -> Result<String> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/{page}");
    tokio::time::timeout(Duration::from_secs(5), story.kubectl(&["get", "--raw", &path])).await?
}
