//! How members call each other is changed one by one: first etcd's list, then the pod, which the rule about different members
//! makes anew.
//! Comes in: a formed cluster. Goes out: whose address is next. May touch: nothing; pure. All members have certificates before
//! the first is called so, because that alone makes their pods different.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Etcd, Made, Member, Pod, Reading, Registered, Seen};

/// One whose new address was written down, and that etcd lists under the old one: the others must find its next pod, which listens
/// as it was written down, even if something else is wanted by now. Whoever must call it so has a certificate.
pub(super) fn begun(seen: &Seen, etcd: &Etcd) -> Said {
    let (half, _) = voters(seen, etcd).find(|(it, entry)| it.address != entry.peer)?;
    Some((Step::Readdress(half.name.clone(), half.address), Because::Switching))
}

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    let others = || voters(seen, etcd).filter(|(it, _)| it.address != seen.wanted.peers);
    let follower = others().find(|(_, entry)| !etcd.leads(entry.id));
    let (next, _) = follower.or_else(|| others().next())?;
    let runs = |it: &Member| it.made == Made::AsWanted && it.pod == Reading::Known(Pod::Started);
    let can_go_on = etcd.all_voters_are_well() && seen.staying().all(runs);
    let readdress = || Step::Readdress(next.name.clone(), seen.wanted.peers);
    Some((if can_go_on { readdress() } else { Step::Wait }, Because::Switching))
}

/// Those who stay and vote. In older releases one who listens would vote from the moment its address changes.
fn voters<'a>(
    seen: &'a Seen,
    etcd: &'a Etcd,
) -> impl Iterator<Item = (&'a Member, &'a Registered)> {
    let voter = |name| etcd.entry(name).filter(|it| !it.learner);
    seen.staying().filter_map(move |it| Some((it, voter(&it.name)?)))
}
