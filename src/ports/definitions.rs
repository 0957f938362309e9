//! The custom resource definitions that a cluster has.
//! Comes in: a client and a name. Goes out: the definition, or nothing if there is none.
//! May touch: the API server, within a time limit. Only reads.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};

/// One read of one object takes no longer.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a definition could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
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
    Late(String),
}

/// The definition with this name.
pub(crate) async fn read(
    client: &Client,
    name: &str,
) -> Result<Option<CustomResourceDefinition>, Unread> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    match tokio::time::timeout(LIMIT, definitions.get_opt(name)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(source)) => Err(Unread::Call { name: name.to_owned(), source }),
        Err(tokio::time::error::Elapsed { .. }) => Err(Unread::Late(name.to_owned())),
    }
}
