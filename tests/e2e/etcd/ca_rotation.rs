//! CA rotation while the cluster serves: new client connections succeed all the time.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use quorate::api::names;
use quorate_harness::etcd::EtcdClient;
use quorate_harness::etcd_cluster::{Cluster, condition, member_names};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::operator_restart::kill_leader;
use super::tls_probe::{
    CLIENT_KEYS, CLIENT_PORT, ClientIdentity, Handshake, PEER_PORT, probe, secret_field,
};
use super::{healthy_cluster, monitored, same_members, with_operator, writes_continue};
use crate::installation::{set_operator_args, uninstall_if_present, wait_rollout};

/// The clients of this test read their Secret again within seconds.
const OVERLAP: &str = "--etcd-ca-overlap=15s";
/// A kubelet takes up to two minutes to update a Secret volume, and three members are restarted
/// twice.
const ROTATION_TIMEOUT: Duration = Duration::from_mins(12);
const CONNECT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a leader election or the restart of a member may block new clients.
const CONNECT_GRACE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn ca_rotation_never_blocks_new_clients() -> Result<()> {
    with_operator("etcd-ca-rotation", Isolation::Serial, async |ctx| {
        set_operator_args(ctx, &[OVERLAP]).await?;
        let result = rotate(ctx).await;
        // The next test needs an operator with default arguments.
        let uninstalled = uninstall_if_present(ctx).await;
        result.and(uninstalled)
    })
    .await
}

async fn rotate(ctx: &TestContext) -> Result<()> {
    let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
    let (old, old_application) =
        (current_cas(ctx, &cluster).await?, application(ctx, &cluster).await?);
    monitored(&cluster, async |monitors| {
        // While no replica leads, the status is not updated.
        monitors.invariants.allow_stale_status(true);
        let before = cluster.etcd.member_list().await?;
        request_rotation(&cluster, "first").await?;
        let new_clients = connect_new_clients(ctx, &cluster);
        let phases = async {
            for (key, reason) in [
                ("next-client.crt", "CARotationStarted"),
                ("previous-client.crt", "CARetiring"),
                ("removed-client.crt", "OldCARemoved"),
            ] {
                let exists = |secret: &Secret| secret_field(secret, key).is_ok();
                wait_ca_secret(ctx, &cluster, &format!("{key} to exist"), exists).await?;
                println!("{key} exists; the leader is killed");
                kill_leader(ctx).await?;
                wait_reason(ctx, &cluster, reason).await?;
            }
            let is_complete = |secret: &Secret| {
                let keys = ["next-client.crt", "previous-client.crt", "removed-client.crt"];
                keys.iter().all(|key| secret_field(secret, key).is_err())
            };
            wait_ca_secret(ctx, &cluster, "the old CAs to be removed", is_complete).await?;
            trust_new_ca_only(ctx, &cluster, &old, &old_application).await?;
            wait_reason(ctx, &cluster, "Valid").await?;
            cluster.wait_updated(ctx, 3, ROTATION_TIMEOUT).await
        };
        tokio::select! {
            result = phases => result?,
            error = new_clients => return Err(error),
        }
        same_members(&cluster, &before).await?;
        writes_continue(ctx, monitors).await
    })
    .await?;
    wait_rollout(ctx).await
}

/// Connects new clients, each of which reads the client Secret.
async fn connect_new_clients(ctx: &TestContext, cluster: &Cluster) -> anyhow::Error {
    let (mut connections, mut last) = (0_u32, Instant::now());
    loop {
        let client = EtcdClient::of_cluster(&ctx.client, &cluster.namespace, &cluster.name);
        match client.put("new-client", &connections.to_string()).await {
            Ok(_) => (connections, last) = (connections.saturating_add(1), Instant::now()),
            Err(error) if last.elapsed() > CONNECT_GRACE => {
                return error.context(format!("no new client after {connections} connections"));
            }
            // An election, or a member that restarts.
            Err(_) => {}
        }
        tokio::time::sleep(CONNECT_INTERVAL).await;
    }
}

