//! Whether etcd asks for users: whom it must know is made known first, and only then it asks.
//! Comes in: a formed cluster. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Auth, Etcd, Seen};

/// What is not wanted any more ends before members are changed: whoever takes calls in the clear knows nobody. What is not known
/// may be the case.
pub(super) fn withdrawn(_: &Seen, etcd: &Etcd) -> Said {
    let step = match etcd.auth {
        Auth::Unwanted => Step::DisableAuth,
        Auth::Unknown => Step::Wait,
        Auth::AsWanted
        | Auth::Unprepared
        | Auth::Prepared
        | Auth::OtherPassword
        | Auth::NoPassword
        | Auth::Unnamed => return None,
    };
    Some((step, Because::ChangingAuth))
}

pub(super) fn rule(_: &Seen, etcd: &Etcd) -> Said {
    let step = match etcd.auth {
        Auth::Unprepared | Auth::OtherPassword => Step::MakeUsers,
        Auth::Prepared => Step::EnableAuth,
        Auth::AsWanted | Auth::Unwanted | Auth::Unknown | Auth::NoPassword | Auth::Unnamed => {
            return None;
        }
    };
    etcd.all_voters_are_well().then_some((step, Because::ChangingAuth))
}
