//! Which Secrets of a cluster must be written now, and when to look again.
//! Comes in: what was read, the time and the lifetimes. Goes out: what to write, or why nothing can be.
//! May touch: `pki`, the blueprint; pure. `CaPair` are made once and never replaced here: that is the rotation's,
//! which knows whom members that run trust.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::ca_set::CaSet;
use super::client_secret::{self, ClientSecret};
use super::external_secret::CertificateProblem;
use super::lifetimes::{Lifetimes, due, due_at};
use super::member_certs::{
    LeafSource, MemberCertPlan, MemberCertificates, peer_hosts, server_hosts,
};
use super::secret_keys::InvalidSecret;
use super::select::LeafSelector;
use super::source::{Leaves, SourceStates};
use super::trust_bundle::Side;
use super::trust_state::TrustStates;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::{MemberName, Reading};
use crate::etcd_cluster::transport::Scheme;
use crate::pki::ca::Certificate;
use crate::pki::leaf::CertifiedKey;

/// What was read of a Secret: nothing if there is none, and what of it is broken.
pub(crate) type ReadSecret<T> = Reading<Option<Result<T, InvalidSecret>>>;

/// Everything that was read.
#[derive(Clone, Debug)]
pub(crate) struct SecretsState {
    pub(crate) ring: ReadSecret<CaSet>,
    /// What each side rests on.
    pub(crate) footings: TrustStates,
    /// What each side is offered.
    pub(crate) offers: SourceStates,
    /// Each member of the cluster, with its Secret.
    pub(crate) members: Vec<(MemberName, ReadSecret<MemberCertificates>)>,
    /// The binding; what of it is broken is beside it.
    pub(crate) binding: Reading<Option<(ClientSecret, Option<InvalidSecret>)>>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretsPlan {
    /// What to write, in this order.
    pub(crate) writes: Vec<(SecretWrite, WriteReason)>,
    /// Why nothing can be signed; a person is needed.
    pub(crate) stuck: Option<CertificateError>,
    /// When the next certificate is due, as far as can be seen now.
    pub(crate) next: Option<Timestamp>,
}

/// One Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretWrite {
    /// New authorities. Everything else waits for them.
    CreateCa,
    /// Other certificates for a member.
    Member(MemberName, Box<MemberCertPlan>),
    /// The certificates that a member has, and whom else it trusts.
    MemberBundle(MemberName, Box<MemberCertificates>),
    /// The binding, with a new certificate.
    ClientCert,
    /// The binding with other words or other trust, and the certificate that it has.
    ClientFields(Box<ClientSecret>),
}

/// Why it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteReason {
    /// It is not there.
    Missing,
    /// It cannot be used.
    Invalid(InvalidSecret),
    /// Another authority signed it, or it is not valid at this time.
    Untrusted,
    /// It is good for other hosts than it should be.
    SanMismatch,
    /// It tells something else than is the case.
    ContentChanged,
    /// It is not the one that was given.
    SourceChanged,
    /// It says to trust others.
    BundleChanged,
    /// It has lived for two thirds of its life.
    RenewalDue,
}

/// Why nothing can be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The authorities cannot be read.
    #[error(transparent)]
    InvalidSecret(InvalidSecret),
    /// They are gone, and what they signed is in use.
    #[error(
        "the Secret with the cluster's certificate authorities is gone, and members use what they \
         signed: put it back, or delete the members' Secrets and then their pods to begin with new ones"
    )]
    CaSecretLost,
    /// One of them is not valid at this time.
    #[error("a certificate authority of the cluster has expired, or is not valid yet")]
    CaExpired,
    /// What others give cannot be used, and there is nothing else.
    #[error(transparent)]
    External(CertificateProblem),
}

/// Decides. `members` are those that applications are told of.
pub(crate) fn plan_secrets(
    blueprint: &Blueprint<'_>,
    looked: &SecretsState,
    members: &[MemberName],
    lifetimes: Lifetimes,
    now: Timestamp,
) -> SecretsPlan {
    let ring = match &looked.ring {
        Reading::Unknown => return SecretsPlan::default(),
        Reading::Known(None) if looked.members.iter().any(|(_, found)| is_in_use(found)) => {
            return SecretsPlan {
                stuck: Some(CertificateError::CaSecretLost),
                ..SecretsPlan::default()
            };
        }
        Reading::Known(None) => {
            return SecretsPlan::of(SecretWrite::CreateCa, WriteReason::Missing);
        }
        Reading::Known(Some(Err(broken))) => {
            return SecretsPlan {
                stuck: Some(CertificateError::InvalidSecret(broken.clone())),
                ..SecretsPlan::default()
            };
        }
        Reading::Known(Some(Ok(ring))) => ring,
    };
    let both = ring.now.certificates();
    if both.iter().any(|it| !it.valid_at(now)) {
        return SecretsPlan { stuck: Some(CertificateError::CaExpired), ..SecretsPlan::default() };
    }
    let SecretsState { footings, offers, .. } = looked;
    let desk = PlanCtx { blueprint, ring, footings, offers, lifetimes, now };
    let mut wanted = SecretsPlan::default();
    for (name, found) in &looked.members {
        wanted.add(desk.member(name, found));
    }
    wanted.add(desk.binding(&looked.binding, &client_secret::fields(blueprint, members)));
    if !wanted.writes.is_empty() {
        let fresh = both.into_iter().map(|authority| lifetimes.next(authority, now)).min();
        wanted.next = fresh.into_iter().chain(wanted.next).min();
    }
    wanted
}

