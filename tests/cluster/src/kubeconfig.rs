//! The kubeconfig files: one per user, with embedded certificates, so that they can be copied.

use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use serde_json::json;

use crate::files;
use crate::paths::Paths;
use crate::pki;
use crate::settings::Network;

/// The URL of the API server.
#[must_use]
pub fn server(network: &Network) -> String {
    format!("https://{}:6443", network.node)
}

/// Writes the kubeconfig of every user.
///
/// # Errors
/// If a certificate is missing or a file cannot be written.
pub fn write_all(paths: &Paths, network: &Network) -> Result<()> {
    for (user, _, _) in pki::users() {
        let path = paths.kubeconfig(user);
        files::write_private(
            &path,
            serde_json::to_string_pretty(&content(paths, network, user)?)?,
        )?;
    }
    Ok(())
}

fn content(paths: &Paths, network: &Network, user: &str) -> Result<serde_json::Value> {
    let read = |path: PathBuf| {
        std::fs::read(&path)
            .map(ByteString)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let pair = pki::key_pair(paths, user);
    let ca = read(pki::key_pair(paths, "ca").cert)?;
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
pub async fn client(paths: &Paths, user: &str) -> Result<kube::Client> {
    let path = paths.kubeconfig(user);
    let config = kube::config::Kubeconfig::read_from(&path)
        .context("there is no local cluster: start it with `make cluster-up`")?;
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(config, &options).await?;
    // The API server is on this machine: never use the caller's proxy.
    config.proxy_url = None;
    Ok(kube::Client::try_from(config)?)
}
