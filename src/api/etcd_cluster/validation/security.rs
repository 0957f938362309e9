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
pub(super) fn tls(new: &Cluster, context: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(Tls { client, peer }) = new.spec.tls.known() else { return };
    for (side, path) in [(client, "spec.tls.client"), (peer, "spec.tls.peer")] {
        let Some(TlsSide { source, issuer_ref, secret_ref }) = side.known() else { continue };
        let selected = source_of(side);
        let feature = match selected {
            TlsSource::Managed => None,
            TlsSource::CertManager => Some(Feature::CertManager),
            TlsSource::Secret => Some(Feature::SecretCertificates),
            TlsSource::Disabled => Some(Feature::Plaintext),
        };
        if let Some(feature) = feature {
            require_feature(
                feature,
                source.known().is_some(),
                &format!("{path}.source"),
                context,
                findings,
            );
        }
        let pairs = [
            ("issuerRef", issuer_ref.is_set(), TlsSource::CertManager, "the issuer"),
            ("secretRef", secret_ref.is_set(), TlsSource::Secret, "the Secret"),
        ];
        for (field, is_set, owner, what) in pairs {
            let here = format!("{path}.{field}");
            if !is_set && selected == owner {
                let detail = format!("set {what}, or use another `source` than \"{owner}\"");
                findings.required(here, detail);
            } else if is_set && selected != owner {
                let detail = format!(
                    "requires `source` \"{owner}\" instead of \"{selected}\"; change one of them"
                );
                findings.invalid(here, detail);
            }
        }
        if selected == TlsSource::Disabled {
            findings.warn(format!(
                "`{path}` \"Disabled\": traffic can be read and modified on the network"
            ));
        }
    }
}

fn source_of(side: &Field<TlsSide>) -> TlsSource {
    let source = side.known().and_then(|side| side.source.known());
    source.copied().unwrap_or(TlsSource::Managed)
}

/// Authentication requires a root password and TLS.
pub(super) fn auth(new: &Cluster, context: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(Auth { enabled, root_secret_ref }) = new.spec.auth.known() else { return };
    if enabled.known() != Some(&true) {
        return;
    }
    require_feature(Feature::Auth, true, "spec.auth.enabled", context, findings);
    if !root_secret_ref.is_set() {
        let detail = "set a Secret with `password` for the user root, or disable auth";
        findings.required("spec.auth.rootSecretRef", detail);
    }
    let release = new.spec.version.known().and_then(|version| Release::parse(version.as_str()));
    if let Some((release, safe)) =
        release.and_then(|release| Some((release, watch_leak_fixed_in(release)?)))
    {
        findings.invalid(
            "spec.auth.enabled",
            format!(
                "must be false with etcd {release}, which can leak keys through a watch; use {safe} or \
                 later"
            ),
        );
    }
    let source = new.spec.tls.known().map_or(TlsSource::Managed, |tls| source_of(&tls.client));
    match source {
        TlsSource::Disabled => findings.invalid(
            "spec.auth.enabled",
            "must be false while `spec.tls.client` is \"Disabled\": passwords would be sent in plaintext",
        ),
        TlsSource::Secret => findings.invalid(
            "spec.auth.enabled",
            "must be false while `spec.tls.client` is \"Secret\": etcd identifies the operator by the CN of \
             its certificate; use \"Managed\" or \"CertManager\"",
        ),
        TlsSource::Managed | TlsSource::CertManager => {}
    }
}
