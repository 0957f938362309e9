//! The sentences about how members are called, and whether etcd asks for users.
//! Comes in: the tale. Goes out: sentences. May touch: `api`; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Tale;
use crate::api::names;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::plan::Because;
use crate::etcd_cluster::seen::{Auth, Reading};

/// How a change goes of how members are called, or of whether etcd asks for users.
pub(super) fn words(tale: &Tale<'_>) -> String {
    if tale.plan.because == Because::Switching { switching(tale) } else { users(tale) }
}

/// How far a change of the way goes in which members are called.
fn switching(tale: &Tale<'_>) -> String {
    let peers = tale.seen.wanted.peers;
    let others = tale.seen.staying().filter(|it| it.address != peers).count();
    if others > 0 {
        return format!(
            "Members shall call each other {}: {others} of {} are still called in the old way. One after the other is changed, and all can \
             call in both ways meanwhile.",
            how(peers),
            tale.seen.staying().count(),
        );
    }
    let doors = tale.look.blueprint.doors;
    let told = doors.map_or(Scheme::Https, |it| it.told);
    let Some(until) = doors.and_then(|it| it.until) else {
        return format!(
            "All members take clients in both ways. The Secret for applications says next that they call {}.",
            how(told.other()),
        );
    };
    format!(
        "The Secret for applications says that clients call {}. They are taken in both ways until {until}, so that all have time to read it; \
         then the old way ends.",
        how(told),
    )
}

/// How a change of whether etcd asks for users goes.
fn users(tale: &Tale<'_>) -> String {
    let secret = tale.look.blueprint.spec.root_secret.as_deref().unwrap_or_default();
    let auth = match &tale.seen.etcd {
        Reading::Known(etcd) => etcd.auth,
        Reading::Unknown => Auth::Unknown,
    };
    match auth {
        Auth::NoPassword => format!(
            "`spec.auth` is enabled, and the Secret {secret} is not there, or has no `password`. Nothing is changed: make it, and the rest \
             follows."
        ),
        Auth::Unprepared | Auth::Prepared | Auth::AsWanted => {
            "etcd shall ask for users: root, the operator and the applications are made known to it, then it asks.".to_owned()
        }
        Auth::OtherPassword => {
            format!("The password of root is another than in the Secret {secret}: etcd is given that one.")
        }
        Auth::Unnamed => format!(
            "`spec.auth` is enabled, and the operator shows a certificate that does not have its name, `{}`: etcd would not know it, so it does \
             not ask for users yet. If authorities are being changed that ends by itself; if an issuer signs for the cluster, it must keep the \
             common name that it is asked for.",
            names::OPERATOR,
        ),
        Auth::Unwanted => "etcd asks for users, and shall not: it is told so.".to_owned(),
        Auth::Unknown => "It could not be found out whether etcd asks for users; members are not changed meanwhile.".to_owned(),
    }
}

/// How somebody is called, in words.
pub(super) const fn how(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Http => "in the clear",
        Scheme::Https => "with TLS",
    }
}
