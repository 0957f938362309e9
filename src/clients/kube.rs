//! The Kubernetes client, configured as kubectl is: kubeconfig or mounted service account.

use kube::{Client, Config};

/// A request, or why it could not be built.
pub(crate) type BuiltRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Neither a kubeconfig nor a service account could be read.
    #[error("failed to read a kubeconfig or a service account")]
    Infer(#[source] kube::config::InferConfigError),
    /// The configuration is invalid.
    #[error("failed to create a client from the configuration")]
    Build(#[source] kube::Error),
}

/// A client for the cluster that kubectl would use.
///
/// A request is sent once. The client would resend requests that got 429, 503 or 504, writes
/// included, and hide that the first may have been applied: the caller must observe before it
/// writes again.
pub(crate) async fn client() -> Result<Client, ClientError> {
    let mut config = Config::infer().await.map_err(ClientError::Infer)?;
    config.default_retry = false;
    Client::try_from(config).map_err(ClientError::Build)
}

/// Sends a request, and returns the body of the response.
pub(crate) async fn request_text(client: &Client, request: BuiltRequest) -> kube::Result<String> {
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await
}
