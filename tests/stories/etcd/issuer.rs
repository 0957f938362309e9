//! Certificates from cert-manager: its own controllers run beside the cluster, with its own definitions, and sign what the
//! operator asks for. A cluster waits for them, is founded with what they sign, and goes back to its own.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use quorate::api::names;
use quorate_cluster::binaries::CERT_MANAGER;
use quorate_cluster::settings::CERT_MANAGER_VERSION;
use quorate_harness::etcd_cluster::{Cluster, names as members_of, small};
use quorate_harness::{Disturbs, Story};
use serde_json::{Value, json};
use tokio::process::Child;

use super::handshake::{CLIENT, Caller, Ended, PEER, call, part};
use super::pki::{Authority, put};
use super::sources::{settled, told_in};
use super::{COMES, SAYS, are_the_same, pod_uids, watched, with_operator, writes_go_on};
use crate::installed::{gone, told};

/// A kubelet takes up to two minutes to hand out what was written.
const PATIENCE: Duration = Duration::from_mins(6);
/// Applications of this story read their Secret again within seconds.
const OVERLAP: &str = "--etcd-ca-overlap=15s";
const MODULE: &str = "github.com/cert-manager/cert-manager";

fn issued() -> Value {
    let side = |issuer: &str| json!({"source": "CertManager", "issuerRef": {"name": issuer}});
    json!({"tls": {"client": side("clients"), "peer": side("members")}})
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn cert_manager_signs_for_a_cluster_and_is_left_again() -> Result<()> {
    with_operator("etcd-issued", Disturbs::Everything, async |story| {
        told(story, &[OVERLAP]).await?;
        let definitions = definitions(story).await?;
        let outcome = signed(story, &definitions).await;
        // The next story wants an operator as it is installed, and nobody knows of Certificates there.
        let left = gone(story).await;
        let delete = ["delete", "--ignore-not-found", "--timeout=60s", "--filename", &definitions];
        let forgotten = story.admin.run(&delete).await.map(drop);
        outcome.and(left).and(forgotten)
    })
    .await
}

async fn signed(story: &Story, definitions: &str) -> Result<()> {
    let cluster = story.make_cluster("main", &small(3, &issued())).await?;
    let (_, words) = cluster.says(story, "Stalled", "True", SAYS).await?;
    ensure!(words.contains("cert-manager is not installed"), "{words}");
    ensure!(cluster.pods().await?.is_empty(), "pods were made without certificates");
    story.admin.run(&["apply", "--server-side", "--filename", definitions]).await?;
    told_in(story, &cluster, "WaitingForCertificate", "cert-manager has not made the Secret")
        .await?;
    let _manager = manager(story).await?;
    issuer(story, "clients").await?;
    issuer(story, "members").await?;
    cluster.comes(story, 3, COMES).await?;
    watched(&cluster, async |witnesses| {
        let before = cluster.user.listed().await?;
        shows_what_was_issued(story, &cluster).await?;
        renewed(story, &cluster).await?;
        writes_go_on(story, witnesses).await?;
        let side = json!({"source": "Managed", "issuerRef": null});
        cluster.edit(&json!({"tls": {"client": side, "peer": side}})).await?;
        settled(story, &cluster).await.context("to its own")?;
        cluster.edit(&issued()).await?;
        settled(story, &cluster).await.context("to the issuers again")?;
        shows_what_was_issued(story, &cluster).await?;
        are_the_same(&cluster, &before).await?;
        writes_go_on(story, witnesses).await
    })
    .await?;
    Ok(())
}

/// The folder with cert-manager's own definitions.
async fn definitions(story: &Story) -> Result<String> {
    let folder = CERT_MANAGER.module(CERT_MANAGER_VERSION, MODULE, &story.places).await?;
    let path = folder.join("deploy/crds");
    Ok(path.to_str().context("a path that is no text")?.to_owned())
}

/// cert-manager's controllers, which end with the story.
async fn manager(story: &Story) -> Result<Child> {
    let programs = CERT_MANAGER.binaries(CERT_MANAGER_VERSION, &story.places).await?;
    let log = std::fs::File::create(story.places.log("cert-manager"))?;
    let mut command = tokio::process::Command::new(programs.join("cert-manager"));
    command.arg("--kubeconfig").arg(story.places.kubeconfig("admin"));
    command.args(["--namespace", &story.namespace]).kill_on_drop(true);
    command.stdout(Stdio::null()).stderr(log);
    command.spawn().context("cert-manager does not start")
}

/// An issuer that signs with an authority of its own.
async fn issuer(story: &Story, name: &str) -> Result<()> {
    let authority = Authority::new(name)?;
    let pair =
        [("tls.crt".to_owned(), authority.pem.clone()), ("tls.key".to_owned(), authority.key())];
    put(story, &format!("{name}-ca"), &pair.into()).await?;
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
        "spec": {"ca": {"secretName": format!("{name}-ca")}},
    });
    let objects = of_kind(story, "Issuer", "issuers");
    let params = PatchParams::apply("a-user");
    objects.patch(name, &params, &Patch::Apply(issuer)).await?;
    Ok(())
}

