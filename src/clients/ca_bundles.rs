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
use super::notify::{self, ChangeStream};
use crate::api::names;

/// An object that holds a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A custom resource definition, by its name.
    Definition(String),
    /// The configuration of the validating webhooks.
    Validating,
    /// The configuration of the mutating webhooks.
    Mutating,
}

/// What an object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetWebhooks {
    /// Tells this object from one of the same name that was made later.
    pub(crate) uid: String,
    /// The version that was read. A write lands on this one or nowhere.
    pub(crate) version: String,
    /// `ChangeStream` with every change of what the object asks for.
    pub(crate) generation: i64,
    /// Whom it calls.
    pub(crate) hooks: Vec<WebhookClientConfig>,
}

/// One webhook of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookClientConfig {
    /// Its name in a configuration; a definition has one without a name.
    pub(crate) name: String,
    /// The Service that it asks, if it asks one: its namespace and its name.
    pub(crate) service: Option<(String, String)>,
    /// The bundle, as it is; nothing if there is none.
    pub(crate) bundle: Vec<u8>,
}

/// One bundle on its way into one object.
#[derive(Clone, Debug)]
pub(crate) struct Injection<'a> {
    /// The object.
    pub(crate) target: &'a Target,
    /// As it was read.
    pub(crate) found: &'a TargetWebhooks,
    /// The webhooks of it that shall trust the bundle.
    pub(crate) hooks: Vec<&'a WebhookClientConfig>,
    /// The bundle.
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
            Self::Definition(_) => "definition",
            Self::Validating => "validating webhook configuration",
            Self::Mutating => "mutating webhook configuration",
        };
        format!("the {kind} {}", self.name())
    }

    fn request(&self) -> Request {
        Request::new(match self {
            Self::Definition(_) => CustomResourceDefinition::url_path(&(), None),
            Self::Validating => ValidatingWebhookConfiguration::url_path(&(), None),
            Self::Mutating => MutatingWebhookConfiguration::url_path(&(), None),
        })
    }
}

/// The objects at the API server.
#[derive(Clone)]
pub(crate) struct CaBundleClient {
    client: Client,
}

impl CaBundleClient {
    /// The objects that `client` can reach.
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// What the target says, or none if the API server says that there is none.
    pub(crate) async fn read(
        &self,
        target: &Target,
        timeout: Duration,
    ) -> Result<Option<TargetWebhooks>, ApiError> {
        let call = async {
            let request = target.request().get(target.name(), &GetParams::default());
            self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
        };
        let operation = Operation { verb: "read", what: &target.describe(), timeout };
        let found = match target {
            Target::Definition(_) => {
                operation.answer(call).await.map(wire::Definition::into_target)
            }
            Target::Validating | Target::Mutating => {
                operation.answer(call).await.map(wire::Configuration::into_target)
            }
        };
        none_if_not_found(found)
    }

    /// Puts a bundle into exactly the object that was read; a conflict if it has changed or is gone
    /// since.
    pub(crate) async fn inject(
        &self,
        injection: &Injection<'_>,
        timeout: Duration,
    ) -> Result<(), ApiError> {
        let target = injection.target;
        let body = injection.body();
        let call = async {
            let params = PatchParams::apply(names::CA_FIELD_MANAGER).force();
            let request = target.request().patch(target.name(), &params, &Patch::Apply(&body));
            self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
        };
        let operation =
            Operation { verb: "put the bundle into", what: &target.describe(), timeout };
        operation.answer::<Done>(call).await.map(|Done {}| ())
    }

    /// The news that one of the targets has changed.
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

/// The answer to a write is the whole object, of which nothing matters.
#[derive(Deserialize)]
struct Done {}

impl Injection<'_> {
    /// What is applied. The uid keeps it from making an object that was deleted, and the version
    /// from landing on one that has changed.
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
                let hook =
                    |it: &&WebhookClientConfig| json!({ "name": it.name, "clientConfig": config });
                let hooks: Vec<Value> = hooks.iter().map(hook).collect();
                json!({
                    "apiVersion": version, "kind": kind, "metadata": metadata, "webhooks": hooks,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
