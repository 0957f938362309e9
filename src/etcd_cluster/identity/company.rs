//! Those who have to follow before whom they trust can change: the members and their pods, and what they have shown.
//! Comes in: who there is, whom their pods were made to trust, and what came of calling them. Goes out: whether the next step can
//! be made, or why not yet. May touch: nothing; pure. It is the same for our own authorities and for those from elsewhere.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::etcd_cluster::seen::Name;

/// A pod of a member, and whom it was started to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) member: Name,
    /// The uid of the pod.
    pub(crate) pod: String,
    /// The word on it for whom it trusts.
    pub(crate) trusts: Option<String>,
}

/// What a member has shown when it was called as by somebody whom the coming authorities signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It takes that, and shows what is wanted.
    Well,
    /// It does not take it: it has not read whom to trust.
    Refuses,
    /// It still shows what the others signed.
    ShowsOther,
    /// It still trusts somebody who was dropped.
    StillTrusts,
    /// It cannot be reached; why.
    Silent(String),
}

/// What members have shown, each that has a pod.
pub(crate) type Proof = BTreeMap<Name, Shown>;

/// What a step waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The cluster is to be left alone.
    Allowed,
    /// Fewer authorities.
    Room,
    /// These have not been started since.
    Started(Vec<Name>),
    /// Applications, which have until then.
    Until(Timestamp),
    /// This one, which does not take or show what it should.
    Shown(Name, Shown),
}

/// Everybody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Company<'a> {
    /// The word for whom a pod trusts that is made now.
    pub(crate) word: &'a str,
    /// Every member.
    pub(crate) members: &'a [Name],
    /// Every pod.
    pub(crate) seats: &'a [Seat],
}

/// Whether a step can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Yes,
    /// Members must be called to see what they take and show.
    Prove,
    /// Not yet.
    Wait(Waits),
}

impl Company<'_> {
    /// Whether it is time, everybody has been started since, and everybody has shown to be ready.
    pub(crate) fn ready(&self, ripe: Timestamp, now: Timestamp, proof: Option<&Proof>) -> Ready {
        let late = self.late();
        if !late.is_empty() {
            return Ready::Wait(Waits::Started(late));
        }
        if now < ripe {
            return Ready::Wait(Waits::Until(ripe));
        }
        let Some(proof) = proof else { return Ready::Prove };
        for seat in self.seats {
            match proof.get(&seat.member) {
                Some(Shown::Well) => {}
                Some(shown) => {
                    return Ready::Wait(Waits::Shown(seat.member.clone(), shown.clone()));
                }
                None => return Ready::Prove,
            }
        }
        Ready::Yes
    }

    /// Who runs without having been told, or does not run: it may be about to.
    fn late(&self) -> Vec<Name> {
        let knows = |it: &&Seat| it.trusts.as_deref() == Some(self.word);
        let has_seat = |name: &&Name| self.seats.iter().any(|it| it.member == **name);
        let without = self.members.iter().filter(|it| !has_seat(it));
        let untold = self.seats.iter().filter(|it| !knows(it)).map(|it| &it.member);
        let mut late: Vec<Name> = without.chain(untold).cloned().collect();
        late.sort();
        late.dedup();
        late
    }
}
