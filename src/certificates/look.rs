//! What the wing looks at: the Secret with the authorities, and the targets that shall trust them.
//! Comes in: a client and the operator's namespace. Goes out: readings and sights, and the objects
//! they were made from. May touch: `ports`. It chooses nothing; a failure is handed on with them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;

use super::render;
use super::seen::{Reading, Sight, Unread};
use crate::api::{kinds, names};
use crate::ports::authorities::AuthoritiesPort;
use crate::ports::call::{CallError, Class};
use crate::ports::trust::{Found, Hook, Target, TrustPort};

/// The Secret and the targets of one installation.
#[derive(Clone)]
pub(crate) struct Outlook {
    pub(super) authorities: AuthoritiesPort,
    pub(super) trust: TrustPort,
    /// The targets, always in the same order.
    pub(super) targets: Vec<Target>,
}

/// The Secret as it was read.
pub(super) struct Ring {
    pub(super) reading: Reading,
    /// What it was read from.
    pub(super) secret: Option<Secret>,
    pub(super) failed: Option<CallError>,
}

/// A target as it was read.
pub(super) struct Looked {
    pub(super) sight: Sight,
    /// What it was read from.
    pub(super) found: Option<Found>,
    pub(super) failed: Option<CallError>,
}

impl Outlook {
    /// The Secret in `namespace`, which is also that of the webhooks' Service, and every definition
    /// and configuration of this release that calls webhooks.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        let converted = kinds::ALL.into_iter().filter(|kind| kind.has_older_versions());
        let definitions = converted.map(|kind| Target::Definition(kind.definition_name()));
        Self {
            authorities: AuthoritiesPort::new(client.clone(), namespace),
            trust: TrustPort::new(client),
            targets: definitions.chain([Target::Validating, Target::Mutating]).collect(),
        }
    }

    /// The namespace of the Secret and of the Service.
    pub(super) fn namespace(&self) -> &str {
        &self.authorities.namespace
    }

    /// Reads the Secret.
    pub(super) async fn ring(&self, limit: Duration) -> Ring {
        match self.authorities.read(limit).await {
            Ok(Some(secret)) => {
                let (ring, damage) = render::read(&secret);
                let reading = Reading::Found { ring: Box::new(ring), damage };
                Ring { reading, secret: Some(secret), failed: None }
            }
            Ok(None) => Ring { reading: Reading::Absent, secret: None, failed: None },
            Err(error) => Ring {
                reading: Reading::Unknown(unread(error.class())),
                secret: None,
                failed: Some(error),
            },
        }
    }

    /// Reads every target, all at once.
    pub(super) async fn sights(&self, limit: Duration) -> Vec<Looked> {
        let reads = self.targets.iter().map(|target| async move {
            match self.trust.read(target, limit).await {
                Ok(Some(found)) => {
                    Looked { sight: self.sight(&found), found: Some(found), failed: None }
                }
                Ok(None) => Looked { sight: Sight::Absent, found: None, failed: None },
                Err(error) => Looked {
                    sight: Sight::Unknown(unread(error.class())),
                    found: None,
                    failed: Some(error),
                },
            }
        });
        futures::future::join_all(reads).await
    }

    fn sight(&self, found: &Found) -> Sight {
        let bundles: Vec<Vec<u8>> =
            self.ours(found).into_iter().map(|hook| hook.bundle.clone()).collect();
        if bundles.is_empty() {
            return Sight::Elsewhere;
        }
        Sight::Found { mark: format!("{}/{}", found.uid, found.generation), bundles }
    }

    /// The webhooks of an object that ask our Service. A bundle of ours would break the others.
    pub(super) fn ours<'a>(&self, found: &'a Found) -> Vec<&'a Hook> {
        let asks_us = |hook: &&Hook| {
            let service = hook.service.as_ref();
            service.is_some_and(|(namespace, name)| {
                namespace == self.namespace() && name == names::WEBHOOK_SERVICE
            })
        };
        found.hooks.iter().filter(asks_us).collect()
    }
}

pub(super) const fn unread(class: Class) -> Unread {
    match class {
        Class::Refused => Unread::Refused,
        // Not found is no failure of a read, and never comes here as one.
        Class::NotFound | Class::Conflict | Class::Unwell | Class::Unreachable => {
            Unread::Unanswered
        }
    }
}
