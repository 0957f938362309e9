//! Probes all members with TLS handshakes: whether they accept certificates of the new CAs, which
//! certificate they present, and which other CAs they trust.
//! A pod's annotation is not enough, because the kubelet may have mounted an older Secret: only a
//! handshake reveals the trust bundle in use. Both ports are probed, each with its own CA.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;

use super::{CertificateScope, PodEndpoint};
use crate::api::names;
use crate::clients::etcd::MemberEndpoint;
use crate::clients::tls_probe::{ClientIdentity, Handshake, probe};
use crate::etcd_cluster::tls::ca_set::{CaSet, RotationPhase};
use crate::etcd_cluster::tls::issue::Issuer;
use crate::etcd_cluster::tls::readiness::{ProbeResults, TlsProbe};
use crate::etcd_cluster::tls::trust_hash::Sides;
use crate::pki::ca::Certificate;
use crate::pki::issue::IssueError;
use crate::pki::leaf::CertifiedKey;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// One port, and how it is probed.
pub(super) struct ProbeTarget {
    pub(super) port: u16,
    pub(super) client_cert: CertifiedKey,
    /// The CAs that may have issued the member's certificate.
    pub(super) trusted_cas: Vec<Certificate>,
    /// The CAs that the member must not accept.
    pub(super) removed_cas: Vec<Certificate>,
}

/// Probes all pods with client certificates of the new managed CAs.
pub(super) async fn probe_rotation(
    scope: &CertificateScope<'_>,
    sides: Sides,
    issuer: &Issuer<'_>,
) -> Result<ProbeResults, IssueError> {
    Ok(probe_all(scope, &rotation_targets(sides, issuer)?).await)
}

/// Probes all pods at these targets.
pub(super) async fn probe_all(
    scope: &CertificateScope<'_>,
    targets: &[ProbeTarget],
) -> ProbeResults {
    let probes = scope.pods.iter().map(|pod| probe_pod(pod, targets));
    let mut results = BTreeMap::new();
    for (pod, result) in scope.pods.iter().zip(join_all(probes).await) {
        // With two pods of one member, a failed probe counts.
        let entry = results.entry(pod.trust.member.clone()).or_insert(TlsProbe::Ok);
        if *entry == TlsProbe::Ok {
            *entry = result;
        }
    }
    results
}

fn rotation_targets(sides: Sides, issuer: &Issuer<'_>) -> Result<Vec<ProbeTarget>, IssueError> {
    let CaSet { current, phase, .. } = issuer.ca_set;
    // Before the switch members present certificates of the old CAs; after it they must not.
    let (new, trusts_all) = match phase {
        RotationPhase::Distributing(next) => (&**next, true),
        RotationPhase::Idle | RotationPhase::Retiring(_) | RotationPhase::Verifying(_) => {
            (current, false)
        }
    };
    let [removed_client, removed_peer] = match phase {
        RotationPhase::Verifying(old) => old.clone().map(|ca| vec![ca]),
        RotationPhase::Idle | RotationPhase::Distributing(_) | RotationPhase::Retiring(_) => {
            [Vec::new(), Vec::new()]
        }
    };
    let (client_bundle, peer_bundle) = (issuer.ca_set.client_bundle(), issuer.ca_set.peer_bundle());
    let all = [
        (sides.client, names::ETCD_CLIENT_PORT, &new.client, client_bundle, removed_client),
        (sides.peer, names::ETCD_PEER_PORT, &new.peer, peer_bundle, removed_peer),
    ];
    let mut targets = Vec::new();
    for (uses_tls, port, ca, bundle, removed_cas) in all {
        if uses_tls {
            let trusted_cas = if trusts_all { bundle } else { vec![ca.certificate.clone()] };
            let client_cert = issuer.client(ca)?;
            targets.push(ProbeTarget { port, client_cert, trusted_cas, removed_cas });
        }
    }
    Ok(targets)
}

async fn probe_pod(pod: &PodEndpoint, targets: &[ProbeTarget]) -> TlsProbe {
    let Some(endpoint) = &pod.endpoint else {
        return TlsProbe::Unreachable("the pod has no address".to_owned());
    };
    for ProbeTarget { port, client_cert, trusted_cas, removed_cas } in targets {
        let endpoint = MemberEndpoint { port: *port, ..endpoint.clone() };
        let identity = ClientIdentity {
            certificate: &client_cert.certificate.der,
            chain: client_cert.chain.iter().map(|issuer| issuer.der.as_slice()).collect(),
            key: client_cert.key.pkcs8(),
            trusted_cas: trusted_cas.iter().map(|ca| ca.der.as_slice()).collect(),
        };
        match probe(&endpoint, &identity, HANDSHAKE_TIMEOUT).await {
            Handshake::Ok { accepted_issuers } => {
                if removed_cas.iter().any(|ca| accepted_issuers.contains(&ca.subject())) {
                    return TlsProbe::TrustsOldCa;
                }
            }
            Handshake::Rejected => return TlsProbe::RejectsNewCa,
            Handshake::UntrustedServer => return TlsProbe::PresentsOldCert,
            Handshake::Failed(error) => {
                return TlsProbe::Unreachable(format!("port {port}: {error}"));
            }
        }
    }
    TlsProbe::Ok
}
