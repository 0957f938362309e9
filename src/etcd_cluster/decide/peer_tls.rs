//! How members call each other is changed one by one: first etcd's list, then the pod, which the rule about different members
//! makes anew.
//! Comes in: a formed cluster. Goes out: whose address is next. May touch: nothing; pure. All members have certificates before
//! the first is called so, because that alone makes their pods different.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, ObservedState, PodState, Reading, TemplateState,
};

/// One whose new address was written down, and that etcd lists under the old one: the others must find its next pod, which listens
/// as it was written down, even if something else is wanted by now. Whoever must call it so has a certificate.
pub(super) fn in_progress(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let (pending, _) =
        voters(state, etcd).find(|(it, entry)| it.peer_scheme != entry.peer_scheme)?;
    Some((Step::UpdatePeerUrl(pending.name.clone(), pending.peer_scheme), Reason::TlsTransition))
}

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let others =
        || voters(state, etcd).filter(|(it, _)| it.peer_scheme != state.desired.peer_scheme);
    let follower = others().find(|(_, entry)| !etcd.leads(entry.id));
    let (next, _) = follower.or_else(|| others().next())?;
    let runs = |it: &Member| {
        it.template == TemplateState::UpToDate && it.pod == Reading::Known(PodState::Active)
    };
    let can_proceed = etcd.all_voters_healthy() && state.remaining().all(runs);
    let update = || Step::UpdatePeerUrl(next.name.clone(), state.desired.peer_scheme);
    Some((if can_proceed { update() } else { Step::Wait }, Reason::TlsTransition))
}

/// Those who stay and vote. In older releases one who listens would vote from the moment its address changes.
fn voters<'a>(
    state: &'a ObservedState,
    etcd: &'a EtcdState,
) -> impl Iterator<Item = (&'a Member, &'a ListedMember)> {
    let voter = |name| etcd.entry(name).filter(|it| !it.is_learner);
    state.remaining().filter_map(move |it| Some((it, voter(&it.name)?)))
}
