//! What must be done before the next release can come in, when all members run the one before.
//! Comes in: a formed cluster in which nobody comes or goes. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Course, Etcd, Lowering, Seen};

/// A way down that is not wanted any more is closed before anything else is changed: while it is open, etcd does not go up.
pub(super) fn withdrawn(_: &Seen, etcd: &Etcd) -> Said {
    match etcd.lowering {
        Lowering::Unwanted => Some((Step::ForbidDowngrade, Because::Settling)),
        Lowering::No | Lowering::AsWanted => None,
    }
}

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    if !etcd.all_voters_are_well() || etcd.alarmed {
        return None;
    }
    let step = match (seen.wanted.course, etcd.lowering) {
        (Course::Further, _) if etcd.log_lacks > 0 => Step::FillLog,
        (Course::Down, Lowering::No) => Step::AllowDowngrade,
        (Course::Reached | Course::Further | Course::Down | Course::NoWay, _) => return None,
    };
    Some((step, Because::Settling))
}
