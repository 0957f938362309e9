//! Reads the CA Secret and the targets: CRDs and webhook configurations with a CA bundle. Decides
//! nothing; a failed read is returned with the state.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;

use super::secret;
use super::state::{ReadFailure, SecretState, TargetState};
use crate::api::{kinds, names};
use crate::clients::ca_bundles::{CaBundleClient, Target, TargetWebhooks, WebhookClientConfig};
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::named_object::CaSecretClient;

/// The Secret and the targets of one installation.
#[derive(Clone)]
pub(crate) struct CertClients {
    pub(super) ca_secret: CaSecretClient,
    pub(super) bundles: CaBundleClient,
    /// The targets, always in the same order.
    pub(super) targets: Vec<Target>,
}

/// The Secret as read.
pub(super) struct ObservedCaSet {
    pub(super) secret_state: SecretState,
    pub(super) secret: Option<Secret>,
    pub(super) error: Option<ApiError>,
}

/// A target as read.
pub(super) struct ObservedTarget {
    pub(super) state: TargetState,
    pub(super) webhooks: Option<TargetWebhooks>,
    pub(super) error: Option<ApiError>,
}

impl CertClients {
    /// The Secret in `namespace`, which is also the namespace of the webhooks' Service, and every
    /// CRD and webhook configuration of this release.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        let converted = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
        let definitions = converted.map(|kind| Target::Definition(kind.crd_name()));
        Self {
            ca_secret: CaSecretClient::new(client.clone(), namespace, names::WEBHOOK_CA_SECRET),
            bundles: CaBundleClient::new(client),
            targets: definitions.chain([Target::Validating, Target::Mutating]).collect(),
        }
    }

    /// The namespace of the Secret and of the Service.
    pub(super) fn namespace(&self) -> &str {
        &self.ca_secret.namespace
    }

    /// Reads the Secret.
    pub(super) async fn read_ca_set(&self, timeout: Duration) -> ObservedCaSet {
        match self.ca_secret.read(timeout).await {
            Ok(Some(secret)) => {
                let (ca_set, invalid) = secret::parse(&secret);
                let secret_state = SecretState::Found { ca_set: Box::new(ca_set), invalid };
                ObservedCaSet { secret_state, secret: Some(secret), error: None }
            }
            Ok(None) => {
                ObservedCaSet { secret_state: SecretState::NotFound, secret: None, error: None }
            }
            Err(error) => ObservedCaSet {
                secret_state: SecretState::Unknown(read_failure(error.class())),
                secret: None,
                error: Some(error),
            },
        }
    }

    /// Reads all targets concurrently.
    pub(super) async fn read_targets(&self, timeout: Duration) -> Vec<ObservedTarget> {
        let reads = self.targets.iter().map(|target| async move {
            match self.bundles.read(target, timeout).await {
                Ok(Some(webhooks)) => ObservedTarget {
                    state: self.target_state(&webhooks),
                    webhooks: Some(webhooks),
                    error: None,
                },
                Ok(None) => {
                    ObservedTarget { state: TargetState::NotFound, webhooks: None, error: None }
                }
                Err(error) => ObservedTarget {
                    state: TargetState::Unknown(read_failure(error.class())),
                    webhooks: None,
                    error: Some(error),
                },
            }
        });
        futures::future::join_all(reads).await
    }

    fn target_state(&self, target: &TargetWebhooks) -> TargetState {
        let ours = self.our_webhooks(target).into_iter();
        let bundles: Vec<Vec<u8>> = ours.map(|webhook| webhook.bundle.clone()).collect();
        if bundles.is_empty() {
            return TargetState::NotOurs;
        }
        TargetState::Managed {
            generation: format!("{}/{}", target.uid, target.generation),
            bundles,
        }
    }

    /// The webhooks of a target that use the operator's Service. Injecting the operator's bundle
    /// into any other webhook would break it.
    pub(super) fn our_webhooks<'a>(
        &self,
        target: &'a TargetWebhooks,
    ) -> Vec<&'a WebhookClientConfig> {
        let is_ours = |webhook: &&WebhookClientConfig| {
            let service = webhook.service.as_ref();
            service.is_some_and(|(namespace, name)| {
                namespace == self.namespace() && name == names::WEBHOOK_SERVICE
            })
        };
        target.hooks.iter().filter(is_ours).collect()
    }
}

pub(super) const fn read_failure(class: ErrorClass) -> ReadFailure {
    match class {
        ErrorClass::Rejected => ReadFailure::Forbidden,
        // A read returns not found as a result, never as an error.
        ErrorClass::NotFound
        | ErrorClass::Conflict
        | ErrorClass::ServerError
        | ErrorClass::Unreachable => ReadFailure::NoResponse,
    }
}
