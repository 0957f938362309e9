//! Those who have to follow before whom they trust can change: the members and their pods, and what they have shown.
//! Comes in: who there is, whom their pods were made to trust, and what came of calling them. Goes out: whether the next step can
//! be made, or why not yet. May touch: nothing; pure. It is the same for our own authorities and for those from elsewhere.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::etcd_cluster::state::MemberName;

/// A pod of a member, and whom it was started to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodTrust {
    pub(crate) member: MemberName,
    /// The uid of the pod.
    pub(crate) pod: String,
    /// The word on it for whom it trusts.
    pub(crate) trusts: Option<String>,
}

/// What a member has shown when it was called as by somebody whom the coming authorities signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsProbe {
    /// It takes that, and shows what is wanted.
    Ok,
    /// It does not take it: it has not read whom to trust.
    RejectsNewCa,
    /// It still shows what the others signed.
    PresentsOldCert,
    /// It still trusts somebody who was dropped.
    TrustsOldCa,
    /// It cannot be reached; why.
    Unreachable(String),
}

/// What members have shown, each that has a pod.
pub(crate) type ProbeResults = BTreeMap<MemberName, TlsProbe>;

/// What a step waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitingFor {
    /// The cluster is to be left alone.
    Unpause,
    /// Fewer authorities.
    BundleSpace,
    /// These have not been started since.
    Restart(Vec<MemberName>),
    /// Applications, which have until then.
    Overlap(Timestamp),
    /// This one, which does not take or show what it should.
    Probe(MemberName, TlsProbe),
}

/// Everybody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberReadiness<'a> {
    /// The word for whom a pod trusts that is made now.
    pub(crate) word: &'a str,
    /// Every member.
    pub(crate) members: &'a [MemberName],
    /// Every pod.
    pub(crate) seats: &'a [PodTrust],
}

/// Whether a step can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// Members must be called to see what they take and show.
    NeedsProbe,
    /// Not yet.
    Wait(WaitingFor),
}

impl MemberReadiness<'_> {
    /// Whether it is time, everybody has been started since, and everybody has shown to be ready.
    pub(crate) fn ready(
        &self,
        ripe: Timestamp,
        now: Timestamp,
        proof: Option<&ProbeResults>,
    ) -> Readiness {
        let late = self.late();
        if !late.is_empty() {
            return Readiness::Wait(WaitingFor::Restart(late));
        }
        if now < ripe {
            return Readiness::Wait(WaitingFor::Overlap(ripe));
        }
        let Some(proof) = proof else { return Readiness::NeedsProbe };
        for seat in self.seats {
            match proof.get(&seat.member) {
                Some(TlsProbe::Ok) => {}
                Some(shown) => {
                    return Readiness::Wait(WaitingFor::Probe(seat.member.clone(), shown.clone()));
                }
                None => return Readiness::NeedsProbe,
            }
        }
        Readiness::Ready
    }

    /// Who runs without having been told, or does not run: it may be about to.
    fn late(&self) -> Vec<MemberName> {
        let knows = |it: &&PodTrust| it.trusts.as_deref() == Some(self.word);
        let has_seat = |name: &&MemberName| self.seats.iter().any(|it| it.member == **name);
        let without = self.members.iter().filter(|it| !has_seat(it));
        let untold = self.seats.iter().filter(|it| !knows(it)).map(|it| &it.member);
        let mut late: Vec<MemberName> = without.chain(untold).cloned().collect();
        late.sort();
        late.dedup();
        late
    }
}
