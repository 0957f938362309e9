//! Invariant of the source model: all running members and the applications accept each other.

use super::super::super::client_secret::ClientSecret;
use super::super::super::readiness::{ProbeResults, TlsProbe};
use super::super::super::source::DesiredTrust;
use super::super::super::trust_bundle::Side;
use super::super::super::trust_change::TrustPhase;
use super::super::*;
use super::{Model, Trusted};
use crate::api::names;
use crate::pki::leaf::CertifiedKey;

impl Model {
    /// Probes all members.
    pub(super) fn probe(&mut self, side: Side, desired: &DesiredTrust) -> ProbeResults {
        let trust_state = self.trust_states.get(side).clone();
        let issuer = issuer(&self.ca_set, at(0));
        let ca = match side {
            Side::Client => &self.ca_set.current.client,
            Side::Peer => &self.ca_set.current.peer,
        };
        let client_cert =
            desired.operator_cert.clone().unwrap_or_else(|| issuer.client(ca).unwrap());
        let trusted_cas = match trust_state.phase(desired) {
            TrustPhase::Requested | TrustPhase::Distributing => {
                trust_state.published.certificates(&self.ca_set, side)
            }
            TrustPhase::Retiring | TrustPhase::Verifying => {
                desired.bundle.certificates(&self.ca_set, side)
            }
        };
        let removed = trust_state.removed_to_verify(&self.ca_set, side);
        let all: Vec<_> = self
            .members
            .iter()
            .map(|member| {
                let name = required_name(side == Side::Peer && member.requires_cluster_name);
                (member.name.clone(), member.mounted.clone(), member.trusts.clone(), name)
            })
            .collect();
        let mut results = ProbeResults::new();
        for (name, mounted, trusted, required_name) in all {
            let (Some(certs), Some(trusted)) = (mounted, trusted) else {
                results.insert(name, TlsProbe::Unreachable("down".to_owned()));
                continue;
            };
            let (server_cert, bundle) = of_side(side, &certs, &trusted);
            let result = if !self.accepts_client(bundle, &client_cert, &required_name) {
                TlsProbe::RejectsNewCa
            } else if !self.accepts_server(&trusted_cas, server_cert, &host(&name)) {
                TlsProbe::PresentsOldCert
            } else if bundle.iter().any(|ca| removed.contains(ca)) {
                TlsProbe::TrustsOldCa
            } else {
                TlsProbe::Ok
            };
            results.insert(name, result);
        }
        results
    }

    fn verify(&mut self, key_pair: &CertifiedKey, cas: &[Certificate], host: &str) -> bool {
        let trusted = cas.iter().map(|ca| ca.der.clone()).collect();
        let key = (key_pair.certificate.der.clone(), trusted, host.to_owned());
        let now = at(self.now);
        *self.verified.entry(key).or_insert_with(|| {
            if host.is_empty() {
                key_pair.verify_as_client(cas, now).is_ok()
            } else {
                key_pair.verify_as_server(cas, host, now).is_ok()
            }
        })
    }

    /// Whether a server that trusts these CAs accepts a client, and its name if one is required.
    pub(super) fn accepts_client(
        &mut self,
        cas: &[Certificate],
        key_pair: &CertifiedKey,
        required_name: &str,
    ) -> bool {
        let sans = key_pair.certificate.hosts();
        self.verify(key_pair, cas, "")
            && (required_name.is_empty() || sans.iter().any(|san| covers(san, required_name)))
    }

    /// Whether a client that trusts these CAs accepts a server that it dials as `host`.
    pub(super) fn accepts_server(
        &mut self,
        cas: &[Certificate],
        key_pair: &CertifiedKey,
        host: &str,
    ) -> bool {
        self.verify(key_pair, cas, host)
    }

    /// All running members and the applications accept each other's certificates.
    pub(super) fn check(&mut self, context: &str) {
        type Running = (MemberName, MemberCertificates, Trusted, String);
        let running: Vec<Running> = self
            .members
            .iter()
            .filter_map(|member| {
                let required_name = required_name(member.requires_cluster_name);
                let (mounted, trusts) = (member.mounted.clone()?, member.trusts.clone()?);
                Some((member.name.clone(), mounted, trusts, required_name))
            })
            .collect();
        let applications = [self.application.0.clone(), self.client_secret.clone()];
        for (name, certs, [clients, peers], required_name) in &running {
            for (other, presented, _, _) in &running {
                let accepted = self.accepts_client(peers, &presented.peer, required_name);
                assert!(accepted, "{context}: {name} rejects connections of {other}");
                let accepted = self.accepts_server(peers, &presented.peer, &host(other));
                assert!(accepted, "{context}: {name} cannot dial {other}");
            }
            for (index, client_secret) in applications.iter().enumerate() {
                let ClientSecret { key_pair: Some(key_pair), ca, .. } = client_secret else {
                    panic!("no client certificate")
                };
                let accepted = self.accepts_server(ca, &certs.server, &host(name));
                assert!(accepted, "{context}: application {index} rejects {name}");
                let accepted = self.accepts_client(clients, key_pair, "");
                assert!(accepted, "{context}: {name} rejects application {index}");
            }
        }
    }
}

pub(super) fn host(name: &MemberName) -> String {
    names::member_host(&name.0, "space")
}

/// The name that peers must have; empty if none is required.
fn required_name(is_required: bool) -> String {
    if is_required { names::member_host("main", "space") } else { String::new() }
}

/// Whether a SAN matches a host.
fn covers(san: &str, host: &str) -> bool {
    let wildcard = san
        .strip_prefix("*.")
        .is_some_and(|domain| host.split_once('.').is_some_and(|(_, rest)| rest == domain));
    wildcard || san == host
}

fn of_side<'a>(
    side: Side,
    certs: &'a MemberCertificates,
    [clients, peers]: &'a Trusted,
) -> (&'a CertifiedKey, &'a [Certificate]) {
    match side {
        Side::Client => (&certs.server, clients),
        Side::Peer => (&certs.peer, peers),
    }
}
