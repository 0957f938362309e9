//! Certificate authorities give way to others while the cluster serves, and applications are let in all the time.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use quorate::api::names;
use quorate_harness::etcd::EtcdUser;
use quorate_harness::etcd_cluster::{Cluster, condition_of, names as members_of};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::handshake::{CLIENT, Caller, Ended, PEER, call, part};
use super::interrupted::die;
use super::{are_the_same, healthy, watched, with_operator, writes_go_on};
use crate::installed::{gone, rolled_out, told};

/// Applications of these stories read their Secret again within seconds.
const OVERLAP: &str = "--etcd-ca-overlap=15s";
/// A kubelet takes up to two minutes to hand out what was written, and three members are started anew twice.
const PATIENCE: Duration = Duration::from_mins(12);
const OFTEN: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn authorities_give_way_to_others_and_nobody_is_cut_off() -> Result<()> {
    with_operator("etcd-authorities", Disturbs::Everything, async |story| {
        told(story, &[OVERLAP]).await?;
        let outcome = rotated(story).await;
        // The next story wants an operator as it is installed.
        let left = gone(story).await;
        outcome.and(left)
    })
    .await
}

async fn rotated(story: &Story) -> Result<()> {
    let cluster = healthy(story, 3, &json!({})).await?;
    let (old, old_application) =
        (authorities(story, &cluster).await?, application(story, &cluster).await?);
    watched(&cluster, async |witnesses| {
        // While nobody leads, nobody can keep the status true.
        witnesses.watchman.be_lenient(true);
        let before = cluster.user.listed().await?;
        ask_for(&cluster, "first").await?;
        let strangers = strangers(story, &cluster);
        let turns = async {
            for (key, reason) in [
                ("next-client.crt", "CARotationStarted"),
                ("previous-client.crt", "CARetiring"),
                ("removed-client.crt", "OldCARemoved"),
            ] {
                reached(story, &cluster, &format!("{key} to be there"), |it| part(it, key).is_ok())
                    .await?;
                println!("{key} is there; the operator dies");
                die(story).await?;
                says(story, &cluster, reason).await?;
            }
            let is_over = |it: &Secret| {
                let keys = ["next-client.crt", "previous-client.crt", "removed-client.crt"];
                keys.iter().all(|key| part(it, key).is_err())
            };
            reached(story, &cluster, "the old authorities to be gone", is_over).await?;
            trust_only(story, &cluster, &old, &old_application).await?;
            says(story, &cluster, "Valid").await?;
            cluster.is_updated(story, 3, PATIENCE).await
        };
        tokio::select! {
            told = turns => told?,
            shut_out = strangers => return Err(shut_out),
        }
        are_the_same(&cluster, &before).await?;
        writes_go_on(story, witnesses).await
    })
    .await?;
    rolled_out(story).await
}

/// Each look is that of somebody new, who reads the Secret for applications.
async fn strangers(story: &Story, cluster: &Cluster) -> anyhow::Error {
    let (mut looks, mut silent) = (0_u32, Instant::now());
    loop {
        let stranger = EtcdUser::of_cluster(&story.client, &cluster.namespace, &cluster.name);
        match stranger.put("stranger", &looks.to_string()).await {
            Ok(_) => (looks, silent) = (looks.saturating_add(1), Instant::now()),
            Err(error) if silent.elapsed() > Duration::from_secs(20) => {
                return error.context(format!("nobody new is let in after {looks} looks"));
            }
            // A leader is chosen, or a member that was just asked ends.
            Err(_) => {}
        }
        tokio::time::sleep(OFTEN).await;
    }
}

/// Members show what the new authorities signed, on both ports, and take nothing that the old ones signed.
async fn trust_only(
    story: &Story,
    cluster: &Cluster,
    old: &[Vec<u8>; 2],
    old_application: &Caller,
) -> Result<()> {
    let new = authorities(story, cluster).await?;
    let application = application(story, cluster).await?;
    ensure!(new.iter().zip(old).all(|(new, old)| new != old), "an authority is the same");
    ensure!(application.trusts == new[0], "the application is told to trust others");
    for member in members_of(&cluster.user.listed().await?) {
        let secret = story.api::<Secret>().get(&names::member_secret(&member)).await?;
        let peer = Caller {
            trusts: new[1].clone(),
            certificate: part(&secret, "peer.crt")?,
            key: part(&secret, "peer.key")?,
        };
        let with =
            |caller: &Caller, trusts: &[u8]| Caller { trusts: trusts.to_vec(), ..caller.clone() };
        for (port, caller, expected) in [
            (CLIENT, with(&application, &new[0]), Ended::Well),
            (PEER, peer.clone(), Ended::Well),
            (CLIENT, with(&application, &old[0]), Ended::NotTrusted),
            (PEER, with(&peer, &old[1]), Ended::NotTrusted),
            (CLIENT, with(old_application, &new[0]), Ended::Refused),
        ] {
            let ended = call(cluster, &member, port, &caller).await?;
            ensure!(ended == expected, "{member}:{port} ended {ended:?} instead of {expected:?}");
        }
    }
    Ok(())
}

/// The certificates of those who sign: for clients, and for members.
async fn authorities(story: &Story, cluster: &Cluster) -> Result<[Vec<u8>; 2]> {
    let secret = story.api::<Secret>().get(&names::ca_secret(&cluster.name)).await?;
    Ok([part(&secret, "client.crt")?, part(&secret, "peer.crt")?])
}

/// What applications are given.
async fn application(story: &Story, cluster: &Cluster) -> Result<Caller> {
    let secret = story.api::<Secret>().get(&names::client_secret(&cluster.name)).await?;
    Ok(Caller {
        trusts: part(&secret, "ca.crt")?,
        certificate: part(&secret, "tls.crt")?,
        key: part(&secret, "tls.key")?,
    })
}

async fn ask_for(cluster: &Cluster, word: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {names::ROTATE_CA_ANNOTATION: word}}});
    cluster.objects.patch(&cluster.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits for the Secret of the authorities to be so.
async fn reached(
    story: &Story,
    cluster: &Cluster,
    what: &str,
    is_so: impl Fn(&Secret) -> bool,
) -> Result<()> {
    let name = names::ca_secret(&cluster.name);
    story
        .wait_until(what, PATIENCE, async || {
            let secret = story.api::<Secret>().get(&name).await.map_err(|it| it.to_string())?;
            let keys: Vec<_> = secret.data.iter().flatten().map(|(key, _)| key.clone()).collect();
            if is_so(&secret) { Ok(()) } else { Err(format!("there are {keys:?}")) }
        })
        .await
}

/// Waits until the condition about certificates has this reason.
async fn says(story: &Story, cluster: &Cluster, reason: &str) -> Result<()> {
    story
        .wait_until(&format!("certificates to be {reason}"), PATIENCE, async || {
            let object = cluster.look().await.map_err(|it| format!("{it:#}"))?;
            match condition_of(&object, "CertificatesValid") {
                Some((status, why, words)) if why == reason => {
                    println!("CertificatesValid {status} {why}: {words}");
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            }
        })
        .await
}
