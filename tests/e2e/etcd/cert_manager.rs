//! Certificates from cert-manager: its controllers and CRDs run on the local cluster and issue the
//! certificates that the operator requests. A cluster waits for them, bootstraps with them, and
//! switches to managed ones and back.

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
use quorate_harness::etcd_cluster::{Cluster, member_names, small_spec};
use quorate_harness::{Isolation, TestContext};
use serde_json::{Value, json};
use tokio::process::Child;

use super::external_certificates::{der, wait_certificate_reason, wait_trust_change};
use super::pki::{TestCa, put_secret};
use super::tls_probe::{
    CLIENT_KEYS, CLIENT_PORT, ClientIdentity, Handshake, PEER_PORT, presented_certificate, probe,
};
use super::{
    CREATE_TIMEOUT, STATUS_TIMEOUT, monitored, pod_uids, same_members, with_operator,
    writes_continue,
};
use crate::installation::{set_operator_args, uninstall_if_present};

/// A kubelet takes up to two minutes to update a Secret volume.
const RENEWAL_TIMEOUT: Duration = Duration::from_mins(6);
/// The clients of this test read their Secret again within seconds.
const OVERLAP: &str = "--etcd-ca-overlap=15s";
const MODULE: &str = "github.com/cert-manager/cert-manager";

fn cert_manager_sources() -> Value {
    let source = |issuer: &str| json!({"source": "CertManager", "issuerRef": {"name": issuer}});
    json!({"tls": {"client": source("clients"), "peer": source("members")}})
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_uses_cert_manager_certificates_and_switches_back() -> Result<()> {
    with_operator("etcd-cert-manager", Isolation::Serial, async |ctx| {
        set_operator_args(ctx, &[OVERLAP]).await?;
        let crds = cert_manager_crds(ctx).await?;
        let result = issue_and_switch(ctx, &crds).await;
        // The next test needs an operator with default arguments, and no cert-manager CRDs.
        let uninstalled = uninstall_if_present(ctx).await;
        let delete = ["delete", "--ignore-not-found", "--timeout=60s", "--filename", &crds];
        let deleted = ctx.admin.run(&delete).await.map(drop);
        result.and(uninstalled).and(deleted)
    })
    .await
}

async fn issue_and_switch(ctx: &TestContext, crds: &str) -> Result<()> {
    let cluster = ctx.create_cluster("main", &small_spec(3, &cert_manager_sources())).await?;
    let (_, message) = cluster.wait_condition(ctx, "Stalled", "True", STATUS_TIMEOUT).await?;
    ensure!(message.contains("cert-manager is not installed"), "{message}");
    ensure!(cluster.pods().await?.is_empty(), "pods were created without certificates");
    ctx.admin.run(&["apply", "--server-side", "--filename", crds]).await?;
    wait_certificate_reason(
        ctx,
        &cluster,
        "WaitingForCertificate",
        "cert-manager has not created Secret",
    )
    .await?;
    let _cert_manager = start_cert_manager(ctx).await?;
    create_issuer(ctx, "clients").await?;
    create_issuer(ctx, "members").await?;
    cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
    monitored(&cluster, async |monitors| {
        let before = cluster.etcd.member_list().await?;
        presents_issued_certificates(ctx, &cluster).await?;
        renew(ctx, &cluster).await?;
        writes_continue(ctx, monitors).await?;
        let side = json!({"source": "Managed", "issuerRef": null});
        cluster.edit(&json!({"tls": {"client": side, "peer": side}})).await?;
        wait_trust_change(ctx, &cluster).await.context("to managed certificates")?;
        cluster.edit(&cert_manager_sources()).await?;
        wait_trust_change(ctx, &cluster).await.context("back to cert-manager")?;
        presents_issued_certificates(ctx, &cluster).await?;
        same_members(&cluster, &before).await?;
        writes_continue(ctx, monitors).await
    })
    .await?;
    Ok(())
}

/// The directory with cert-manager's CRDs.
async fn cert_manager_crds(ctx: &TestContext) -> Result<String> {
    let folder = CERT_MANAGER.module(CERT_MANAGER_VERSION, MODULE, &ctx.paths).await?;
    let path = folder.join("deploy/crds");
    Ok(path.to_str().context("a path that is not UTF-8")?.to_owned())
}

/// Starts cert-manager's controllers, which are killed with the test.
async fn start_cert_manager(ctx: &TestContext) -> Result<Child> {
    let programs = CERT_MANAGER.binaries(CERT_MANAGER_VERSION, &ctx.paths).await?;
    let log = std::fs::File::create(ctx.paths.log("cert-manager"))?;
    let mut command = tokio::process::Command::new(programs.join("cert-manager"));
    command.arg("--kubeconfig").arg(ctx.paths.kubeconfig("admin"));
    command.args(["--namespace", &ctx.namespace]).kill_on_drop(true);
    command.stdout(Stdio::null()).stderr(log);
    command.spawn().context("cert-manager does not start")
}

/// Creates an Issuer with a CA of its own.
async fn create_issuer(ctx: &TestContext, name: &str) -> Result<()> {
    let ca = TestCa::new(name)?;
    let pair = [("tls.crt".to_owned(), ca.pem.clone()), ("tls.key".to_owned(), ca.key())];
    put_secret(ctx, &format!("{name}-ca"), &pair.into()).await?;
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
        "spec": {"ca": {"secretName": format!("{name}-ca")}},
    });
    let objects = cert_manager_api(ctx, "Issuer", "issuers");
    let params = PatchParams::apply("a-user");
    objects.patch(name, &params, &Patch::Apply(issuer)).await?;
    Ok(())
}

