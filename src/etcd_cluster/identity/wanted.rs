//! Which Secrets of a cluster must be written now, and when to look again.
//! Comes in: what was read, the time and the lifetimes. Goes out: what to write, or why nothing can be.
//! May touch: `pki`, the blueprint; pure. Authorities are made once and never replaced here: that is the rotation's,
//! which knows whom members that run trust.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::binding::{self, Binding, Identity};
use super::keys::Broken;
use super::leaves::{Leaves, peer_hosts, server_hosts};
use super::lifetimes::{Lifetimes, due, due_at};
use super::ring::Ring;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::seen::{Name, Reading};
use crate::pki::authority::Certificate;

/// What was read of a Secret: nothing if there is none, and what of it is broken.
pub(crate) type Found<T> = Reading<Option<Result<T, Broken>>>;

/// Everything that was read.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub(crate) ring: Found<Ring>,
    /// Each member of the cluster, with its Secret.
    pub(crate) members: Vec<(Name, Found<Leaves>)>,
    /// The binding; what of it is broken is beside it.
    pub(crate) binding: Reading<Option<(Binding, Option<Broken>)>>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What to write, in this order.
    pub(crate) writes: Vec<(Write, Because)>,
    /// Why nothing can be signed; a person is needed.
    pub(crate) stuck: Option<Stuck>,
    /// When the next certificate is due, as far as can be seen now.
    pub(crate) next: Option<Timestamp>,
}

/// One Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// New authorities. Everything else waits for them.
    Authorities,
    /// New certificates for a member.
    Member(Name),
    /// The certificates that a member has, and whom else it trusts.
    Trust(Name, Box<Leaves>),
    /// The binding, with a new certificate.
    Binding,
    /// The binding with other words or other trust, and the certificate that it has.
    Words(Box<Binding>),
}

/// Why it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Because {
    /// It is not there.
    Missing,
    /// It cannot be used.
    Broken(Broken),
    /// Another authority signed it, or it is not valid at this time.
    NotTaken,
    /// It is good for other hosts than it should be.
    OtherHosts,
    /// It tells something else than is the case.
    OtherWords,
    /// It says to trust others.
    OtherTrust,
    /// It has lived for two thirds of its life.
    Old,
}

/// Why nothing can be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stuck {
    /// The authorities cannot be read.
    #[error(transparent)]
    Broken(Broken),
    /// They are gone, and what they signed is in use.
    #[error(
        "the Secret with the cluster's certificate authorities is gone, and members use what they \
         signed: put it back, or delete the members' Secrets and then their pods to begin with new ones"
    )]
    Lost,
    /// One of them is not valid at this time.
    #[error("a certificate authority of the cluster has expired, or is not valid yet")]
    Expired,
}

/// Decides. `members` are those that applications are told of.
pub(crate) fn wanted(
    blueprint: &Blueprint<'_>,
    looked: &Looked,
    members: &[Name],
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Wanted {
    let ring = match &looked.ring {
        Reading::Unknown => return Wanted::default(),
        Reading::Known(None) if looked.members.iter().any(|(_, found)| is_in_use(found)) => {
            return Wanted { stuck: Some(Stuck::Lost), ..Wanted::default() };
        }
        Reading::Known(None) => return Wanted::of(Write::Authorities, Because::Missing),
        Reading::Known(Some(Err(broken))) => {
            return Wanted { stuck: Some(Stuck::Broken(broken.clone())), ..Wanted::default() };
        }
        Reading::Known(Some(Ok(ring))) => ring,
    };
    let both = ring.now.certificates();
    if both.iter().any(|it| !it.valid_at(now)) {
        return Wanted { stuck: Some(Stuck::Expired), ..Wanted::default() };
    }
    let desk = Desk { blueprint, ring, lifetimes, now };
    let mut wanted = Wanted::default();
    for (name, found) in &looked.members {
        wanted.add(desk.member(name, found));
    }
    wanted.add(desk.binding(&looked.binding, &binding::words(blueprint, members)));
    if !wanted.writes.is_empty() {
        let fresh = both.into_iter().map(|authority| lifetimes.next(authority, now)).min();
        wanted.next = fresh.into_iter().chain(wanted.next).min();
    }
    wanted
}

/// What is not known may be in use.
const fn is_in_use(found: &Found<Leaves>) -> bool {
    !matches!(found, Reading::Known(None))
}

/// What is known while Secrets are looked through.
struct Desk<'a> {
    blueprint: &'a Blueprint<'a>,
    ring: &'a Ring,
    lifetimes: Lifetimes,
    now: Timestamp,
}

/// One certificate, who should have signed it, and what for.
struct Shown<'a> {
    certificate: &'a Certificate,
    authority: &'a Certificate,
    hosts: Vec<String>,
}

/// What becomes of one Secret: it is written, or it is due some time; or nothing is known of it.
enum Fate {
    Write(Write, Because),
    Due(Option<Timestamp>),
    Unknown,
}

