//! Reads the custom resource definitions of a cluster.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};

/// One read of one object takes no longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a definition could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CrdReadError {
    /// The API server answered with an error, or not at all.
    #[error("failed to read the definition {name}")]
    Call {
        /// Its name.
        name: String,
        /// What the client says.
        #[source]
        source: kube::Error,
    },
    /// It did not answer in time.
    #[error("failed to read the definition {0}: no answer within 10 seconds")]
    TimedOut(String),
}

/// The definition with this name.
pub(crate) async fn read(
    client: &Client,
    name: &str,
) -> Result<Option<CustomResourceDefinition>, CrdReadError> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    match tokio::time::timeout(REQUEST_TIMEOUT, definitions.get_opt(name)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(source)) => Err(CrdReadError::Call { name: name.to_owned(), source }),
        Err(tokio::time::error::Elapsed { .. }) => Err(CrdReadError::TimedOut(name.to_owned())),
    }
}