fn cert_manager_api(ctx: &TestContext, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(ctx.client.clone(), &ctx.namespace, &resource)
}

/// Every member presents its own certificate on both ports, and accepts the operator's certificate.
async fn presents_issued_certificates(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    for member in member_names(&cluster.etcd.member_list().await?) {
        for (port, side) in [(CLIENT_PORT, "client"), (PEER_PORT, "peer")] {
            let client =
                identity_in(ctx, &names::cert_manager_certificate("main-operator", side)).await?;
            let own = identity_in(ctx, &names::cert_manager_certificate(&member, side)).await?;
            ensure!(
                own.certificate != client.certificate,
                "{member} has the operator's certificate"
            );
            let handshake = probe(cluster, &member, port, &client).await?;
            ensure!(handshake == Handshake::Ok, "{member}:{port}: {handshake:?}");
            let found = presented_certificate(cluster, &member, port, &client).await?;
            ensure!(
                found == der(&own.certificate)?,
                "{member}:{port} presents another certificate"
            );
        }
    }
    Ok(())
}

async fn identity_in(ctx: &TestContext, name: &str) -> Result<ClientIdentity> {
    let secret = ctx
        .api::<Secret>()
        .get(name)
        .await
        .with_context(|| format!("cannot read Secret {name}"))?;
    ensure!(!secret.owner_references().is_empty(), "{name} has no owner and would not be deleted");
    ClientIdentity::from_secret(&secret, CLIENT_KEYS)
}

/// Renews one member's certificate as `cmctl renew` does: the member presents the new one without a
/// restart.
async fn renew(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let pods = pod_uids(cluster).await?;
    let members = member_names(&cluster.etcd.member_list().await?);
    let member = members.first().context("no member is listed")?;
    let name = names::cert_manager_certificate(member, "client");
    let before = identity_in(ctx, &name).await?;
    let objects = cert_manager_api(ctx, "Certificate", "certificates");
    let now = jiff::Timestamp::now().to_string();
    let mut status =
        objects.get_status(&name).await?.data.get("status").cloned().unwrap_or_default();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    conditions.context("no conditions")?.push(json!({
        "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
        "message": "requested by an end-to-end test", "lastTransitionTime": now,
    }));
    let patch = Patch::Merge(json!({"status": status}));
    objects.patch_status(&name, &PatchParams::default(), &patch).await?;
    ctx.wait_until(
        &format!("{member} to present the renewed certificate"),
        RENEWAL_TIMEOUT,
        async || {
            let own = identity_in(ctx, &name).await.map_err(|error| format!("{error:#}"))?;
            if own.certificate == before.certificate {
                return Err("cert-manager has not issued a certificate".to_owned());
            }
            let client =
                identity_in(ctx, &names::cert_manager_certificate("main-operator", "client")).await;
            let client = client.map_err(|error| format!("{error:#}"))?;
            let found = presented_certificate(cluster, member, CLIENT_PORT, &client).await;
            let found = found.map_err(|error| format!("{error:#}"))?;
            let expected = der(&own.certificate).map_err(|error| format!("{error:#}"))?;
            if found == expected { Ok(()) } else { Err("the old one is presented".to_owned()) }
        },
    )
    .await?;
    ensure!(pod_uids(cluster).await? == pods, "a pod was recreated");
    Ok(())
}
