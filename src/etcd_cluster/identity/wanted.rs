//! Which Secrets of a cluster must be written now, and when to look again.
//! Comes in: what was read, the time and the lifetimes. Goes out: what to write, or why nothing can be.
//! May touch: `pki`, the blueprint; pure. Authorities are made once and never replaced here: that is the rotation's,
//! which knows whom members that run trust.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::binding::{self, Binding};
use super::footing::Footings;
use super::given::Flaw;
use super::keys::Broken;
use super::leaves::{Draft, Leaves, Part, peer_hosts, server_hosts};
use super::lifetimes::{Lifetimes, due, due_at};
use super::offer::{Offers, Pairs};
use super::pick::Pick;
use super::ring::Ring;
use super::roots::Side;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::seen::{Name, Reading};
use crate::pki::authority::Certificate;
use crate::pki::leaf::Signed;

/// What was read of a Secret: nothing if there is none, and what of it is broken.
pub(crate) type Found<T> = Reading<Option<Result<T, Broken>>>;

/// Everything that was read.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub(crate) ring: Found<Ring>,
    /// What each side rests on.
    pub(crate) footings: Footings,
    /// What each side is offered.
    pub(crate) offers: Offers,
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
    /// Other certificates for a member.
    Member(Name, Box<Draft>),
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
    /// It is not the one that was given.
    OtherGiven,
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
    /// What others give cannot be used, and there is nothing else.
    #[error(transparent)]
    Given(Flaw),
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
    let Looked { footings, offers, .. } = looked;
    let desk = Desk { blueprint, ring, footings, offers, lifetimes, now };
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
    footings: &'a Footings,
    offers: &'a Offers,
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

/// What becomes of one certificate of a member: another takes its place, or it is due some time.
type Turnout = Result<Option<Timestamp>, (Part, Because)>;

