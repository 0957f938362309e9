//! Certificates that users bring along: a cluster is founded with them, takes up others while it serves, and says what is wrong
//! with those that it cannot use; and it goes from its own to theirs and back.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use quorate::api::names;
use quorate_harness::etcd::Listed;
use quorate_harness::etcd_cluster::{Cluster, condition_of, names as members_of, small};
use quorate_harness::{Disturbs, Story};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::handshake::{CLIENT, Caller, Ended, PEER, call, part, shown};
use super::pki::{Authority, Use, put};
use super::{COMES, SAYS, are_the_same, healthy, pod_uids, watched, with_operator, writes_go_on};
use crate::installed::{gone, told};

/// A Secret is looked at every half minute, and a kubelet takes up to two minutes to hand out what was written.
const PATIENCE: Duration = Duration::from_mins(12);
/// Applications of these stories read their Secret again within seconds.
const OVERLAP: &str = "--etcd-ca-overlap=15s";
const MINE: &str = "mine";
const OURS: &str = "ours";

fn of_secrets() -> Value {
    json!({"tls": {
        "client": {"source": "Secret", "secretRef": {"name": MINE}},
        "peer": {"source": "Secret", "secretRef": {"name": OURS}},
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_waits_for_the_certificates_of_its_user_and_is_founded_with_them() -> Result<()> {
    with_operator("etcd-own-founded", Disturbs::Nothing, async |story| {
        let cluster = story.make_cluster("main", &small(3, &of_secrets())).await?;
        let (reason, words) = cluster.says(story, "Stalled", "True", SAYS).await?;
        ensure!(
            reason == "CertificateError" && words.contains("Secret mine is not there"),
            "{words}"
        );
        ensure!(cluster.pods().await?.is_empty(), "pods were made without certificates");
        let (mine, ours) = both(story).await?;
        cluster.comes(story, 3, COMES).await?;
        watched(&cluster, async |witnesses| {
            shows_only(story, &cluster, &mine, &ours).await?;
            // Whoever has a certificate of the authority and not the name of the cluster is no member.
            let stranger =
                ours.sign("stranger", &["elsewhere.example.com".to_owned()], Use::Both)?;
            let caller = caller(&ours.pem, &stranger.certificate, &stranger.key);
            for member in members_of(&cluster.user.listed().await?) {
                let ended = call(&cluster, &member, PEER, &caller).await?;
                ensure!(
                    ended == Ended::Refused,
                    "{member} takes a stranger as a member: {ended:?}"
                );
            }
            writes_go_on(story, witnesses).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn other_certificates_are_taken_up_without_a_restart_and_bad_ones_never() -> Result<()> {
    with_operator("etcd-own-renewed", Disturbs::Nothing, async |story| {
        let (mine, ours) = both(story).await?;
        let cluster = healthy(story, 3, &of_secrets()).await?;
        watched(&cluster, async |witnesses| {
            let (before, pods) = (cluster.user.listed().await?, pod_uids(&cluster).await?);
            bad_ones_are_told(story, &cluster, &mine).await?;
            for (authority, name, port) in [(&mine, MINE, CLIENT), (&ours, OURS, PEER)] {
                let fresh = authority.secret(&story.namespace)?;
                put(story, name, &fresh).await?;
                let caller = of_secret(&fresh)?;
                let wanted = der(&caller.certificate)?;
                for member in members_of(&before) {
                    story
                        .wait_until(
                            &format!("{member}:{port} to show the new one"),
                            PATIENCE,
                            async || {
                                let found = shown(&cluster, &member, port, &caller).await;
                                let found = found.map_err(|error| format!("{error:#}"))?;
                                if found == wanted {
                                    Ok(())
                                } else {
                                    Err("it shows another".to_owned())
                                }
                            },
                        )
                        .await?;
                }
            }
            ensure!(pod_uids(&cluster).await? == pods, "a pod was made anew");
            for pod in cluster.pods().await? {
                let all = pod.status.and_then(|it| it.container_statuses).unwrap_or_default();
                ensure!(all.iter().all(|it| it.restart_count == 0), "etcd was started anew");
            }
            are_the_same(&cluster, &before).await?;
            writes_go_on(story, witnesses).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_cluster_goes_from_its_own_certificates_to_its_users_and_back() -> Result<()> {
    with_operator("etcd-own-switched", Disturbs::Everything, async |story| {
        told(story, &[OVERLAP]).await?;
        let outcome = switched(story).await;
        // The next story wants an operator as it is installed.
        let left = gone(story).await;
        outcome.and(left)
    })
    .await
}

async fn switched(story: &Story) -> Result<()> {
    let (mine, ours) = both(story).await?;
    let cluster = healthy(story, 3, &json!({})).await?;
    watched(&cluster, async |witnesses| {
        let before = cluster.user.listed().await?;
        let own = own(story, &before).await?;
        cluster.edit(&of_secrets()).await?;
        settled(story, &cluster).await.context("to the user's")?;
        shows_only(story, &cluster, &mine, &ours).await?;
        // As a member it would be refused for its name already.
        refuses(&cluster, &[(CLIENT, &own[0], mine.pem.as_bytes())]).await?;
        // Another authority, with everything at once.
        let first = [mine.secret(&story.namespace)?, ours.secret(&story.namespace)?];
        let first = [of_secret(&first[0])?, of_secret(&first[1])?];
        let (mine, ours) = others(story).await?;
        settled(story, &cluster).await.context("to another authority")?;
        shows_only(story, &cluster, &mine, &ours).await?;
        let trusts = [mine.pem.as_bytes(), ours.pem.as_bytes()];
        refuses(&cluster, &[(CLIENT, &first[0], trusts[0]), (PEER, &first[1], trusts[1])]).await?;
        let side = json!({"source": "Managed", "secretRef": null});
        cluster.edit(&json!({"tls": {"client": side, "peer": side}})).await?;
        settled(story, &cluster).await.context("back")?;
        let secret = story.api::<Secret>().get(&names::client_secret("main")).await?;
        let application = caller_of(
            part(&secret, "ca.crt")?,
            part(&secret, "tls.crt")?,
            part(&secret, "tls.key")?,
        );
        for member in members_of(&before) {
            let ended = call(&cluster, &member, CLIENT, &application).await?;
            ensure!(ended == Ended::Well, "{member} does not take its own application: {ended:?}");
            let theirs = of_secret(&mine.secret(&story.namespace)?)?;
            let ended = call(&cluster, &member, CLIENT, &theirs).await?;
            ensure!(ended == Ended::NotTrusted, "{member} still shows the user's: {ended:?}");
        }
        let theirs = [mine.secret(&story.namespace)?, ours.secret(&story.namespace)?];
        let theirs = [of_secret(&theirs[0])?, of_secret(&theirs[1])?];
        let trusts = [&own[0].trusts[..], &own[1].trusts[..]];
        refuses(&cluster, &[(CLIENT, &theirs[0], trusts[0]), (PEER, &theirs[1], trusts[1])])
            .await?;
        are_the_same(&cluster, &before).await?;
        writes_go_on(story, witnesses).await
    })
    .await?;
    Ok(())
}

/// Whom the cluster's own authorities signed: an application, and a member.
async fn own(story: &Story, listed: &Listed) -> Result<[Caller; 2]> {
    let client = story.api::<Secret>().get(&names::client_secret("main")).await?;
    let member = members_of(listed).into_iter().next().context("there is nobody")?;
    let peer = story.api::<Secret>().get(&names::member_secret(&member)).await?;
    Ok([
        caller_of(part(&client, "ca.crt")?, part(&client, "tls.crt")?, part(&client, "tls.key")?),
        caller_of(part(&peer, "peer-ca.crt")?, part(&peer, "peer.crt")?, part(&peer, "peer.key")?),
    ])
}

/// Fails unless no member takes what those signed who were dropped, whom the caller of a port would take.
async fn refuses(cluster: &Cluster, dropped: &[(u16, &Caller, &[u8])]) -> Result<()> {
    for member in members_of(&cluster.user.listed().await?) {
        for (port, old, trusts) in dropped {
            let caller = Caller { trusts: trusts.to_vec(), ..(*old).clone() };
            let ended = call(cluster, &member, *port, &caller).await?;
            ensure!(ended == Ended::Refused, "{member}:{port} takes who was dropped: {ended:?}");
        }
    }
    Ok(())
}

/// New authorities for both sides, and their Secrets.
async fn both(story: &Story) -> Result<(Authority, Authority)> {
    brought(story, Authority::new("mine")?, Authority::new("ours")?).await
}

/// The same with other names: members tell authorities apart by these.
async fn others(story: &Story) -> Result<(Authority, Authority)> {
    brought(story, Authority::new("mine, later")?, Authority::new("ours, later")?).await
}

async fn brought(
    story: &Story,
    mine: Authority,
    ours: Authority,
) -> Result<(Authority, Authority)> {
    put(story, MINE, &mine.secret(&story.namespace)?).await?;
    put(story, OURS, &ours.secret(&story.namespace)?).await?;
    Ok((mine, ours))
}

/// Waits until certificates are valid, and nothing is on its way any more. It must have been first.
pub(super) async fn settled(story: &Story, cluster: &Cluster) -> Result<()> {
    let says = async |wanted: &[&str]| {
        story
            .wait_until(&format!("certificates to be {wanted:?}"), PATIENCE, async || {
                let object = cluster.look().await.map_err(|it| format!("{it:#}"))?;
                match condition_of(&object, "CertificatesValid") {
                    Some((_, why, words)) if wanted.contains(&why.as_str()) => {
                        println!("CertificatesValid {why}: {words}");
                        Ok(())
                    }
                    other => Err(format!("{other:?}")),
                }
            })
            .await
    };
    says(&["CARotationStarted"]).await?;
    says(&["CARetiring"]).await?;
    says(&["OldCARemoved"]).await?;
    says(&["Valid"]).await?;
    cluster.is_updated(story, 3, PATIENCE).await
}

/// Fails unless every member shows what these signed, and takes nobody else.
async fn shows_only(
    story: &Story,
    cluster: &Cluster,
    mine: &Authority,
    ours: &Authority,
) -> Result<()> {
    let other = Authority::new("other")?.secret(&story.namespace)?;
    for member in members_of(&cluster.user.listed().await?) {
        for (port, authority) in [(CLIENT, mine), (PEER, ours)] {
            let theirs = of_secret(&authority.secret(&story.namespace)?)?;
            let stranger = Caller { trusts: theirs.trusts.clone(), ..of_secret(&other)? };
            let blind = Caller { trusts: of_secret(&other)?.trusts, ..theirs.clone() };
            for (caller, expected) in
                [(theirs, Ended::Well), (stranger, Ended::Refused), (blind, Ended::NotTrusted)]
            {
                let ended = call(cluster, &member, port, &caller).await?;
                ensure!(
                    ended == expected,
                    "{member}:{port} ended {ended:?} instead of {expected:?}"
                );
            }
        }
    }
    Ok(())
}

/// Each Secret that cannot be used is told with words, and nothing that runs is touched.
async fn bad_ones_are_told(story: &Story, cluster: &Cluster, mine: &Authority) -> Result<()> {
    let good = mine.secret(&story.namespace)?;
    let host = format!("*.{}.svc", story.namespace);
    let with = |pair: super::pki::Pair| {
        let mut bad = good.clone();
        bad.insert("tls.crt".to_owned(), pair.certificate);
        bad.insert("tls.key".to_owned(), pair.key);
        bad
    };
    let hosts = std::slice::from_ref(&host);
    let over = Duration::from_secs(1);
    let mut keyless = good.clone();
    keyless.remove("tls.key");
    let mut others = good.clone();
    others.insert("ca.crt".to_owned(), Authority::new("other")?.pem);
    let cases: Vec<(BTreeMap<String, String>, String)> = vec![
        (keyless, "tls.key cannot be used: missing".to_owned()),
        (others, "no CA of the trust bundle signed the certificate".to_owned()),
        (
            with(mine.sign("members", &["a.example.com".to_owned()], Use::Both)?),
            format!("it must name {host}"),
        ),
        (
            with(mine.sign("members", hosts, Use::Server)?),
            "the certificate lacks the required extended key usage".to_owned(),
        ),
        (
            with(mine.sign_until("members", hosts, Use::Both, over)?),
            "the certificate has expired".to_owned(),
        ),
    ];
    let pods = pod_uids(cluster).await?;
    for (bad, wanted) in cases {
        put(story, MINE, &bad).await?;
        told_in(story, cluster, "InvalidCertificate", &wanted).await?;
    }
    story.api::<Secret>().delete(MINE, &DeleteParams::default()).await?;
    told_in(story, cluster, "InvalidCertificate", "is not there").await?;
    cluster.user.well(3).await.context("while the Secret is gone")?;
    let object = cluster.look().await?;
    let stalled = condition_of(&object, "Stalled").context("no Stalled")?;
    ensure!(stalled.0 == "True", "{stalled:?}");
    let ready = condition_of(&object, "Ready").context("no Ready")?;
    ensure!(ready.0 == "True", "members serve, and it says {ready:?}");
    ensure!(pod_uids(cluster).await? == pods, "a pod was made anew");
    put(story, MINE, &good).await?;
    told_in(story, cluster, "Valid", "valid").await
}

/// Waits until the condition about certificates has this reason, and these words.
pub(super) async fn told_in(
    story: &Story,
    cluster: &Cluster,
    reason: &str,
    wanted: &str,
) -> Result<()> {
    story
        .wait_until(
            &format!("the condition to say {wanted:?}"),
            SAYS.saturating_mul(2),
            async || {
                let object = cluster.look().await.map_err(|it| format!("{it:#}"))?;
                match condition_of(&object, "CertificatesValid") {
                    Some((_, why, words)) if why == reason && words.contains(wanted) => {
                        println!("{why}: {words}");
                        Ok(())
                    }
                    other => Err(format!("{other:?}")),
                }
            },
        )
        .await
}

fn of_secret(data: &BTreeMap<String, String>) -> Result<Caller> {
    let one = |key: &str| data.get(key).with_context(|| format!("no {key}"));
    Ok(caller(one("ca.crt")?, one("tls.crt")?, one("tls.key")?))
}

fn caller(trusts: &str, certificate: &str, key: &str) -> Caller {
    caller_of(trusts.into(), certificate.into(), key.into())
}

const fn caller_of(trusts: Vec<u8>, certificate: Vec<u8>, key: Vec<u8>) -> Caller {
    Caller { trusts, certificate, key }
}

/// The first certificate of a PEM.
pub(super) fn der(pem: &[u8]) -> Result<Vec<u8>> {
    Ok(CertificateDer::from_pem_slice(pem)?.to_vec())
}
