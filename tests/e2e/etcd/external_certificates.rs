//! Certificates from a user's Secrets: a cluster bootstraps with them, uses renewed ones while it
//! serves, and reports what is wrong with invalid ones; and a cluster switches from managed to
//! external certificates and back.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use quorate::api::names;
use quorate_harness::etcd::MemberList;
use quorate_harness::etcd_cluster::{Cluster, condition, member_names, small_spec};
use quorate_harness::{Isolation, TestContext};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::pki::{TestCa, Usage, put_secret};
use super::tls_probe::{
    CLIENT_KEYS, CLIENT_PORT, ClientIdentity, Handshake, PEER_PORT, presented_certificate, probe,
};
use super::{
    CREATE_TIMEOUT, STATUS_TIMEOUT, healthy_cluster, monitored, pod_uids, same_members,
    with_operator, writes_continue,
};
use crate::installation::{set_operator_args, uninstall_if_present};

/// The operator reads a Secret every half minute, and a kubelet takes up to two minutes to update a
/// Secret volume.
const TRUST_CHANGE_TIMEOUT: Duration = Duration::from_mins(12);
/// The clients of these tests read their Secret again within seconds.
const OVERLAP: &str = "--etcd-ca-overlap=15s";
const CLIENT_SECRET: &str = "client-certificates";
const PEER_SECRET: &str = "peer-certificates";

