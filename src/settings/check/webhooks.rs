//! The settings of the webhooks, of their certificates, of stored objects, and of whose objects are looked after.
//! Comes in: flags as text. Goes out: checked values, or problems. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::{Findings, time};
use crate::api::grants::Grants;
use crate::certificates::{CA, LEAF, Lifetimes, SETTLE};
use crate::cli::RunArgs;
use crate::settings::{Certificates, Scope, Served, Webhooks};
use crate::storage_migration::Way;

/// The word that serves no webhooks.
const NONE: &str = "none";

impl Findings {
    /// Whether and how the webhooks are served.
    pub(super) fn webhooks(&mut self, args: &RunArgs) -> Option<Served> {
        let wanted = args.webhook_listen != NONE && args.watch_namespace.is_none();
        let drain = self.duration("--drain", &args.drain);
        let certificates = match &args.webhook_cert_dir {
            Some(folder) => Some(Certificates::Files(folder.clone())),
            None => self.lifetimes(args).map(Certificates::BuiltIn),
        };
        if !wanted {
            return Some(Served::Elsewhere);
        }
        let listen =
            self.address("--webhook-listen", &args.webhook_listen, "0.0.0.0:9443, or none");
        Some(Served::Here(Webhooks { listen: listen?, certificates: certificates?, drain: drain? }))
    }

    fn lifetimes(&mut self, args: &RunArgs) -> Option<Lifetimes> {
        let lifetimes = Lifetimes {
            ca: self.lifetime(CA, &args.webhook_ca_lifetime)?,
            leaf: self.lifetime(LEAF, &args.webhook_leaf_lifetime)?,
            settle: self.lifetime(SETTLE, &args.webhook_settle)?,
        };
        let problems = lifetimes.problems();
        let fits = problems.is_empty();
        for (setting, allowed) in problems {
            let found = match setting {
                CA => &args.webhook_ca_lifetime,
                LEAF => &args.webhook_leaf_lifetime,
                _ => &args.webhook_settle,
            };
            self.note(setting, found, &allowed, "change it, or leave all three out");
        }
        fits.then_some(lifetimes)
    }

    pub(super) fn lifetime(&mut self, setting: &'static str, text: &str) -> Option<Duration> {
        let parsed = time(text);
        if parsed.is_none() {
            let allowed = "it must be a time, like 30s, 12h or 2160h";
            self.note(setting, text, allowed, "write a number with its unit, or leave it out");
        }
        parsed
    }

    /// Who carries stored objects to another version.
    pub(super) fn migration(&mut self, args: &RunArgs) -> Option<Way> {
        match args.storage_migration.as_str() {
            "own" => Some(Way::Own),
            "kubernetes" => Some(Way::Kubernetes),
            "off" => Some(Way::Off),
            other => {
                let allowed = "it must be own, kubernetes or off";
                self.note(
                    "--storage-migration",
                    other,
                    allowed,
                    "give one of them, or leave it out",
                );
                None
            }
        }
    }

    /// Whose objects are looked after, and who grants the rights to do so.
    pub(super) fn scope(&mut self, args: &RunArgs) -> Option<Scope> {
        let grants = match args.grants.as_str() {
            "auto" => Some(Grants::Auto),
            "strict" => Some(Grants::Strict),
            other => {
                let allowed = "it must be auto or strict";
                self.note("--grants", other, allowed, "give one of the two, or leave it out");
                None
            }
        };
        match &args.watch_namespace {
            Some(name) => self.namespace("--watch-namespace", name).map(Scope::Namespace),
            None => grants.map(Scope::Cluster),
        }
    }
}
