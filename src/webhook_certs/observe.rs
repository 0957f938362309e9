//! What the wing looks at: the Secret with the authorities, and the targets that shall trust them.
//! Comes in: a client and the operator's namespace. Goes out: readings and sights, and the objects
//! they were made from. May touch: `clients`. It chooses nothing; a failure is handed on with them.

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
    pub(super) authorities: CaSecretClient,
    pub(super) trust: CaBundleClient,
    /// The targets, always in the same order.
    pub(super) targets: Vec<Target>,
}

/// The Secret as it was read.
pub(super) struct ObservedCaSet {
    pub(super) secret_state: SecretState,
    /// What it was read from.
    pub(super) secret: Option<Secret>,
    pub(super) failed: Option<ApiError>,
}

/// A target as it was read.
pub(super) struct ObservedTarget {
    pub(super) state: TargetState,
    /// What it was read from.
    pub(super) found: Option<TargetWebhooks>,
    pub(super) failed: Option<ApiError>,
}

impl CertClients {
    /// The Secret in `namespace`, which is also that of the webhooks' Service, and every definition
    /// and configuration of this release that calls webhooks.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        let converted = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
        let definitions = converted.map(|kind| Target::Definition(kind.crd_name()));
        Self {
            authorities: CaSecretClient::new(client.clone(), namespace, names::WEBHOOK_CA_SECRET),
            trust: CaBundleClient::new(client),
            targets: definitions.chain([Target::Validating, Target::Mutating]).collect(),
        }
    }

    /// The namespace of the Secret and of the Service.
    pub(super) fn namespace(&self) -> &str {
        &self.authorities.namespace
    }

    /// Reads the Secret.
    pub(super) async fn ca_set(&self, limit: Duration) -> ObservedCaSet {
        match self.authorities.read(limit).await {
            Ok(Some(secret)) => {
                let (ca_set, invalid) = secret::read(&secret);
                let secret_state = SecretState::Found { ca_set: Box::new(ca_set), invalid };
                ObservedCaSet { secret_state, secret: Some(secret), failed: None }
            }
            Ok(None) => {
                ObservedCaSet { secret_state: SecretState::NotFound, secret: None, failed: None }
            }
            Err(error) => ObservedCaSet {
                secret_state: SecretState::Unknown(unread(error.class())),
                secret: None,
                failed: Some(error),
            },
        }
    }

    /// Reads every target, all at once.
    pub(super) async fn targets_state(&self, limit: Duration) -> Vec<ObservedTarget> {
        let reads = self.targets.iter().map(|target| async move {
            match self.trust.read(target, limit).await {
                Ok(Some(found)) => {
                    ObservedTarget { state: self.state(&found), found: Some(found), failed: None }
                }
                Ok(None) => {
                    ObservedTarget { state: TargetState::NotFound, found: None, failed: None }
                }
                Err(error) => ObservedTarget {
                    state: TargetState::Unknown(unread(error.class())),
                    found: None,
                    failed: Some(error),
                },
            }
        });
        futures::future::join_all(reads).await
    }

    fn state(&self, found: &TargetWebhooks) -> TargetState {
        let bundles: Vec<Vec<u8>> =
            self.ours(found).into_iter().map(|hook| hook.bundle.clone()).collect();
        if bundles.is_empty() {
            return TargetState::NotOurs;
        }
        TargetState::Managed { mark: format!("{}/{}", found.uid, found.generation), bundles }
    }

    /// The webhooks of an object that ask our Service. A bundle of ours would break the others.
    pub(super) fn ours<'a>(&self, found: &'a TargetWebhooks) -> Vec<&'a WebhookClientConfig> {
        let asks_us = |hook: &&WebhookClientConfig| {
            let service = hook.service.as_ref();
            service.is_some_and(|(namespace, name)| {
                namespace == self.namespace() && name == names::WEBHOOK_SERVICE
            })
        };
        found.hooks.iter().filter(asks_us).collect()
    }
}

pub(super) const fn unread(class: ErrorClass) -> ReadFailure {
    match class {
        ErrorClass::Rejected => ReadFailure::Forbidden,
        // Not found is no failure of a read, and never comes here as one.
        ErrorClass::NotFound
        | ErrorClass::Conflict
        | ErrorClass::ServerError
        | ErrorClass::Unreachable => ReadFailure::NoResponse,
    }
}
