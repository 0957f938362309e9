//! Objects with a CA bundle: CRDs and webhook configurations.
//!
//! Only `caBundle` is ever written, and no object is ever created. Each call has a timeout.

mod wire;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{GetParams, PartialObjectMeta, Patch, PatchParams};
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{ApiError, Operation, none_if_not_found};
use super::kube::request_text;
use super::notify::{self, ChangeStream};
use crate::api::names;

/// An object with a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A CRD, by its name.
    Definition(String),
    /// The configuration of the validating webhooks.
    Validating,
    /// The configuration of the mutating webhooks.
    Mutating,
}

/// The webhooks of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetWebhooks {
    /// Distinguishes the object from a later one of the same name.
    pub(crate) uid: String,
    /// The resource version that was read. A write applies to this version or fails.
    pub(crate) version: String,
    pub(crate) generation: i64,
    pub(crate) hooks: Vec<WebhookClientConfig>,
}

/// One webhook of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookClientConfig {
    /// Its name in a webhook configuration; empty for a CRD.
    pub(crate) name: String,
    /// Namespace and name of its Service, if it has one.
    pub(crate) service: Option<(String, String)>,
    /// The CA bundle; empty if there is none.
    pub(crate) bundle: Vec<u8>,
}

/// A CA bundle to be written into a target.
#[derive(Clone, Debug)]
pub(crate) struct Injection<'a> {
    pub(crate) target: &'a Target,
    /// The target as it was read.
    pub(crate) found: &'a TargetWebhooks,
    /// The webhooks that get the bundle.
    pub(crate) hooks: Vec<&'a WebhookClientConfig>,
    pub(crate) bundle: Vec<u8>,
}

impl Target {
    /// The target's kind, as metrics name it.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Definition(_) => "definition",
            Self::Validating => "validating",
            Self::Mutating => "mutating",
        }
    }

    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Definition(name) => name,
            Self::Validating | Self::Mutating => names::WEBHOOK_CONFIGURATION,
        }
    }

    fn describe(&self) -> String {
        let kind = match self {
            Self::Definition(_) => "CRD",
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        };
        format!("{kind} {}", self.name())
    }

    fn request(&self) -> Request {
        Request::new(match self {
            Self::Definition(_) => CustomResourceDefinition::url_path(&(), None),
            Self::Validating => ValidatingWebhookConfiguration::url_path(&(), None),
            Self::Mutating => MutatingWebhookConfiguration::url_path(&(), None),
        })
    }
}

/// Client of the targets.
#[derive(Clone)]
pub(crate) struct CaBundleClient {
    client: Client,
}

impl CaBundleClient {
    /// The targets that `client` can reach.
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// The webhooks of a target, or none if the target does not exist.
    pub(crate) async fn read(
        &self,
        target: &Target,
        timeout: Duration,
    ) -> Result<Option<TargetWebhooks>, ApiError> {
        let request = target.request().get(target.name(), &GetParams::default());
        let call = request_text(&self.client, request);
        let operation = Operation { verb: "read", what: &target.describe(), timeout };
        let found = match target {
            Target::Definition(_) => {
                operation.response(call).await.map(wire::Definition::into_target)
            }
            Target::Validating | Target::Mutating => {
                operation.response(call).await.map(wire::Configuration::into_target)
            }
        };
        none_if_not_found(found)
    }

    /// Writes a bundle into exactly the object that was read; a conflict if it has changed or was
    /// deleted since.
    pub(crate) async fn inject(
        &self,
        injection: &Injection<'_>,
        timeout: Duration,
    ) -> Result<(), ApiError> {
        let target = injection.target;
        let params = PatchParams::apply(names::CA_FIELD_MANAGER).force();
        let patch = Patch::Apply(injection.body());
        let request = target.request().patch(target.name(), &params, &patch);
        let call = request_text(&self.client, request);
        let operation =
            Operation { verb: "inject the CA bundle into", what: &target.describe(), timeout };
        operation.response::<Patched>(call).await.map(|Patched {}| ())
    }

    /// Notifications of changes to the targets.
    pub(crate) fn changes(&self, targets: &[Target]) -> ChangeStream {
        let client = || self.client.clone();
        notify::merge(targets.iter().map(|target| match target {
            Target::Definition(name) => notify::on_change(
                Api::<PartialObjectMeta<CustomResourceDefinition>>::all(client()),
                name,
            ),
            Target::Validating => {
                let api = Api::<PartialObjectMeta<ValidatingWebhookConfiguration>>::all(client());
                notify::on_change(api, target.name())
            }
            Target::Mutating => {
                let api = Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(client());
                notify::on_change(api, target.name())
            }
        }))
    }
}

/// The response to a write is the whole object, which is not needed.
#[derive(Deserialize)]
struct Patched {}

impl Injection<'_> {
    /// The applied body. With the uid it does not create an object that was deleted; with the
    /// resource version it does not overwrite one that has changed.
    fn body(&self) -> Value {
        let Self { target, found, hooks, bundle } = self;
        let bundle = STANDARD.encode(bundle);
        let (version, kind) = match target {
            Target::Definition(_) => ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            Target::Validating => {
                ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
            }
            Target::Mutating => ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        };
        let metadata =
            json!({ "name": target.name(), "uid": found.uid, "resourceVersion": found.version });
        let config = json!({ "caBundle": bundle });
        match target {
            Target::Definition(_) => json!({
                "apiVersion": version, "kind": kind, "metadata": metadata,
                "spec": { "conversion": { "webhook": { "clientConfig": config } } },
            }),
            Target::Validating | Target::Mutating => {
                let entry = |name: &str| json!({ "name": name, "clientConfig": config });
                let hooks: Vec<Value> = hooks.iter().map(|hook| entry(&hook.name)).collect();
                json!({
                    "apiVersion": version, "kind": kind, "metadata": metadata, "webhooks": hooks,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
