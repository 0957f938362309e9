//! Rules about certificates and about who may use a cluster.
//! Comes in: a cluster. Goes out: findings. May touch: the shared rules.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Cluster;
use crate::api::check::release::Ability;
use crate::api::check::rules::needs;
use crate::api::check::{Facts, Findings};
use crate::api::etcd_cluster::v1::{Auth, Tls, TlsSide, TlsSource};
use crate::api::etcd_version::Release;
use crate::api::etcd_version::policy::keeps_users_apart;
use crate::api::field::Field;

/// Each source of certificates has its own reference, and no other.
pub(super) fn tls(new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let Some(Tls { client, peer }) = new.spec.tls.known() else { return };
    for (side, place) in [(client, "spec.tls.client"), (peer, "spec.tls.peer")] {
        let Some(TlsSide { source, issuer_ref, secret_ref }) = side.known() else { continue };
        let chosen = source_of(side);
        let ability = match chosen {
            TlsSource::Managed => None,
            TlsSource::CertManager => Some(Ability::CertManager),
            TlsSource::Secret => Some(Ability::OwnCertificates),
            TlsSource::Disabled => Some(Ability::PlainText),
        };
        if let Some(ability) = ability {
            needs(ability, source.known().is_some(), &format!("{place}.source"), facts, findings);
        }
        let pairs = [
            ("issuerRef", issuer_ref.is_said(), TlsSource::CertManager, "the issuer that signs"),
            ("secretRef", secret_ref.is_said(), TlsSource::Secret, "the Secret they are in"),
        ];
        for (field, said, owner, what) in pairs {
            let here = format!("{place}.{field}");
            if !said && chosen == owner {
                let detail = format!("name {what}, or choose another `source` than \"{owner}\"");
                findings.required(here, detail);
            } else if said && chosen != owner {
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

/// Passwords need a user root, and a protected line.
pub(super) fn auth(new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let Some(Auth { enabled, root_secret_ref }) = new.spec.auth.known() else { return };
    if enabled.known() != Some(&true) {
        return;
    }
    needs(Ability::Auth, true, "spec.auth.enabled", facts, findings);
    if !root_secret_ref.is_said() {
        let detail = "name a Secret with `password` for the user root, or leave auth off";
        findings.required("spec.auth.rootSecretRef", detail);
    }
    let release = new.spec.version.known().and_then(|it| Release::parse(it.as_str()));
    if let Some((release, safe)) = release.and_then(|it| Some((it, keeps_users_apart(it)?))) {
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