/// Members present certificates of the new CAs on both ports, and reject certificates of the old
/// ones.
async fn trust_new_ca_only(
    ctx: &TestContext,
    cluster: &Cluster,
    old: &[Vec<u8>; 2],
    old_application: &ClientIdentity,
) -> Result<()> {
    let new = current_cas(ctx, cluster).await?;
    let application = application(ctx, cluster).await?;
    ensure!(new.iter().zip(old).all(|(new, old)| new != old), "a CA is the same");
    ensure!(application.trusted_cas == new[0], "the client Secret has another CA");
    for member in member_names(&cluster.etcd.member_list().await?) {
        let secret = ctx.api::<Secret>().get(&names::member_secret(&member)).await?;
        let peer = ClientIdentity {
            trusted_cas: new[1].clone(),
            certificate: secret_field(&secret, "peer.crt")?,
            key: secret_field(&secret, "peer.key")?,
        };
        let with = |client: &ClientIdentity, trusted_cas: &[u8]| ClientIdentity {
            trusted_cas: trusted_cas.to_vec(),
            ..client.clone()
        };
        for (port, client, expected) in [
            (CLIENT_PORT, with(&application, &new[0]), Handshake::Ok),
            (PEER_PORT, peer.clone(), Handshake::Ok),
            (CLIENT_PORT, with(&application, &old[0]), Handshake::UntrustedServer),
            (PEER_PORT, with(&peer, &old[1]), Handshake::UntrustedServer),
            (CLIENT_PORT, with(old_application, &new[0]), Handshake::Rejected),
        ] {
            let handshake = probe(cluster, &member, port, &client).await?;
            ensure!(
                handshake == expected,
                "{member}:{port}: {handshake:?} instead of {expected:?}"
            );
        }
    }
    Ok(())
}

/// The certificates of the client CA and the peer CA.
async fn current_cas(ctx: &TestContext, cluster: &Cluster) -> Result<[Vec<u8>; 2]> {
    let secret = ctx.api::<Secret>().get(&names::ca_secret(&cluster.name)).await?;
    Ok([secret_field(&secret, "client.crt")?, secret_field(&secret, "peer.crt")?])
}

/// The identity in the client Secret.
async fn application(ctx: &TestContext, cluster: &Cluster) -> Result<ClientIdentity> {
    let secret = ctx.api::<Secret>().get(&names::client_secret(&cluster.name)).await?;
    ClientIdentity::from_secret(&secret, CLIENT_KEYS)
}

async fn request_rotation(cluster: &Cluster, request: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {names::ROTATE_CA_ANNOTATION: request}}});
    cluster.objects.patch(&cluster.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits until the CA Secret satisfies a condition.
async fn wait_ca_secret(
    ctx: &TestContext,
    cluster: &Cluster,
    what: &str,
    is_satisfied: impl Fn(&Secret) -> bool,
) -> Result<()> {
    let name = names::ca_secret(&cluster.name);
    ctx.wait_until(what, ROTATION_TIMEOUT, async || {
        let secret = ctx.api::<Secret>().get(&name).await.map_err(|error| error.to_string())?;
        let keys: Vec<_> = secret.data.iter().flatten().map(|(key, _)| key.clone()).collect();
        if is_satisfied(&secret) { Ok(()) } else { Err(format!("the keys are {keys:?}")) }
    })
    .await
}

/// Waits until `CertificatesValid` has this reason.
async fn wait_reason(ctx: &TestContext, cluster: &Cluster, reason: &str) -> Result<()> {
    ctx.wait_until(
        &format!("CertificatesValid to have the reason {reason}"),
        ROTATION_TIMEOUT,
        async || {
            let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
            match condition(&object, "CertificatesValid") {
                Some((status, found, message)) if found == reason => {
                    println!("CertificatesValid {status} {found}: {message}");
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            }
        },
    )
    .await
}
