//! Starts the cluster: the order of the steps.
//!
//! Every step is idempotent, so `up` changes nothing on a running cluster and repairs a damaged
//! one.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{Api, Client};

use crate::binaries::{ETCD, KUBERNETES};
use crate::components::{self, Plan};
use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::paths::Paths;
use crate::processes::{Daemon, Ensured, must_run};
use crate::progress::{Step, log};
use crate::settings::{CLUSTER_DOMAIN, CONTROL_PLANE_ETCD, NODE_NAME, Settings};
use crate::{
    files, host, kubeconfig, network, pki, preflight, reset, stale_resources, sysctls, volumes,
    wait,
};

/// Starts the cluster and waits until it is ready.
///
/// # Errors
/// If a component cannot be built or started, or does not become ready in time.
pub async fn up(settings: &Settings, paths: &Paths) -> Result<()> {
    host::prepare().await?;
    let kubernetes = KUBERNETES.binaries(&settings.kubernetes, paths).await?;
    let etcd = ETCD.binaries(CONTROL_PLANE_ETCD, paths).await?;
    let coredns = catalog::image(catalog::COREDNS, paths).await?;
    let pause = catalog::image(catalog::PAUSE, paths).await?;
    prepare_state(settings, paths).await?;

    let plan = Plan { settings, paths, kubernetes, etcd };
    ensure(&plan, &components::etcd::daemon(&plan)?).await?;
    ensure(&plan, &components::containerd::daemon(&plan)?).await?;
    ensure(&plan, &components::apiserver::daemon(&plan)?).await?;
    let import_images = async {
        wait_for_containerd(paths).await?;
        pause.import(paths).await?;
        coredns.import(paths).await
    };
    let (client, imported) = tokio::join!(wait_for_api(paths), import_images);
    let client = client?;
    imported?;

    let node_components = [
        components::controller_manager::daemon(&plan)?,
        components::scheduler::daemon(&plan)?,
        components::kubelet::daemon(&plan)?,
        components::kube_proxy::daemon(&plan)?,
        components::volumes::daemon(&plan)?,
    ];
    for daemon in &node_components {
        ensure(&plan, daemon).await?;
    }
    let kubectl = Kubectl::admin(&settings.kubernetes, paths).await?;
    kubectl.apply(&manifests(settings)).await.context("cannot apply the base manifests")?;
    ready(paths, &client).await?;
    reset::record_baseline(&client, paths).await
}

/// Prepares everything that the first component needs.
async fn prepare_state(settings: &Settings, paths: &Paths) -> Result<()> {
    let fresh = !stale_resources::is_alive(paths);
    if fresh {
        if stale_resources::any_exist(paths) {
            log("  removing stale resources of an interrupted run");
            stale_resources::remove(paths).await?;
        }
        preflight::check(paths, &settings.network).await?;
    }
    files::private_folder(paths.state())?;
    settings.record(paths)?;
    sysctls::record(paths)?;
    sysctls::allow_forwarding()?;
    network::ensure(&settings.network).await?;
    network::connect_all().await?;
    if fresh {
        preflight::check_ports(&settings.network)?;
    }
    pki::ensure(paths, &settings.network)?;
    kubeconfig::write_all(paths, &settings.network)
}

async fn ensure(plan: &Plan<'_>, daemon: &Daemon) -> Result<()> {
    if daemon.ensure(plan.paths).await? == Ensured::Started {
        log(&format!("  started {}", daemon.component));
    }
    Ok(())
}

/// The objects of a fresh cluster: permissions of components, the name server, the StorageClass.
pub(crate) fn manifests(settings: &Settings) -> String {
    include_str!("../manifests/base.yaml")
        .replace("@DNS_ADDRESS@", &settings.network.dns.to_string())
        .replace("@COREDNS_IMAGE@", catalog::COREDNS)
        .replace("@CLUSTER_DOMAIN@", CLUSTER_DOMAIN)
        .replace("@STORAGE_CLASS@", volumes::CLASS)
        .replace("@PROVISIONER@", volumes::PROVISIONER)
}

async fn wait_for_containerd(paths: &Paths) -> Result<()> {
    wait::until("containerd to listen", Duration::from_secs(30), async || {
        must_run(paths, components::containerd::NAME)?;
        tokio::net::UnixStream::connect(paths.containerd_socket()).await?;
        Ok(())
    })
    .await
}

async fn wait_for_api(paths: &Paths) -> Result<Client> {
    let client = kubeconfig::client(paths, "admin").await?;
    wait::until("the API to be ready", Duration::from_secs(90), async || {
        must_run(paths, components::etcd::NAME)?;
        must_run(paths, components::apiserver::NAME)?;
        let request = http::Request::get("/readyz").body(Vec::new())?;
        client.request_text(request).await.context("/readyz")?;
        Ok(())
    })
    .await?;
    Ok(client)
}

/// Waits until the node and the name server are ready, and a namespace has its service account.
async fn ready(paths: &Paths, client: &Client) -> Result<()> {
    let step = Step::begin("waiting for the node and the name server");
    let what = "the node to be Ready and CoreDNS to be available";
    wait::until(what, Duration::from_mins(2), async || {
        for component in components::NAMES {
            must_run(paths, component)?;
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
        None => bail!("the node has no Ready condition"),
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
