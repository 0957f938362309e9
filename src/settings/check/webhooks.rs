//! Settings of webhooks, certificates, storage migration and scope. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::{Checker, OMIT_HINT, parse_duration};
use crate::api::namespace_access::NamespaceAccess;
use crate::cli::RunArgs;
use crate::settings::{Certificates, Scope, WebhookMode, Webhooks};
use crate::storage_migration::MigrationMode;
use crate::webhook_certs::{
    CA_LIFETIME_FLAG, LEAF_LIFETIME_FLAG, Lifetimes, PROPAGATION_DELAY_FLAG,
};

/// Value of `--webhook-listen` that disables the webhook server.
const NONE: &str = "none";

impl Checker {
    /// Checks the settings of the webhook server.
    pub(super) fn webhooks(&mut self, args: &RunArgs) -> Option<WebhookMode> {
        let enabled = args.webhook_listen != NONE && args.watch_namespace.is_none();
        let drain = self.duration("--webhook-drain-timeout", &args.webhook_drain_timeout);
        let certificates = match &args.webhook_cert_dir {
            Some(folder) => Some(Certificates::Files(folder.clone())),
            None => self.lifetimes(args).map(Certificates::BuiltIn),
        };
        if !enabled {
            return Some(WebhookMode::Disabled);
        }
        let listen =
            self.address("--webhook-listen", &args.webhook_listen, "0.0.0.0:9443, or none");
        Some(WebhookMode::Serve(Webhooks {
            listen: listen?,
            certificates: certificates?,
            drain: drain?,
        }))
    }

    fn lifetimes(&mut self, args: &RunArgs) -> Option<Lifetimes> {
        let lifetimes = Lifetimes {
            ca: self.lifetime(CA_LIFETIME_FLAG, &args.webhook_ca_lifetime)?,
            leaf: self.lifetime(LEAF_LIFETIME_FLAG, &args.webhook_leaf_lifetime)?,
            propagation_delay: self
                .lifetime(PROPAGATION_DELAY_FLAG, &args.webhook_ca_propagation_delay)?,
        };
        let errors = lifetimes.problems();
        let valid = errors.is_empty();
        for (setting, expected) in errors {
            let value = match setting {
                CA_LIFETIME_FLAG => &args.webhook_ca_lifetime,
                LEAF_LIFETIME_FLAG => &args.webhook_leaf_lifetime,
                _ => &args.webhook_ca_propagation_delay,
            };
            self.add(setting, value, &expected, "omit the three lifetime flags for the defaults");
        }
        valid.then_some(lifetimes)
    }

    pub(super) fn lifetime(&mut self, setting: &'static str, text: &str) -> Option<Duration> {
        let parsed = parse_duration(text);
        if parsed.is_none() {
            self.add(setting, text, "must be a duration such as 30s, 12h or 2160h", OMIT_HINT);
        }
        parsed
    }

    /// Checks the mode of storage version migration.
    pub(super) fn migration(&mut self, args: &RunArgs) -> Option<MigrationMode> {
        match args.storage_migration.as_str() {
            "operator" => Some(MigrationMode::Operator),
            "kubernetes" => Some(MigrationMode::Kubernetes),
            "off" => Some(MigrationMode::Off),
            other => {
                let expected = "must be operator, kubernetes or off";
                self.add("--storage-migration", other, expected, OMIT_HINT);
                None
            }
        }
    }

    /// Checks the watched namespaces and the mode of namespace access.
    pub(super) fn scope(&mut self, args: &RunArgs) -> Option<Scope> {
        let access = match args.namespace_access.as_str() {
            "auto" => Some(NamespaceAccess::Auto),
            "manual" => Some(NamespaceAccess::Manual),
            other => {
                self.add("--namespace-access", other, "must be auto or manual", OMIT_HINT);
                None
            }
        };
        match &args.watch_namespace {
            Some(name) => self.namespace("--watch-namespace", name).map(Scope::Namespace),
            None => access.map(Scope::Cluster),
        }
    }
}
