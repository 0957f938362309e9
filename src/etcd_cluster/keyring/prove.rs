//! Calls every member to see whether it takes what the coming authorities sign, what it shows, and whom else it trusts.
//! Comes in: the ring, and where members are. Goes out: what each has shown. May touch: `ports`.
//! The word on a pod says whom it was made to trust, and a kubelet may have given it an older Secret: only a handshake
//! knows. Both ports are called, each as somebody of its own authority.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;

use super::{Circle, Seated};
use crate::api::names;
use crate::etcd_cluster::identity::company::{Proof, Shown};
use crate::etcd_cluster::identity::mint::Signing;
use crate::etcd_cluster::identity::ring::{Ring, Stage};
use crate::etcd_cluster::identity::trust::Sides;
use crate::pki::authority::Certificate;
use crate::pki::leaf::Signed;
use crate::pki::mint::Unmade;
use crate::ports::etcd::Place;
use crate::ports::handshake::{Caller, Ended, shake};

/// How long a handshake may take.
const LIMIT: Duration = Duration::from_secs(2);

/// One port, what is shown there, and whom the caller trusts.
pub(super) struct Door {
    pub(super) port: u16,
    pub(super) shown: Signed,
    pub(super) trusts: Vec<Certificate>,
    /// Whom a member must not trust any more.
    pub(super) dropped: Vec<Certificate>,
}

/// Calls everybody who has an address, as those whom the coming authorities sign.
pub(super) async fn prove(
    circle: &Circle<'_>,
    sides: Sides,
    signing: &Signing<'_>,
) -> Result<Proof, Unmade> {
    Ok(call(circle, &doors(sides, signing)?).await)
}

/// Calls everybody who has an address, at these doors.
pub(super) async fn call(circle: &Circle<'_>, doors: &[Door]) -> Proof {
    let asked = circle.seats.iter().map(|seated| one(seated, doors));
    let mut proof = BTreeMap::new();
    for (seated, shown) in circle.seats.iter().zip(join_all(asked).await) {
        // Two pods of one member: whichever is worse counts.
        let entry = proof.entry(seated.seat.member.clone()).or_insert(Shown::Well);
        if *entry == Shown::Well {
            *entry = shown;
        }
    }
    proof
}

fn doors(sides: Sides, signing: &Signing<'_>) -> Result<Vec<Door>, Unmade> {
    let Ring { now, stage, .. } = signing.ring;
    // Before they sign, members still show what the others signed. Afterwards that would not do.
    let (coming, everybody) = match stage {
        Stage::Introduced(next) => (&**next, true),
        Stage::Still | Stage::Retiring(_) | Stage::Dropped(_) => (now, false),
    };
    let [for_clients, for_peers] = match stage {
        Stage::Dropped(old) => old.clone().map(|it| vec![it]),
        Stage::Still | Stage::Introduced(_) | Stage::Retiring(_) => [Vec::new(), Vec::new()],
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
            doors.push(Door { port, shown: signing.caller(authority)?, trusts, dropped });
        }
    }
    Ok(doors)
}

async fn one(seated: &Seated, doors: &[Door]) -> Shown {
    let Some(place) = &seated.place else {
        return Shown::Silent("it has no address".to_owned());
    };
    for Door { port, shown, trusts, dropped } in doors {
        let place = Place { port: *port, ..place.clone() };
        let caller = Caller {
            certificate: &shown.certificate.der,
            chain: shown.chain.iter().map(|it| it.der.as_slice()).collect(),
            key: shown.key.pkcs8(),
            trusts: trusts.iter().map(|it| it.der.as_slice()).collect(),
        };
        match shake(&place, &caller, LIMIT).await {
            Ended::Well { asks_for } => {
                if dropped.iter().any(|it| asks_for.contains(&it.subject())) {
                    return Shown::StillTrusts;
                }
            }
            Ended::Refused => return Shown::Refuses,
            Ended::NotTrusted => return Shown::ShowsOther,
            Ended::Unknown(why) => return Shown::Silent(format!("port {port}: {why}")),
        }
    }
    Shown::Well
}
