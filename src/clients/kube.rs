//! The Kubernetes client, configured as kubectl is: kubeconfig or mounted service account.

use kube::{Client, Config};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// Neither a kubeconfig nor a service account could be read.
    #[error("failed to find a cluster")]
    Find(#[source] kube::config::InferConfigError),
    /// What was found does not make a client.
    #[error("failed to make a client from the cluster's configuration")]
    Connect(#[source] kube::Error),
}

/// Finds the cluster as kubectl does.
///
/// A call is sent once. The client would send one again that was answered with 429, 503 or 504,
/// writes too, and hide from us that the first may have landed: it is for whoever decided on a
/// write to look before it is made again.
pub(crate) async fn client() -> Result<Client, Unusable> {
    let mut config = Config::infer().await.map_err(Unusable::Find)?;
    config.default_retry = false;
    Client::try_from(config).map_err(Unusable::Connect)
}
