//! Starting the cluster: the order of things, and nothing else.
//!
//! Every step looks first and does only what is missing, so `up` on a running cluster changes nothing, and
//! `up` on a damaged one mends it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{Api, Client};

use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::parts::{self, Plan};
use crate::places::Places;
use crate::processes::{Daemon, Ensured, must_run};
use crate::programs::{ETCD, KUBERNETES};
use crate::progress::{Step, say};
use crate::settings::{CLUSTER_DOMAIN, CONTROL_PLANE_ETCD, NODE_NAME, Settings};
use crate::{
    files, kubeconfig, leftovers, machine, network, pki, preflight, reset, sysctls, volumes, wait,
};

/// Makes the cluster run and waits until it does.
///
/// # Errors
/// If a part cannot be had, started, or does not become ready in time.
pub async fn up(settings: &Settings, places: &Places) -> Result<()> {
    machine::prepare().await?;
    let kubernetes = KUBERNETES.programs(&settings.kubernetes, places).await?;
    let etcd = ETCD.programs(CONTROL_PLANE_ETCD, places).await?;
    let coredns = catalog::image(catalog::COREDNS, places).await?;
    let pause = catalog::image(catalog::PAUSE, places).await?;
    prepare_state(settings, places).await?;

    let plan = Plan { settings, places, kubernetes, etcd };
    ensure(&plan, &parts::etcd::daemon(&plan)?).await?;
    ensure(&plan, &parts::containerd::daemon(&plan)?).await?;
    ensure(&plan, &parts::apiserver::daemon(&plan)?).await?;
    let import_images = async {
        containerd_answers(places).await?;
        pause.import(places).await?;
        coredns.import(places).await
    };
    let (client, imported) = tokio::join!(api_answers(places), import_images);
    let client = client?;
    imported?;

    let node_parts = [
        parts::controller_manager::daemon(&plan)?,
        parts::scheduler::daemon(&plan)?,
        parts::kubelet::daemon(&plan)?,
        parts::kube_proxy::daemon(&plan)?,
        parts::volumes::daemon(&plan)?,
    ];
    for daemon in &node_parts {
        ensure(&plan, daemon).await?;
    }
    let kubectl = Kubectl::admin(&settings.kubernetes, places).await?;
    kubectl.apply(&manifests(settings)).await.context("cannot apply the base manifests")?;
    ready(places, &client).await?;
    reset::remember_baseline(&client, places).await
}

/// Everything that must be there before the first part starts.
async fn prepare_state(settings: &Settings, places: &Places) -> Result<()> {
    let fresh = !leftovers::is_alive(places);
    if fresh {
        if leftovers::is_anything(places) {
            say("  a predecessor was killed and left things behind; removing them");
            leftovers::remove(places).await?;
        }
        preflight::check(places, &settings.network).await?;
    }
    files::private_folder(places.state())?;
    settings.remember(places)?;
    sysctls::remember(places)?;
    sysctls::allow_forwarding()?;
    network::ensure(&settings.network).await?;
    network::connect_all().await?;
    if fresh {
        preflight::check_ports(&settings.network)?;
    }
    pki::ensure(places, &settings.network)?;
    kubeconfig::write_all(places, &settings.network)
}

async fn ensure(plan: &Plan<'_>, daemon: &Daemon) -> Result<()> {
    if daemon.ensure(plan.places).await? == Ensured::Started {
        say(&format!("  started {}", daemon.part));
    }
    Ok(())
}

/// What a fresh cluster holds: rights of the node's parts, the name server, the StorageClass.
pub(crate) fn manifests(settings: &Settings) -> String {
    include_str!("../manifests/base.yaml")
        .replace("@DNS_ADDRESS@", &settings.network.dns.to_string())
        .replace("@COREDNS_IMAGE@", catalog::COREDNS)
        .replace("@CLUSTER_DOMAIN@", CLUSTER_DOMAIN)
        .replace("@STORAGE_CLASS@", volumes::CLASS)
        .replace("@PROVISIONER@", volumes::PROVISIONER)
}

async fn containerd_answers(places: &Places) -> Result<()> {
    wait::until("containerd to listen", Duration::from_secs(30), async || {
        must_run(places, parts::containerd::NAME)?;
        tokio::net::UnixStream::connect(places.containerd_socket()).await?;
        Ok(())
    })
    .await
}

async fn api_answers(places: &Places) -> Result<Client> {
    let client = kubeconfig::client(places, "admin").await?;
    wait::until("the API to be ready", Duration::from_secs(90), async || {
        must_run(places, parts::etcd::NAME)?;
        must_run(places, parts::apiserver::NAME)?;
        let request = http::Request::get("/readyz").body(Vec::new())?;
        client.request_text(request).await.context("/readyz")?;
        Ok(())
    })
    .await?;
    Ok(client)
}

/// The node takes pods, names resolve, and a namespace can run pods.
async fn ready(places: &Places, client: &Client) -> Result<()> {
    let step = Step::begin("waiting for the node and the name server");
    let what = "the node to be Ready and CoreDNS to be available";
    wait::until(what, Duration::from_mins(2), async || {
        for part in parts::NAMES {
            must_run(places, part)?;
        }
        node_is_ready(client).await?;
        dns_is_available(client).await?;
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
        accounts.get("default").await.context("no default service account yet")?;
        Ok(())
    })
    .await?;
    step.done("");
    Ok(())
}

async fn node_is_ready(client: &Client) -> Result<()> {
    let node = Api::<Node>::all(client.clone()).get(NODE_NAME).await.context("no node yet")?;
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    match ready {
        Some(ready) if ready.status == "True" => Ok(()),
        Some(ready) => bail!("the node is not Ready: {}", ready.message.unwrap_or_default()),
        None => bail!("the node says nothing of being Ready"),
    }
}

async fn dns_is_available(client: &Client) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), "kube-system");
    let coredns = deployments.get("coredns").await.context("no CoreDNS yet")?;
    let available = coredns.status.and_then(|status| status.available_replicas);
    match available {
        Some(1..) => Ok(()),
        Some(_) | None => bail!("CoreDNS has no available replica"),
    }
}
