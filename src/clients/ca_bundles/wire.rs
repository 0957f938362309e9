//! The few fields of a CRD and of a webhook configuration that a CA bundle needs: a CRD has a
//! hundred kilobytes, nearly all of it schemas. Missing fields are empty.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{TargetWebhooks, WebhookClientConfig};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    generation: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Definition {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    conversion: Option<Conversion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conversion {
    strategy: String,
    webhook: Option<Webhook>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Webhook {
    name: String,
    client_config: Option<ClientConfig>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClientConfig {
    service: Option<Service>,
    ca_bundle: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Service {
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Configuration {
    metadata: Metadata,
    webhooks: Option<Vec<Webhook>>,
}

impl Definition {
    pub(super) fn into_target(self) -> TargetWebhooks {
        let by_webhook = self.spec.conversion.filter(|conversion| conversion.strategy == "Webhook");
        let webhook = by_webhook.map(|conversion| conversion.webhook.unwrap_or_default());
        target_webhooks(self.metadata, webhook)
    }
}

impl Configuration {
    pub(super) fn into_target(self) -> TargetWebhooks {
        target_webhooks(self.metadata, self.webhooks.into_iter().flatten())
    }
}

fn target_webhooks(
    metadata: Metadata,
    webhooks: impl IntoIterator<Item = Webhook>,
) -> TargetWebhooks {
    let Metadata { uid, resource_version: version, generation } = metadata;
    TargetWebhooks {
        uid,
        version,
        generation,
        hooks: webhooks.into_iter().map(client_config).collect(),
    }
}

fn client_config(webhook: Webhook) -> WebhookClientConfig {
    let Webhook { name, client_config } = webhook;
    let ClientConfig { service, ca_bundle } = client_config.unwrap_or_default();
    WebhookClientConfig {
        name,
        service: service.map(|Service { namespace, name }| (namespace, name)),
        // The API server always sends Base64.
        bundle: STANDARD.decode(ca_bundle.unwrap_or_default()).unwrap_or_default(),
    }
}
