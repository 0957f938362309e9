//! Calls every member to see whether it takes what the coming authorities sign, what it shows, and whom else it trusts.
//! Comes in: the ring, and where members are. Goes out: what each has shown. May touch: `clients`.
//! The word on a pod says whom it was made to trust, and a kubelet may have given it an older Secret: only a handshake
//! knows. Both ports are called, each as somebody of its own authority.

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

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// One port, what is shown there, and whom the caller trusts.
pub(super) struct ProbeTarget {
    pub(super) port: u16,
    pub(super) shown: CertifiedKey,
    pub(super) trusts: Vec<Certificate>,
    /// Whom a member must not trust any more.
    pub(super) dropped: Vec<Certificate>,
}

/// Calls everybody who has an address, as those whom the coming authorities sign.
pub(super) async fn probe_rotation(
    circle: &CertificateScope<'_>,
    sides: Sides,
    signing: &Issuer<'_>,
) -> Result<ProbeResults, IssueError> {
    Ok(probe_all(circle, &doors(sides, signing)?).await)
}

/// Calls everybody who has an address, at these doors.
pub(super) async fn probe_all(
    circle: &CertificateScope<'_>,
    doors: &[ProbeTarget],
) -> ProbeResults {
    let asked = circle.seats.iter().map(|seated| one(seated, doors));
    let mut proof = BTreeMap::new();
    for (seated, shown) in circle.seats.iter().zip(join_all(asked).await) {
        // Two pods of one member: whichever is worse counts.
        let entry = proof.entry(seated.seat.member.clone()).or_insert(TlsProbe::Ok);
        if *entry == TlsProbe::Ok {
            *entry = shown;
        }
    }
    proof
}

fn doors(sides: Sides, signing: &Issuer<'_>) -> Result<Vec<ProbeTarget>, IssueError> {
    let CaSet { now, stage, .. } = signing.ring;
    // Before they sign, members still show what the others signed. Afterwards that would not do.
    let (coming, everybody) = match stage {
        RotationPhase::Distributing(next) => (&**next, true),
        RotationPhase::Idle | RotationPhase::Retiring(_) | RotationPhase::Verifying(_) => {
            (now, false)
        }
    };
    let [for_clients, for_peers] = match stage {
        RotationPhase::Verifying(old) => old.clone().map(|it| vec![it]),
        RotationPhase::Idle | RotationPhase::Distributing(_) | RotationPhase::Retiring(_) => {
            [Vec::new(), Vec::new()]
        }
    };
    let mut doors = Vec::new();
    let all = [
        (
            sides.client,
            names::ETCD_CLIENT_PORT,
            &coming.client,
            signing.ring.for_clients(),
            for_clients,
        ),
        (sides.peer, names::ETCD_PEER_PORT, &coming.peer, signing.ring.for_peers(), for_peers),
    ];
    for (protected, port, authority, trusted, dropped) in all {
        if protected {
            let alone = vec![authority.certificate.clone()];
            let trusts = if everybody { trusted } else { alone };
            doors.push(ProbeTarget { port, shown: signing.caller(authority)?, trusts, dropped });
        }
    }
    Ok(doors)
}

async fn one(seated: &PodEndpoint, doors: &[ProbeTarget]) -> TlsProbe {
    let Some(place) = &seated.place else {
        return TlsProbe::Unreachable("it has no address".to_owned());
    };
    for ProbeTarget { port, shown, trusts, dropped } in doors {
        let place = MemberEndpoint { port: *port, ..place.clone() };
        let caller = ClientIdentity {
            certificate: &shown.certificate.der,
            chain: shown.chain.iter().map(|it| it.der.as_slice()).collect(),
            key: shown.key.pkcs8(),
            trusted_cas: trusts.iter().map(|it| it.der.as_slice()).collect(),
        };
        match probe(&place, &caller, HANDSHAKE_TIMEOUT).await {
            Handshake::Ok { accepted_issuers: asks_for } => {
                if dropped.iter().any(|it| asks_for.contains(&it.subject())) {
                    return TlsProbe::TrustsOldCa;
                }
            }
            Handshake::Rejected => return TlsProbe::RejectsNewCa,
            Handshake::UntrustedServer => return TlsProbe::PresentsOldCert,
            Handshake::Failed(why) => return TlsProbe::Unreachable(format!("port {port}: {why}")),
        }
    }
    TlsProbe::Ok
}