impl Desk<'_> {
    fn member(&self, name: &Name, found: &Found<Leaves>) -> Fate {
        let write = |because| Fate::Write(Write::Member(name.clone()), because);
        let leaves = match found {
            Reading::Unknown => return Fate::Unknown,
            Reading::Known(None) => return write(Because::Missing),
            Reading::Known(Some(Err(broken))) => return write(Because::Broken(broken.clone())),
            Reading::Known(Some(Ok(leaves))) => leaves,
        };
        let Leaves { server, peer, client_ca, peer_ca } = leaves;
        let both = [
            Shown {
                certificate: &server.certificate,
                authority: &self.ring.now.client.certificate,
                hosts: server_hosts(self.blueprint, name),
            },
            Shown {
                certificate: &peer.certificate,
                authority: &self.ring.now.peer.certificate,
                hosts: peer_hosts(self.blueprint, name),
            },
        ];
        if let Some(because) = both.iter().find_map(|shown| self.fault(shown)) {
            return write(because);
        }
        let (for_clients, for_peers) = (self.ring.for_clients(), self.ring.for_peers());
        if *client_ca != for_clients || *peer_ca != for_peers {
            let same = Leaves { client_ca: for_clients, peer_ca: for_peers, ..leaves.clone() };
            return Fate::Write(Write::Trust(name.clone(), Box::new(same)), Because::OtherTrust);
        }
        Fate::Due(both.iter().filter_map(|shown| self.due_at(shown)).min())
    }

    fn binding(
        &self,
        found: &Reading<Option<(Binding, Option<Broken>)>>,
        words: &BTreeMap<String, String>,
    ) -> Fate {
        if self.blueprint.told() == Scheme::Http {
            return open_binding(found, words);
        }
        let (held, broken) = match found {
            Reading::Unknown => return Fate::Unknown,
            Reading::Known(None) => return Fate::Write(Write::Binding, Because::Missing),
            Reading::Known(Some(found)) => found,
        };
        let Some(Identity { pair, ca }) = &held.identity else {
            let because = broken.clone().map_or(Because::Missing, Because::Broken);
            return Fate::Write(Write::Binding, because);
        };
        let authority = &self.ring.now.client.certificate;
        let shown = Shown { certificate: &pair.certificate, authority, hosts: Vec::new() };
        if let Some(because) = self.fault(&shown) {
            return Fate::Write(Write::Binding, because);
        }
        let trusted = self.ring.for_clients();
        if held.words != *words || *ca != trusted {
            let because = if *ca == trusted { Because::OtherWords } else { Because::OtherTrust };
            let identity = Some(Identity { pair: pair.clone(), ca: trusted });
            let same = Binding { words: words.clone(), identity };
            return Fate::Write(Write::Words(Box::new(same)), because);
        }
        Fate::Due(self.due_at(&shown))
    }

    /// What is wrong with it, if another would be better.
    fn fault(&self, shown: &Shown<'_>) -> Option<Because> {
        let Shown { certificate, authority, hosts } = shown;
        if !certificate.is_taken_by(authority, self.now) {
            return Some(Because::NotTaken);
        }
        if certificate.hosts() != hosts.iter().cloned().collect::<BTreeSet<_>>() {
            return Some(Because::OtherHosts);
        }
        let is_old = due(certificate, self.now) && self.would_live_longer(shown);
        is_old.then_some(Because::Old)
    }

    /// One that ends with its authority would end no later if it were signed again.
    fn would_live_longer(&self, shown: &Shown<'_>) -> bool {
        self.lifetimes.of_leaf(shown.authority, self.now).until > shown.certificate.until
    }

    fn due_at(&self, shown: &Shown<'_>) -> Option<Timestamp> {
        let at = due_at(shown.certificate);
        (at > self.now).then_some(at)
    }
}

/// What becomes of the binding where connections are in the clear: nobody shows anything there.
fn open_binding(
    found: &Reading<Option<(Binding, Option<Broken>)>>,
    words: &BTreeMap<String, String>,
) -> Fate {
    let because = match found {
        Reading::Unknown => return Fate::Unknown,
        Reading::Known(None) => Because::Missing,
        Reading::Known(Some((held, _))) if held.words == *words && held.identity.is_none() => {
            return Fate::Due(None);
        }
        Reading::Known(Some(_)) => Because::OtherWords,
    };
    let open = Binding { words: words.clone(), identity: None };
    Fate::Write(Write::Words(Box::new(open)), because)
}

impl Wanted {
    const fn default() -> Self {
        Self { writes: Vec::new(), stuck: None, next: None }
    }

    fn of(write: Write, because: Because) -> Self {
        Self { writes: vec![(write, because)], ..Self::default() }
    }

    fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Write(write, because) => self.writes.push((write, because)),
            Fate::Due(at) => self.next = self.next.into_iter().chain(at).min(),
            Fate::Unknown => {}
        }
    }
}