fn secret_sources() -> Value {
    json!({"tls": {
        "client": {"source": "Secret", "secretRef": {"name": CLIENT_SECRET}},
        "peer": {"source": "Secret", "secretRef": {"name": PEER_SECRET}},
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_waits_for_its_certificate_secrets_and_bootstraps_with_them() -> Result<()> {
    with_operator("etcd-external-bootstrap", Isolation::Parallel, async |ctx| {
        let cluster = ctx.create_cluster("main", &small_spec(3, &secret_sources())).await?;
        let (reason, message) =
            cluster.wait_condition(ctx, "Stalled", "True", STATUS_TIMEOUT).await?;
        let missing = format!("Secret {CLIENT_SECRET} not found");
        ensure!(reason == "CertificateError" && message.contains(&missing), "{message}");
        ensure!(cluster.pods().await?.is_empty(), "pods were created without certificates");
        let (client_ca, peer_ca) = create_cas(ctx).await?;
        cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
        monitored(&cluster, async |monitors| {
            accepts_only(ctx, &cluster, &client_ca, &peer_ca).await?;
            // A certificate of the peer CA without the cluster's name does not authenticate a
            // member.
            let foreign =
                peer_ca.issue("foreign", &["elsewhere.example.com".to_owned()], Usage::Both)?;
            let client = identity(&peer_ca.pem, &foreign.certificate, &foreign.key);
            for member in member_names(&cluster.etcd.member_list().await?) {
                let handshake = probe(&cluster, &member, PEER_PORT, &client).await?;
                ensure!(
                    handshake == Handshake::Rejected,
                    "{member} accepts a foreign certificate as a peer: {handshake:?}"
                );
            }
            writes_continue(ctx, monitors).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn renewed_secrets_are_used_without_a_restart_and_invalid_ones_never() -> Result<()> {
    with_operator("etcd-external-renewed", Isolation::Parallel, async |ctx| {
        let (client_ca, peer_ca) = create_cas(ctx).await?;
        let cluster = healthy_cluster(ctx, 3, &secret_sources()).await?;
        monitored(&cluster, async |monitors| {
            let (before, pods) = (cluster.etcd.member_list().await?, pod_uids(&cluster).await?);
            invalid_secrets_are_reported(ctx, &cluster, &client_ca).await?;
            for (ca, name, port) in
                [(&client_ca, CLIENT_SECRET, CLIENT_PORT), (&peer_ca, PEER_SECRET, PEER_PORT)]
            {
                let renewed = ca.secret(&ctx.namespace)?;
                put_secret(ctx, name, &renewed).await?;
                let client = identity_from(&renewed)?;
                let expected = der(&client.certificate)?;
                for member in member_names(&before) {
                    ctx.wait_until(
                        &format!("{member}:{port} to present the new certificate"),
                        TRUST_CHANGE_TIMEOUT,
                        async || {
                            let found =
                                presented_certificate(&cluster, &member, port, &client).await;
                            let found = found.map_err(|error| format!("{error:#}"))?;
                            if found == expected {
                                Ok(())
                            } else {
                                Err("another certificate is presented".to_owned())
                            }
                        },
                    )
                    .await?;
                }
            }
            ensure!(pod_uids(&cluster).await? == pods, "a pod was recreated");
            for pod in cluster.pods().await? {
                let all =
                    pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
                ensure!(
                    all.iter().all(|status| status.restart_count == 0),
                    "an etcd container was restarted"
                );
            }
            same_members(&cluster, &before).await?;
            writes_continue(ctx, monitors).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_switches_from_managed_to_external_certificates_and_back() -> Result<()> {
    with_operator("etcd-external-switched", Isolation::Serial, async |ctx| {
        set_operator_args(ctx, &[OVERLAP]).await?;
        let result = switch_sources(ctx).await;
        // The next test needs an operator with default arguments.
        let uninstalled = uninstall_if_present(ctx).await;
        result.and(uninstalled)
    })
    .await
}

async fn switch_sources(ctx: &TestContext) -> Result<()> {
    let (client_ca, peer_ca) = create_cas(ctx).await?;
    let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
    monitored(&cluster, async |monitors| {
        let before = cluster.etcd.member_list().await?;
        let managed = managed_identities(ctx, &before).await?;
        cluster.edit(&secret_sources()).await?;
        wait_trust_change(ctx, &cluster).await.context("to external certificates")?;
        accepts_only(ctx, &cluster, &client_ca, &peer_ca).await?;
        // On the peer port the managed certificate would be rejected for its name alone.
        rejects(&cluster, &[(CLIENT_PORT, &managed[0], client_ca.pem.as_bytes())]).await?;
        // Other CAs, with all fields of the Secrets changed at once.
        let first = [client_ca.secret(&ctx.namespace)?, peer_ca.secret(&ctx.namespace)?];
        let first = [identity_from(&first[0])?, identity_from(&first[1])?];
        let (client_ca, peer_ca) = replace_cas(ctx).await?;
        wait_trust_change(ctx, &cluster).await.context("to other CAs")?;
        accepts_only(ctx, &cluster, &client_ca, &peer_ca).await?;
        let trusted_cas = [client_ca.pem.as_bytes(), peer_ca.pem.as_bytes()];
        rejects(
            &cluster,
            &[(CLIENT_PORT, &first[0], trusted_cas[0]), (PEER_PORT, &first[1], trusted_cas[1])],
        )
        .await?;
        let side = json!({"source": "Managed", "secretRef": null});
        cluster.edit(&json!({"tls": {"client": side, "peer": side}})).await?;
        wait_trust_change(ctx, &cluster).await.context("back to managed certificates")?;
        let secret = ctx.api::<Secret>().get(&names::client_secret("main")).await?;
        let application = ClientIdentity::from_secret(&secret, CLIENT_KEYS)?;
        for member in member_names(&before) {
            let handshake = probe(&cluster, &member, CLIENT_PORT, &application).await?;
            ensure!(handshake == Handshake::Ok, "{member} rejects its application: {handshake:?}");
            let external = identity_from(&client_ca.secret(&ctx.namespace)?)?;
            let handshake = probe(&cluster, &member, CLIENT_PORT, &external).await?;
            ensure!(
                handshake == Handshake::UntrustedServer,
                "{member} still presents the external certificate: {handshake:?}"
            );
        }
        let external = [client_ca.secret(&ctx.namespace)?, peer_ca.secret(&ctx.namespace)?];
        let external = [identity_from(&external[0])?, identity_from(&external[1])?];
        let trusted_cas = [&managed[0].trusted_cas[..], &managed[1].trusted_cas[..]];
        let removed = [
            (CLIENT_PORT, &external[0], trusted_cas[0]),
            (PEER_PORT, &external[1], trusted_cas[1]),
        ];
        rejects(&cluster, &removed).await?;
        same_members(&cluster, &before).await?;
        writes_continue(ctx, monitors).await
    })
    .await?;
    Ok(())
}

/// The managed client certificate, and the managed peer certificate of a member.
async fn managed_identities(ctx: &TestContext, list: &MemberList) -> Result<[ClientIdentity; 2]> {
    let client = ctx.api::<Secret>().get(&names::client_secret("main")).await?;
    let member = member_names(list).into_iter().next().context("no member is listed")?;
    let peer = ctx.api::<Secret>().get(&names::member_secret(&member)).await?;
    Ok([
        ClientIdentity::from_secret(&client, CLIENT_KEYS)?,
        ClientIdentity::from_secret(&peer, ["peer-ca.crt", "peer.crt", "peer.key"])?,
    ])
}

/// Fails unless all members reject the certificates of removed CAs. The client itself trusts the
/// members' present CA.
async fn rejects(cluster: &Cluster, removed: &[(u16, &ClientIdentity, &[u8])]) -> Result<()> {
    for member in member_names(&cluster.etcd.member_list().await?) {
        for (port, old, trusted_cas) in removed {
            let client = ClientIdentity { trusted_cas: trusted_cas.to_vec(), ..(*old).clone() };
            let handshake = probe(cluster, &member, *port, &client).await?;
            ensure!(
                handshake == Handshake::Rejected,
                "{member}:{port} accepts a certificate of a removed CA: {handshake:?}"
            );
        }
    }
    Ok(())
}

/// New CAs for clients and peers, and their Secrets.
async fn create_cas(ctx: &TestContext) -> Result<(TestCa, TestCa)> {
    put_ca_secrets(ctx, TestCa::new("client CA")?, TestCa::new("peer CA")?).await
}

/// The same with other names: members distinguish CAs by their names.
async fn replace_cas(ctx: &TestContext) -> Result<(TestCa, TestCa)> {
    put_ca_secrets(ctx, TestCa::new("second client CA")?, TestCa::new("second peer CA")?).await
}

async fn put_ca_secrets(
    ctx: &TestContext,
    client_ca: TestCa,
    peer_ca: TestCa,
) -> Result<(TestCa, TestCa)> {
    put_secret(ctx, CLIENT_SECRET, &client_ca.secret(&ctx.namespace)?).await?;
    put_secret(ctx, PEER_SECRET, &peer_ca.secret(&ctx.namespace)?).await?;
    Ok((client_ca, peer_ca))
}

/// Waits for all phases of a trust change, from its start to its completion.
pub(super) async fn wait_trust_change(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    let wait_reason = async |expected: &str| {
        ctx.wait_until(
            &format!("CertificatesValid to have the reason {expected}"),
            TRUST_CHANGE_TIMEOUT,
            async || {
                let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
                match condition(&object, "CertificatesValid") {
                    Some((_, found, message)) if found == expected => {
                        println!("CertificatesValid {found}: {message}");
                        Ok(())
                    }
                    other => Err(format!("{other:?}")),
                }
            },
        )
        .await
    };
    wait_reason("CARotationStarted").await?;
    wait_reason("CARetiring").await?;
    wait_reason("OldCARemoved").await?;
    wait_reason("Valid").await?;
    cluster.wait_updated(ctx, 3, TRUST_CHANGE_TIMEOUT).await
}

/// Fails unless every member presents a certificate of these CAs, and accepts no client certificate
/// of another CA.
async fn accepts_only(
    ctx: &TestContext,
    cluster: &Cluster,
    client_ca: &TestCa,
    peer_ca: &TestCa,
) -> Result<()> {
    let other = TestCa::new("other")?.secret(&ctx.namespace)?;
    for member in member_names(&cluster.etcd.member_list().await?) {
        for (port, ca) in [(CLIENT_PORT, client_ca), (PEER_PORT, peer_ca)] {
            let valid = identity_from(&ca.secret(&ctx.namespace)?)?;
            let (trusted_cas, other) = (valid.trusted_cas.clone(), identity_from(&other)?);
            let foreign = ClientIdentity { trusted_cas, ..other.clone() };
            let distrusting = ClientIdentity { trusted_cas: other.trusted_cas, ..valid.clone() };
            for (client, expected) in [
                (valid, Handshake::Ok),
                (foreign, Handshake::Rejected),
                (distrusting, Handshake::UntrustedServer),
            ] {
                let handshake = probe(cluster, &member, port, &client).await?;
                ensure!(
                    handshake == expected,
                    "{member}:{port}: {handshake:?} instead of {expected:?}"
                );
            }
        }
    }
    Ok(())
}

/// Each invalid Secret is reported with its problem, and no running member is affected.
async fn invalid_secrets_are_reported(
    ctx: &TestContext,
    cluster: &Cluster,
    client_ca: &TestCa,
) -> Result<()> {
    let good = client_ca.secret(&ctx.namespace)?;
    let host = format!("*.{}.svc", ctx.namespace);
    let with_leaf = |leaf: super::pki::LeafPem| {
        let mut invalid = good.clone();
        invalid.insert("tls.crt".to_owned(), leaf.certificate);
        invalid.insert("tls.key".to_owned(), leaf.key);
        invalid
    };
    let hosts = std::slice::from_ref(&host);
    let one_second = Duration::from_secs(1);
    let mut keyless = good.clone();
    keyless.remove("tls.key");
    let mut other_ca = good.clone();
    other_ca.insert("ca.crt".to_owned(), TestCa::new("other")?.pem);
    let cases: Vec<(BTreeMap<String, String>, String)> = vec![
        (keyless, "tls.key cannot be used: missing".to_owned()),
        (other_ca, "no CA of the trust bundle signed the certificate".to_owned()),
        (
            with_leaf(client_ca.issue("members", &["a.example.com".to_owned()], Usage::Both)?),
            format!("add the SAN {host}"),
        ),
        (
            with_leaf(client_ca.issue("members", hosts, Usage::Server)?),
            "the certificate lacks the required extended key usage".to_owned(),
        ),
        (
            with_leaf(client_ca.issue_for("members", hosts, Usage::Both, one_second)?),
            "the certificate has expired".to_owned(),
        ),
    ];
    let pods = pod_uids(cluster).await?;
    for (invalid, expected) in cases {
        put_secret(ctx, CLIENT_SECRET, &invalid).await?;
        wait_certificate_reason(ctx, cluster, "InvalidCertificate", &expected).await?;
    }
    ctx.api::<Secret>().delete(CLIENT_SECRET, &DeleteParams::default()).await?;
    wait_certificate_reason(ctx, cluster, "InvalidCertificate", "not found").await?;
    cluster.etcd.healthy(3).await.context("while the Secret is missing")?;
    let object = cluster.get().await?;
    let stalled = condition(&object, "Stalled").context("no Stalled condition")?;
    ensure!(stalled.0 == "True", "{stalled:?}");
    let ready = condition(&object, "Ready").context("no Ready condition")?;
    ensure!(ready.0 == "True", "members serve, and Ready is {ready:?}");
    ensure!(pod_uids(cluster).await? == pods, "a pod was recreated");
    put_secret(ctx, CLIENT_SECRET, &good).await?;
    wait_certificate_reason(ctx, cluster, "Valid", "valid").await
}

/// Waits until `CertificatesValid` has this reason, and a message that contains this text.
pub(super) async fn wait_certificate_reason(
    ctx: &TestContext,
    cluster: &Cluster,
    reason: &str,
    expected: &str,
) -> Result<()> {
    ctx.wait_until(
        &format!("CertificatesValid {reason} with {expected:?}"),
        STATUS_TIMEOUT.saturating_mul(2),
        async || {
            let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
            match condition(&object, "CertificatesValid") {
                Some((_, found, message)) if found == reason && message.contains(expected) => {
                    println!("{found}: {message}");
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            }
        },
    )
    .await
}

fn identity_from(data: &BTreeMap<String, String>) -> Result<ClientIdentity> {
    let field = |key: &str| data.get(key).with_context(|| format!("no {key}"));
    Ok(identity(field("ca.crt")?, field("tls.crt")?, field("tls.key")?))
}

fn identity(trusted_cas: &str, certificate: &str, key: &str) -> ClientIdentity {
    ClientIdentity {
        trusted_cas: trusted_cas.into(),
        certificate: certificate.into(),
        key: key.into(),
    }
}

/// The first certificate of a PEM.
pub(super) fn der(pem: &[u8]) -> Result<Vec<u8>> {
    Ok(CertificateDer::from_pem_slice(pem)?.to_vec())
}