fn of_kind(story: &Story, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(story.client.clone(), &story.namespace, &resource)
}

/// Every member shows its own certificate on both ports, and takes what the issuer signed for the operator.
async fn shows_what_was_issued(story: &Story, cluster: &Cluster) -> Result<()> {
    for member in members_of(&cluster.user.listed().await?) {
        for (port, side) in [(CLIENT, "client"), (PEER, "peer")] {
            let caller =
                of_secret(story, &names::cert_manager_certificate("main-operator", side)).await?;
            let own = of_secret(story, &names::cert_manager_certificate(&member, side)).await?;
            ensure!(
                own.certificate != caller.certificate,
                "{member} has the operator's certificate"
            );
            let ended = call(cluster, &member, port, &caller).await?;
            ensure!(ended == Ended::Well, "{member}:{port} ended {ended:?}");
            let found = super::handshake::shown(cluster, &member, port, &caller).await?;
            ensure!(
                found == super::sources::der(&own.certificate)?,
                "{member}:{port} shows another"
            );
        }
    }
    Ok(())
}

async fn of_secret(story: &Story, name: &str) -> Result<Caller> {
    let secret =
        story.api::<Secret>().get(name).await.with_context(|| format!("no Secret {name}"))?;
    ensure!(!secret.owner_references().is_empty(), "{name} would be left behind");
    Ok(Caller {
        trusts: part(&secret, "ca.crt")?,
        certificate: part(&secret, "tls.crt")?,
        key: part(&secret, "tls.key")?,
    })
}

/// Asks cert-manager to sign once more for one member, as `cmctl renew` does: it is shown, and nobody restarts.
async fn renewed(story: &Story, cluster: &Cluster) -> Result<()> {
    let pods = pod_uids(cluster).await?;
    let members = members_of(&cluster.user.listed().await?);
    let member = members.first().context("there is nobody")?;
    let name = names::cert_manager_certificate(member, "client");
    let before = of_secret(story, &name).await?;
    let objects = of_kind(story, "Certificate", "certificates");
    let now = jiff::Timestamp::now().to_string();
    let mut status =
        objects.get_status(&name).await?.data.get("status").cloned().unwrap_or_default();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    conditions.context("no conditions")?.push(json!({
        "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
        "message": "asked for by a story", "lastTransitionTime": now,
    }));
    let patch = Patch::Merge(json!({"status": status}));
    objects.patch_status(&name, &PatchParams::default(), &patch).await?;
    story
        .wait_until(&format!("{member} to show another certificate"), PATIENCE, async || {
            let own = of_secret(story, &name).await.map_err(|error| format!("{error:#}"))?;
            if own.certificate == before.certificate {
                return Err("cert-manager has not signed".to_owned());
            }
            let caller =
                of_secret(story, &names::cert_manager_certificate("main-operator", "client")).await;
            let caller = caller.map_err(|error| format!("{error:#}"))?;
            let found = super::handshake::shown(cluster, member, CLIENT, &caller).await;
            let found = found.map_err(|error| format!("{error:#}"))?;
            let wanted =
                super::sources::der(&own.certificate).map_err(|error| format!("{error:#}"))?;
            if found == wanted { Ok(()) } else { Err("it shows the old one".to_owned()) }
        })
        .await?;
    ensure!(pod_uids(cluster).await? == pods, "a pod was made anew");
    Ok(())
}
