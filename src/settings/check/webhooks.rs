//! Settings of webhooks, certificates, storage migration and scope. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::{Checker, time};
use crate::api::namespace_access::NamespaceAccess;
use crate::cli::RunArgs;
use crate::settings::{Certificates, Scope, WebhookMode, Webhooks};
use crate::storage_migration::Way;
use crate::webhook_certs::{
    CA_LIFETIME_FLAG, LEAF_LIFETIME_FLAG, Lifetimes, PROPAGATION_DELAY_FLAG,
};

/// The word that serves no webhooks.
const NONE: &str = "none";

impl Checker {
    /// Whether and how the webhooks are served.
    pub(super) fn webhooks(&mut self, args: &RunArgs) -> Option<WebhookMode> {
        let wanted = args.webhook_listen != NONE && args.watch_namespace.is_none();
        let drain = self.duration("--webhook-drain-timeout", &args.webhook_drain_timeout);
        let certificates = match &args.webhook_cert_dir {
            Some(folder) => Some(Certificates::Files(folder.clone())),
            None => self.lifetimes(args).map(Certificates::BuiltIn),
        };
        if !wanted {
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
        let problems = lifetimes.problems();
        let fits = problems.is_empty();
        for (setting, expected) in problems {
            let found = match setting {
                CA_LIFETIME_FLAG => &args.webhook_ca_lifetime,
                LEAF_LIFETIME_FLAG => &args.webhook_leaf_lifetime,
                _ => &args.webhook_ca_propagation_delay,
            };
            self.add(setting, found, &expected, "change it, or leave all three out");
        }
        fits.then_some(lifetimes)
    }

    pub(super) fn lifetime(&mut self, setting: &'static str, text: &str) -> Option<Duration> {
        let parsed = time(text);
        if parsed.is_none() {
            let expected = "it must be a time, like 30s, 12h or 2160h";
            self.add(setting, text, expected, "write a number with its unit, or leave it out");
        }
        parsed
    }

    /// Who carries stored objects to another version.
    pub(super) fn migration(&mut self, args: &RunArgs) -> Option<Way> {
        match args.storage_migration.as_str() {
            "operator" => Some(Way::Own),
            "kubernetes" => Some(Way::Kubernetes),
            "off" => Some(Way::Off),
            other => {
                let expected = "expected operator, kubernetes or off";
                self.add(
                    "--storage-migration",
                    other,
                    expected,
                    "give one of them, or leave it out",
                );
                None
            }
        }
    }

    /// Whose objects are looked after, and who grants the rights to do so.
    pub(super) fn scope(&mut self, args: &RunArgs) -> Option<Scope> {
        let grants = match args.namespace_access.as_str() {
            "auto" => Some(NamespaceAccess::Auto),
            "manual" => Some(NamespaceAccess::Manual),
            other => {
                let expected = "expected auto or manual";
                self.add(
                    "--namespace-access",
                    other,
                    expected,
                    "give one of the two, or leave it out",
                );
                None
            }
        };
        match &args.watch_namespace {
            Some(name) => self.namespace("--watch-namespace", name).map(Scope::Namespace),
            None => grants.map(Scope::Cluster),
        }
    }
}
