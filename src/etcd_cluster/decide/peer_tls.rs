//! Switches the scheme of the peer URLs one member at a time: first etcd's member list, then the
//! pod, by a rolling update.
//!
//! Guarantees: all members have peer certificates before the first peer URL changes, because the
//! pods are updated for that first.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, ObservedState, PodState, Reading, TemplateState,
};

/// Finishes a switch that is recorded and not yet in etcd's member list, even if the spec has
/// changed since: the member's next pod listens with the recorded scheme, and the others must reach
/// it. They have their certificates.
pub(super) fn in_progress(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let (pending, _) =
        voters(state, etcd).find(|(member, entry)| member.peer_scheme != entry.peer_scheme)?;
    Some((Step::UpdatePeerUrl(pending.name.clone(), pending.peer_scheme), Reason::TlsTransition))
}

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let pending = || {
        voters(state, etcd).filter(|(member, _)| member.peer_scheme != state.desired.peer_scheme)
    };
    let follower = pending().find(|(_, entry)| !etcd.leads(entry.id));
    let (next, _) = follower.or_else(|| pending().next())?;
    let runs = |member: &Member| {
        member.template == TemplateState::UpToDate && member.pod == Reading::Known(PodState::Active)
    };
    let can_proceed = etcd.all_voters_healthy() && state.remaining().all(runs);
    let update = || Step::UpdatePeerUrl(next.name.clone(), state.desired.peer_scheme);
    Some((if can_proceed { update() } else { Step::Wait }, Reason::TlsTransition))
}

/// The voters that remain. Older etcd releases promote a learner when its peer URL is updated.
fn voters<'a>(
    state: &'a ObservedState,
    etcd: &'a EtcdState,
) -> impl Iterator<Item = (&'a Member, &'a ListedMember)> {
    let voter = |name| etcd.entry(name).filter(|entry| !entry.is_learner);
    state.remaining().filter_map(move |member| Some((member, voter(&member.name)?)))
}
