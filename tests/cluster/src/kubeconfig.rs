//! The kubeconfig files: one per user of the API, with everything inside, so that they can be copied.

use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use serde_json::json;

use crate::files;
use crate::pki;
use crate::places::Places;
use crate::settings::Network;

/// Where the API listens.
#[must_use]
pub fn server(network: &Network) -> String {
    format!("https://{}:6443", network.node)
}

/// Writes the kubeconfig of every user.
///
/// # Errors
/// If a certificate is missing or a file cannot be written.
pub fn write_all(places: &Places, network: &Network) -> Result<()> {
    for (user, _, _) in pki::users() {
        let path = places.kubeconfig(user);
        files::write_private(
            &path,
            serde_json::to_string_pretty(&content(places, network, user)?)?,
        )?;
    }
    Ok(())
}

fn content(places: &Places, network: &Network, user: &str) -> Result<serde_json::Value> {
    let read = |path: PathBuf| {
        std::fs::read(&path)
            .map(ByteString)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let pair = pki::pair(places, user);
    let ca = read(pki::pair(places, "ca").cert)?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "quorate",
            "cluster": { "server": server(network), "certificate-authority-data": ca },
        }],
        "users": [{
            "name": user,
            "user": { "client-certificate-data": read(pair.cert)?, "client-key-data": read(pair.key)? },
        }],
        "contexts": [{ "name": "quorate", "context": { "cluster": "quorate", "user": user } }],
        "current-context": "quorate",
    }))
}

/// A client for the API as one of [`pki::users`].
///
/// # Errors
/// If there is no cluster.
pub async fn client(places: &Places, user: &str) -> Result<kube::Client> {
    let path = places.kubeconfig(user);
    let config = kube::config::Kubeconfig::read_from(&path)
        .context("there is no local cluster: start it with `make cluster-up`")?;
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(config, &options).await?;
    // The API is on this machine, whatever proxy the caller has for the rest of the world.
    config.proxy_url = None;
    Ok(kube::Client::try_from(config)?)
}