impl Desk<'_> {
    fn member(&self, name: &Name, found: &Found<Leaves>) -> Fate {
        let (held, missing) = match found {
            Reading::Unknown => return Fate::Unknown,
            Reading::Known(None) => (None, Because::Missing),
            Reading::Known(Some(Err(broken))) => (None, Because::Broken(broken.clone())),
            Reading::Known(Some(Ok(leaves))) => (Some(leaves), Because::Missing),
        };
        let told = |side: Side| self.footings.of(side).told.list(self.ring, side);
        let (client_ca, peer_ca) = (told(Side::Client), told(Side::Peer));
        let turnout = |side, held: Option<&Signed>| self.turnout(side, name, held, &missing);
        let server = turnout(Side::Client, held.map(|it| &it.server));
        let peer = turnout(Side::Peer, held.map(|it| &it.peer));
        let (Some(server), Some(peer)) = (server, peer) else { return Fate::Unknown };
        let because = [&server, &peer].into_iter().find_map(|it| it.as_ref().err());
        if let Some((_, because)) = because.cloned() {
            let part = |turnout: Turnout, held: Option<&Signed>| match (turnout, held) {
                (Err((part, _)), _) => part,
                (Ok(_), Some(held)) => Part::Show(Box::new(held.clone())),
                (Ok(_), None) => Part::Sign,
            };
            let server = part(server, held.map(|it| &it.server));
            let peer = part(peer, held.map(|it| &it.peer));
            let draft = Draft { server, peer, client_ca, peer_ca };
            return Fate::Write(Write::Member(name.clone(), Box::new(draft)), because);
        }
        match held {
            Some(leaves) if leaves.client_ca != client_ca || leaves.peer_ca != peer_ca => {
                let same = Leaves { client_ca, peer_ca, ..leaves.clone() };
                Fate::Write(Write::Trust(name.clone(), Box::new(same)), Because::OtherTrust)
            }
            Some(_) | None => {
                Fate::Due([server, peer].into_iter().filter_map(Result::ok).flatten().min())
            }
        }
    }

    /// What becomes of what a member shows on one side; nothing if there is nothing that it could show.
    fn turnout(
        &self,
        side: Side,
        name: &Name,
        held: Option<&Signed>,
        missing: &Because,
    ) -> Option<Turnout> {
        let authority = self.authority(side);
        let hosts = match side {
            Side::Client => server_hosts(self.blueprint, name),
            Side::Peer => peer_hosts(self.blueprint, name),
        };
        let pick = Pick {
            blueprint: self.blueprint,
            ring: self.ring,
            footing: self.footings.of(side),
            offer: self.offers.of(side),
            side,
            authority,
            now: self.now,
        };
        Some(match (pick.member(name, held)?, held) {
            (part, None) => Err((part, missing.clone())),
            (Part::Show(pair), Some(held)) if *pair == *held => Ok(None),
            (part @ Part::Show(_), Some(_)) => Err((part, Because::OtherGiven)),
            (Part::Sign, Some(held)) => {
                let shown = Shown { certificate: &held.certificate, authority, hosts };
                match self.fault(&shown) {
                    Some(because) => Err((Part::Sign, because)),
                    None => Ok(self.due_at(&shown)),
                }
            }
        })
    }

    const fn authority(&self, side: Side) -> &Certificate {
        match side {
            Side::Client => &self.ring.now.client.certificate,
            Side::Peer => &self.ring.now.peer.certificate,
        }
    }

    fn binding(
        &self,
        found: &Reading<Option<(Binding, Option<Broken>)>>,
        words: &BTreeMap<String, String>,
    ) -> Fate {
        if self.blueprint.told() == Scheme::Http {
            return open_binding(found, words);
        }
        let footing = &self.footings.client;
        let ca = footing.told.list(self.ring, Side::Client);
        let proven = footing.proven.list(self.ring, Side::Client);
        let offered = self.offers.client.application.as_ref();
        let offered = offered.filter(|it| it.calls(&proven, self.now).is_ok());
        let (held, broken) = match found {
            Reading::Unknown => return Fate::Unknown,
            Reading::Known(None) => (None, None),
            Reading::Known(Some((held, broken))) => (Some(held), broken.clone()),
        };
        let missing = || broken.clone().map_or(Because::Missing, Because::Broken);
        let held_pair = held.and_then(|it| it.pair.as_ref());
        let given = offered.or_else(|| held_pair.filter(|it| self.goes_on_with(it)));
        // As long as our own are trusted, applications can go on with what these signed.
        let signs = given.is_none() && footing.proven.ours;
        let mut due = None;
        if signs {
            let Some(pair) = held_pair else {
                return Fate::Write(Write::Binding, missing());
            };
            let authority = self.authority(Side::Client);
            let shown = Shown { certificate: &pair.certificate, authority, hosts: Vec::new() };
            if let Some(because) = self.fault(&shown) {
                return Fate::Write(Write::Binding, because);
            }
            due = self.due_at(&shown);
        }
        let pair = if signs { held_pair.cloned() } else { given.cloned() };
        let same = Binding { words: words.clone(), pair, ca };
        let because = match held {
            None => missing(),
            Some(held) if *held == same && broken.is_none() => return Fate::Due(due),
            Some(held) if held.ca != same.ca => Because::OtherTrust,
            Some(held) if held.pair != same.pair => Because::OtherGiven,
            Some(_) => Because::OtherWords,
        };
        Fate::Write(Write::Words(Box::new(same)), because)
    }

    /// Whether applications go on with what somebody else signed until there is something else: what comes is not taken yet, or
    /// cannot be used. Where nothing is on its way, whoever gives them nothing lets them bring their own.
    fn goes_on_with(&self, pair: &Signed) -> bool {
        let (footing, offer) = (&self.footings.client, &self.offers.client);
        let comes_home = offer.pairs == Pairs::Ours && footing.proven.ours;
        let is_ours = pair.certificate.is_taken_by(self.authority(Side::Client), self.now);
        let rests = offer.wish.as_ref().is_some_and(|it| footing.rests_on(it));
        let is_waited_for = !rests || offer.application.is_some();
        let proven = footing.proven.list(self.ring, Side::Client);
        let is_theirs = !comes_home && !is_ours && is_waited_for;
        is_theirs && pair.calls(&proven, self.now).is_ok()
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
        Reading::Known(Some((held, _))) if *held == Binding::open(words.clone()) => {
            return Fate::Due(None);
        }
        Reading::Known(Some(_)) => Because::OtherWords,
    };
    Fate::Write(Write::Words(Box::new(Binding::open(words.clone()))), because)
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
