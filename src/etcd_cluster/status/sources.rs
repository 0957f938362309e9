//! What is told of certificates from elsewhere, and of sides that come to rest on other authorities.
//! Comes in: a flaw, or how far a side has come. Goes out: a reason and a sentence. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::certificates::waits;
use crate::etcd_cluster::identity::changeover::{Changing, Stage};
use crate::etcd_cluster::identity::given::Flaw;
use crate::etcd_cluster::identity::tidings::Tidings;

/// The reason of a flaw, in one word.
pub(super) const fn flawed(flaw: &Flaw) -> &'static str {
    match flaw {
        Flaw::Missing(_)
        | Flaw::Broken(_)
        | Flaw::TooMany(_)
        | Flaw::Calls { .. }
        | Flaw::Serves { .. }
        | Flaw::NotServed => "CertificatesUnusable",
        Flaw::EndsSoon { .. } => "CertificatesEndSoon",
        Flaw::Awaited(_) => "CertificatesAwaited",
    }
}

/// The sentence about a flaw.
pub(super) fn flaw(flaw: &Flaw) -> String {
    if flaw.stops() {
        format!("{flaw}. Members go on with the certificates that they have.")
    } else {
        format!("{flaw}.")
    }
}

/// What a person must mend, if there is anything: its reason, and the sentence.
pub(super) fn to_mend(tidings: &Tidings) -> Option<(&'static str, String)> {
    if let Some(stuck) = &tidings.stuck {
        return Some(("CertificatesStuck", stuck.to_string()));
    }
    let found = tidings.flaw.as_ref().filter(|it| it.needs_a_person());
    found.map(|it| (flawed(it), flaw(it)))
}

/// The reason of a side that is on its way, in one word.
pub(super) const fn reason(changing: &Changing) -> &'static str {
    match changing.stage {
        Stage::Asked => "AuthoritiesAsked",
        Stage::Introduced => "AuthoritiesIntroduced",
        Stage::Retiring => "AuthoritiesRetiring",
        Stage::Dropped => "AuthoritiesDropped",
    }
}

/// The sentence about it.
pub(super) fn words(changing: &Changing) -> String {
    let Changing { side, stage, waits: awaited } = changing;
    let (begun, then) = match stage {
        Stage::Asked => ("are asked for", "they are trusted beside those before"),
        Stage::Introduced => ("are trusted beside those before", "members show what they signed"),
        Stage::Retiring => {
            ("signed what members show, and those before are still trusted", "these are dropped")
        }
        Stage::Dropped => {
            ("are in place, and members are started without those before", "that is over")
        }
    };
    let place = format!("`spec.tls.{}`", side.word());
    format!("{place}: other certificate authorities {begun}; {then} {}.", waits(awaited))
}
