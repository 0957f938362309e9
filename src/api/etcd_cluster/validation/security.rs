//! Validation of a cluster's TLS and authentication.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Cluster;
use crate::api::etcd_cluster::v1::{Auth, Tls, TlsSide, TlsSource};
use crate::api::etcd_version::Release;
use crate::api::etcd_version::policy::watch_leak_fixed_in;
use crate::api::field::Field;
use crate::api::validation::features::Feature;
use crate::api::validation::rules::require_feature;
use crate::api::validation::{Findings, ValidationContext};

/// Each certificate source has its own reference field.
pub(super) fn tls(new: &Cluster, facts: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(Tls { client, peer }) = new.spec.tls.known() else { return };
    for (side, place) in [(client, "spec.tls.client"), (peer, "spec.tls.peer")] {
        let Some(TlsSide { source, issuer_ref, secret_ref }) = side.known() else { continue };
        let chosen = source_of(side);
        let ability = match chosen {
            TlsSource::Managed => None,
            TlsSource::CertManager => Some(Feature::CertManager),
            TlsSource::Secret => Some(Feature::SecretCertificates),
            TlsSource::Disabled => Some(Feature::Plaintext),
        };
        if let Some(ability) = ability {
            require_feature(
                ability,
                source.known().is_some(),
                &format!("{place}.source"),
                facts,
                findings,
            );
        }
        let pairs = [
            ("issuerRef", issuer_ref.is_set(), TlsSource::CertManager, "the issuer that signs"),
            ("secretRef", secret_ref.is_set(), TlsSource::Secret, "the Secret they are in"),
        ];
        for (field, is_set, owner, what) in pairs {
            let here = format!("{place}.{field}");
            if !is_set && chosen == owner {
                let detail = format!("name {what}, or choose another `source` than \"{owner}\"");
                findings.required(here, detail);
            } else if is_set && chosen != owner {
                let detail = format!(
                    "goes with `source` \"{owner}\", and that is \"{chosen}\"; change one of them"
                );
                findings.invalid(here, detail);
            }
        }
        if chosen == TlsSource::Disabled {
            findings.warn(format!(
                "`{place}` \"Disabled\": whoever sees the network sees and changes the data"
            ));
        }
    }
}

fn source_of(side: &Field<TlsSide>) -> TlsSource {
    let source = side.known().and_then(|side| side.source.known());
    source.copied().unwrap_or(TlsSource::Managed)
}

/// Authentication requires a root password and TLS.
pub(super) fn auth(new: &Cluster, facts: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(Auth { enabled, root_secret_ref }) = new.spec.auth.known() else { return };
    if enabled.known() != Some(&true) {
        return;
    }
    require_feature(Feature::Auth, true, "spec.auth.enabled", facts, findings);
    if !root_secret_ref.is_set() {
        let detail = "name a Secret with `password` for the user root, or leave auth off";
        findings.required("spec.auth.rootSecretRef", detail);
    }
    let release = new.spec.version.known().and_then(|version| Release::parse(version.as_str()));
    if let Some((release, safe)) =
        release.and_then(|release| Some((release, watch_leak_fixed_in(release)?)))
    {
        findings.invalid(
            "spec.auth.enabled",
            format!(
                "must be false with etcd {release}, which can show a user keys of others through a watch: \
                 take {safe} or newer"
            ),
        );
    }
    let source = new.spec.tls.known().map_or(TlsSource::Managed, |tls| source_of(&tls.client));
    match source {
        TlsSource::Disabled => findings.invalid(
            "spec.auth.enabled",
            "must be false while `spec.tls.client` is \"Disabled\": passwords would travel in the clear",
        ),
        TlsSource::Secret => findings.invalid(
            "spec.auth.enabled",
            "must be false while `spec.tls.client` is \"Secret\": etcd knows the operator by the name in \
             its certificate; choose \"Managed\" or \"CertManager\"",
        ),
        TlsSource::Managed | TlsSource::CertManager => {}
    }
}
