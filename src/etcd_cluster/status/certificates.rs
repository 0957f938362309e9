//! What is told of authorities that take the place of others.
//! Comes in: how far they are, and what they wait for. Goes out: a reason and a sentence. May touch: nothing; pure.
//! Times are those at which something happens, never how long it is until then: a status that waits costs no writes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::etcd_cluster::identity::company::{Shown, Waits};
use crate::etcd_cluster::identity::ring::Stage;
use crate::etcd_cluster::identity::rotation::Turning;

/// The reason, in one word.
pub(super) const fn reason(turning: &Turning) -> &'static str {
    match turning.stage {
        Stage::Still => "Valid",
        Stage::Introduced(_) => "AuthoritiesIntroduced",
        Stage::Retiring(_) => "AuthoritiesRetiring",
        Stage::Dropped(_) => "AuthoritiesDropped",
    }
}

/// The sentence.
pub(super) fn words(turning: &Turning) -> String {
    let (begun, then) = match turning.stage {
        Stage::Still => ("The certificate authorities are as they should be", "they stay"),
        Stage::Introduced(_) => {
            ("New certificate authorities are trusted beside those that sign", "they sign")
        }
        Stage::Retiring(_) => (
            "New certificate authorities sign, and the old ones are still trusted",
            "the old ones are dropped",
        ),
        Stage::Dropped(_) => (
            "Nobody needs the old certificate authorities any more, and members are started without them",
            "that is over",
        ),
    };
    format!("{begun}; {then} {}.", waits(&turning.waits))
}

/// What is waited for.
pub(super) fn waits(waits: &Waits) -> String {
    match waits {
        Waits::Allowed => "when the cluster is not left alone any more".to_owned(),
        Waits::Room => "when there is room for them: with those before these are too many, so ask for those again that were on \
                        their way, and for these when that is over"
            .to_owned(),
        Waits::Started(names) => {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            format!("after these members have been started anew: {}", names.join(", "))
        }
        Waits::Until(at) => {
            format!("from {at} on; applications have until then to read their Secret again")
        }
        Waits::Shown(name, shown) => format!("as soon as {name} {}", needed(shown)),
    }
}

fn needed(shown: &Shown) -> String {
    match shown {
        Shown::Well => "is looked at again".to_owned(),
        Shown::Refuses => "was started anew: it does not take what the new ones sign".to_owned(),
        Shown::ShowsOther => {
            "shows what the new ones signed, which its node hands to it within minutes".to_owned()
        }
        Shown::StillTrusts => {
            "was started anew: it still takes what the old ones signed".to_owned()
        }
        Shown::Silent(why) => format!("can be called by the operator ({why})"),
    }
}