/// What is not known may be in use.
const fn is_in_use(found: &ReadSecret<MemberCertificates>) -> bool {
    !matches!(found, Reading::Known(None))
}

/// What is known while Secrets are looked through.
struct PlanCtx<'a> {
    blueprint: &'a Blueprint<'a>,
    ring: &'a CaSet,
    footings: &'a TrustStates,
    offers: &'a SourceStates,
    lifetimes: Lifetimes,
    now: Timestamp,
}

/// One certificate, who should have signed it, and what for.
struct LeafCheck<'a> {
    certificate: &'a Certificate,
    authority: &'a Certificate,
    hosts: Vec<String>,
}

/// What becomes of one Secret: it is written, or it is due some time; or nothing is known of it.
enum SecretDecision {
    Write(SecretWrite, WriteReason),
    Due(Option<Timestamp>),
    Unknown,
}

/// What becomes of one certificate of a member: another takes its place, or it is due some time.
type LeafDecision = Result<Option<Timestamp>, (LeafSource, WriteReason)>;

impl PlanCtx<'_> {
    fn member(&self, name: &MemberName, found: &ReadSecret<MemberCertificates>) -> SecretDecision {
        let (held, missing) = match found {
            Reading::Unknown => return SecretDecision::Unknown,
            Reading::Known(None) => (None, WriteReason::Missing),
            Reading::Known(Some(Err(broken))) => (None, WriteReason::Invalid(broken.clone())),
            Reading::Known(Some(Ok(leaves))) => (Some(leaves), WriteReason::Missing),
        };
        let told = |side: Side| self.footings.of(side).told.list(self.ring, side);
        let (client_ca, peer_ca) = (told(Side::Client), told(Side::Peer));
        let turnout = |side, held: Option<&CertifiedKey>| self.turnout(side, name, held, &missing);
        let server = turnout(Side::Client, held.map(|it| &it.server));
        let peer = turnout(Side::Peer, held.map(|it| &it.peer));
        let (Some(server), Some(peer)) = (server, peer) else { return SecretDecision::Unknown };
        let because = [&server, &peer].into_iter().find_map(|it| it.as_ref().err());
        if let Some((_, because)) = because.cloned() {
            let part = |turnout: LeafDecision, held: Option<&CertifiedKey>| match (turnout, held) {
                (Err((part, _)), _) => part,
                (Ok(_), Some(held)) => LeafSource::Use(Box::new(held.clone())),
                (Ok(_), None) => LeafSource::Issue,
            };
            let server = part(server, held.map(|it| &it.server));
            let peer = part(peer, held.map(|it| &it.peer));
            let draft = MemberCertPlan { server, peer, client_ca, peer_ca };
            return SecretDecision::Write(
                SecretWrite::Member(name.clone(), Box::new(draft)),
                because,
            );
        }
        match held {
            Some(leaves) if leaves.client_ca != client_ca || leaves.peer_ca != peer_ca => {
                let same = MemberCertificates { client_ca, peer_ca, ..leaves.clone() };
                SecretDecision::Write(
                    SecretWrite::MemberBundle(name.clone(), Box::new(same)),
                    WriteReason::BundleChanged,
                )
            }
            Some(_) | None => SecretDecision::Due(
                [server, peer].into_iter().filter_map(Result::ok).flatten().min(),
            ),
        }
    }

    /// What becomes of what a member shows on one side; nothing if there is nothing that it could show.
    fn turnout(
        &self,
        side: Side,
        name: &MemberName,
        held: Option<&CertifiedKey>,
        missing: &WriteReason,
    ) -> Option<LeafDecision> {
        let authority = self.authority(side);
        let hosts = match side {
            Side::Client => server_hosts(self.blueprint, name),
            Side::Peer => peer_hosts(self.blueprint, name),
        };
        let pick = LeafSelector {
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
            (LeafSource::Use(pair), Some(held)) if *pair == *held => Ok(None),
            (part @ LeafSource::Use(_), Some(_)) => Err((part, WriteReason::SourceChanged)),
            (LeafSource::Issue, Some(held)) => {
                let shown = LeafCheck { certificate: &held.certificate, authority, hosts };
                match self.fault(&shown) {
                    Some(because) => Err((LeafSource::Issue, because)),
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
        found: &Reading<Option<(ClientSecret, Option<InvalidSecret>)>>,
        words: &BTreeMap<String, String>,
    ) -> SecretDecision {
        if self.blueprint.advertised_scheme() == Scheme::Http {
            return open_binding(found, words);
        }
        let footing = &self.footings.client;
        let ca = footing.told.list(self.ring, Side::Client);
        let proven = footing.proven.list(self.ring, Side::Client);
        let offered = self.offers.client.application.as_ref();
        let offered = offered.filter(|it| it.verify_as_client(&proven, self.now).is_ok());
        let (held, broken) = match found {
            Reading::Unknown => return SecretDecision::Unknown,
            Reading::Known(None) => (None, None),
            Reading::Known(Some((held, broken))) => (Some(held), broken.clone()),
        };
        let missing = || broken.clone().map_or(WriteReason::Missing, WriteReason::Invalid);
        let held_pair = held.and_then(|it| it.pair.as_ref());
        let given = offered.or_else(|| held_pair.filter(|it| self.goes_on_with(it)));
        // As long as our own are trusted, applications can go on with what these signed.
        let signs = given.is_none() && footing.proven.ours;
        let mut due = None;
        if signs {
            let Some(pair) = held_pair else {
                return SecretDecision::Write(SecretWrite::ClientCert, missing());
            };
            let authority = self.authority(Side::Client);
            let shown = LeafCheck { certificate: &pair.certificate, authority, hosts: Vec::new() };
            if let Some(because) = self.fault(&shown) {
                return SecretDecision::Write(SecretWrite::ClientCert, because);
            }
            due = self.due_at(&shown);
        }
        let pair = if signs { held_pair.cloned() } else { given.cloned() };
        let same = ClientSecret { words: words.clone(), pair, ca };
        let because = match held {
            None => missing(),
            Some(held) if *held == same && broken.is_none() => return SecretDecision::Due(due),
            Some(held) if held.ca != same.ca => WriteReason::BundleChanged,
            Some(held) if held.pair != same.pair => WriteReason::SourceChanged,
            Some(_) => WriteReason::ContentChanged,
        };
        SecretDecision::Write(SecretWrite::ClientFields(Box::new(same)), because)
    }

    /// Whether applications go on with what somebody else signed until there is something else: what comes is not taken yet, or
    /// cannot be used. Where nothing is on its way, whoever gives them nothing lets them bring their own.
    fn goes_on_with(&self, pair: &CertifiedKey) -> bool {
        let (footing, offer) = (&self.footings.client, &self.offers.client);
        let comes_home = offer.pairs == Leaves::Managed && footing.proven.ours;
        let is_ours = pair.certificate.is_signed_by(self.authority(Side::Client), self.now);
        let rests = offer.wish.as_ref().is_some_and(|it| footing.rests_on(it));
        let is_waited_for = !rests || offer.application.is_some();
        let proven = footing.proven.list(self.ring, Side::Client);
        let is_theirs = !comes_home && !is_ours && is_waited_for;
        is_theirs && pair.verify_as_client(&proven, self.now).is_ok()
    }

    /// What is wrong with it, if another would be better.
    fn fault(&self, shown: &LeafCheck<'_>) -> Option<WriteReason> {
        let LeafCheck { certificate, authority, hosts } = shown;
        if !certificate.is_signed_by(authority, self.now) {
            return Some(WriteReason::Untrusted);
        }
        if certificate.hosts() != hosts.iter().cloned().collect::<BTreeSet<_>>() {
            return Some(WriteReason::SanMismatch);
        }
        let is_old = due(certificate, self.now) && self.would_live_longer(shown);
        is_old.then_some(WriteReason::RenewalDue)
    }

    /// One that ends with its authority would end no later if it were signed again.
    fn would_live_longer(&self, shown: &LeafCheck<'_>) -> bool {
        self.lifetimes.of_leaf(shown.authority, self.now).until > shown.certificate.until
    }

    fn due_at(&self, shown: &LeafCheck<'_>) -> Option<Timestamp> {
        let at = due_at(shown.certificate);
        (at > self.now).then_some(at)
    }
}

/// What becomes of the binding where connections are in the clear: nobody shows anything there.
fn open_binding(
    found: &Reading<Option<(ClientSecret, Option<InvalidSecret>)>>,
    words: &BTreeMap<String, String>,
) -> SecretDecision {
    let because = match found {
        Reading::Unknown => return SecretDecision::Unknown,
        Reading::Known(None) => WriteReason::Missing,
        Reading::Known(Some((held, _))) if *held == ClientSecret::open(words.clone()) => {
            return SecretDecision::Due(None);
        }
        Reading::Known(Some(_)) => WriteReason::ContentChanged,
    };
    SecretDecision::Write(
        SecretWrite::ClientFields(Box::new(ClientSecret::open(words.clone()))),
        because,
    )
}

impl SecretsPlan {
    const fn default() -> Self {
        Self { writes: Vec::new(), stuck: None, next: None }
    }

    fn of(write: SecretWrite, because: WriteReason) -> Self {
        Self { writes: vec![(write, because)], ..Self::default() }
    }

    fn add(&mut self, fate: SecretDecision) {
        match fate {
            SecretDecision::Write(write, because) => self.writes.push((write, because)),
            SecretDecision::Due(at) => self.next = self.next.into_iter().chain(at).min(),
            SecretDecision::Unknown => {}
        }
    }
}
