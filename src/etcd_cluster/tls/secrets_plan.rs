//! Plans which Secrets of a cluster must be written now, and when the next renewal is due. Pure.
//! CAs are created once and never replaced here: replacing them is the rotation's task, which knows
//! the trust bundles of running members.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::ca_set::CaSet;
use super::client_secret::{self, ClientSecret};
use super::external_secret::CertificateProblem;
use super::lifetimes::{Lifetimes, is_renewal_due, renewal_time};
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

/// A Secret as read: unknown, missing, invalid, or its content.
pub(crate) type ReadSecret<T> = Reading<Option<Result<T, InvalidSecret>>>;

/// The observed state of all Secrets and sources.
#[derive(Clone, Debug)]
pub(crate) struct SecretsState {
    pub(crate) ca_set: ReadSecret<CaSet>,
    pub(crate) trust_states: TrustStates,
    pub(crate) sources: SourceStates,
    /// Each member of the cluster, with its Secret.
    pub(crate) members: Vec<(MemberName, ReadSecret<MemberCertificates>)>,
    /// The client Secret, with the part of it that is invalid.
    pub(crate) client_secret: Reading<Option<(ClientSecret, Option<InvalidSecret>)>>,
}

/// The writes to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretsPlan {
    /// The writes, in this order.
    pub(crate) writes: Vec<(SecretWrite, WriteReason)>,
    /// Why no certificate can be issued; user action is required.
    pub(crate) error: Option<CertificateError>,
    /// When the next renewal is due, as far as known.
    pub(crate) next_renewal: Option<Timestamp>,
}

/// One write of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretWrite {
    /// Create the CAs. All other writes wait for them.
    CreateCa,
    /// Write new certificates of a member.
    Member(MemberName, Box<MemberCertPlan>),
    /// Write a new trust bundle of a member, with its existing certificates.
    MemberBundle(MemberName, Box<MemberCertificates>),
    /// Write the client Secret with a new certificate.
    ClientCert,
    /// Write the client Secret with new fields or a new trust bundle, without a new certificate.
    ClientFields(Box<ClientSecret>),
}

/// Why a Secret is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteReason {
    Missing,
    Invalid(InvalidSecret),
    /// Issued by another CA, or not valid at this time.
    Untrusted,
    /// The SANs differ.
    SanMismatch,
    /// The fields of the client Secret differ.
    ContentChanged,
    /// The certificate differs from the source's.
    SourceChanged,
    /// The trust bundle differs.
    BundleChanged,
    /// Two thirds of the lifetime have passed.
    RenewalDue,
}

/// Why no certificate can be issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error(transparent)]
    InvalidSecret(InvalidSecret),
    /// The CAs are missing, and certificates of them are in use.
    #[error(
        "the Secret with the cluster's CAs is missing, and members use certificates of these CAs: \
         restore the Secret, or delete the Secrets of the members and then their pods to start \
         with new CAs"
    )]
    CaSecretLost,
    #[error("a CA of the cluster has expired or is not valid yet")]
    CaExpired,
    /// The external certificate cannot be used, and the cluster has no other.
    #[error(transparent)]
    External(CertificateProblem),
}

/// Plans the writes. `members` are published to applications.
pub(crate) fn plan_secrets(
    blueprint: &Blueprint<'_>,
    state: &SecretsState,
    members: &[MemberName],
    lifetimes: Lifetimes,
    now: Timestamp,
) -> SecretsPlan {
    let ca_set = match &state.ca_set {
        Reading::Unknown => return SecretsPlan::default(),
        Reading::Known(None) if state.members.iter().any(|(_, secret)| may_be_in_use(secret)) => {
            return SecretsPlan::failed(CertificateError::CaSecretLost);
        }
        Reading::Known(None) => {
            return SecretsPlan {
                writes: vec![(SecretWrite::CreateCa, WriteReason::Missing)],
                ..SecretsPlan::default()
            };
        }
        Reading::Known(Some(Err(invalid))) => {
            return SecretsPlan::failed(CertificateError::InvalidSecret(invalid.clone()));
        }
        Reading::Known(Some(Ok(ca_set))) => ca_set,
    };
    let cas = ca_set.current.certificates();
    if cas.iter().any(|ca| !ca.valid_at(now)) {
        return SecretsPlan::failed(CertificateError::CaExpired);
    }
    let SecretsState { trust_states, sources, .. } = state;
    let ctx = PlanCtx { blueprint, ca_set, trust_states, sources, lifetimes, now };
    let mut plan = SecretsPlan::default();
    for (name, secret) in &state.members {
        plan.add(ctx.member(name, secret));
    }
    let fields = client_secret::fields(blueprint, members);
    plan.add(ctx.client_secret(&state.client_secret, &fields));
    if !plan.writes.is_empty() {
        let new_leaf = cas.into_iter().map(|ca| lifetimes.leaf_renewal(ca, now)).min();
        plan.next_renewal = new_leaf.into_iter().chain(plan.next_renewal).min();
    }
    plan
}

/// An unknown Secret may be in use.
const fn may_be_in_use(secret: &ReadSecret<MemberCertificates>) -> bool {
    !matches!(secret, Reading::Known(None))
}

/// All that the plan of one Secret depends on.
struct PlanCtx<'a> {
    blueprint: &'a Blueprint<'a>,
    ca_set: &'a CaSet,
    trust_states: &'a TrustStates,
    sources: &'a SourceStates,
    lifetimes: Lifetimes,
    now: Timestamp,
}

/// A managed certificate, its expected CA and its expected SANs.
struct LeafCheck<'a> {
    certificate: &'a Certificate,
    ca: &'a Certificate,
    hosts: Vec<String>,
}

/// The decision about one Secret: written now, renewed at a time, or unknown.
enum SecretDecision {
    Write(SecretWrite, WriteReason),
    Due(Option<Timestamp>),
    Unknown,
}

/// The decision about one certificate of a member: renewed at a time, or replaced.
type LeafDecision = Result<Option<Timestamp>, (LeafSource, WriteReason)>;

impl PlanCtx<'_> {
    fn member(&self, name: &MemberName, secret: &ReadSecret<MemberCertificates>) -> SecretDecision {
        let (existing, missing) = match secret {
            Reading::Unknown => return SecretDecision::Unknown,
            Reading::Known(None) => (None, WriteReason::Missing),
            Reading::Known(Some(Err(invalid))) => (None, WriteReason::Invalid(invalid.clone())),
            Reading::Known(Some(Ok(certs))) => (Some(certs), WriteReason::Missing),
        };
        let published =
            |side: Side| self.trust_states.get(side).published.certificates(self.ca_set, side);
        let (client_ca, peer_ca) = (published(Side::Client), published(Side::Peer));
        let existing_server = existing.map(|certs| &certs.server);
        let existing_peer = existing.map(|certs| &certs.peer);
        let server = self.leaf(Side::Client, name, existing_server, &missing);
        let peer = self.leaf(Side::Peer, name, existing_peer, &missing);
        let (Some(server), Some(peer)) = (server, peer) else { return SecretDecision::Unknown };
        let replaced = [&server, &peer].into_iter().find_map(|leaf| leaf.as_ref().err());
        if let Some((_, reason)) = replaced.cloned() {
            let source =
                |leaf: LeafDecision, existing: Option<&CertifiedKey>| match (leaf, existing) {
                    (Err((source, _)), _) => source,
                    (Ok(_), Some(existing)) => LeafSource::Use(Box::new(existing.clone())),
                    (Ok(_), None) => LeafSource::Issue,
                };
            let server = source(server, existing_server);
            let peer = source(peer, existing_peer);
            let plan = MemberCertPlan { server, peer, client_ca, peer_ca };
            let write = SecretWrite::Member(name.clone(), Box::new(plan));
            return SecretDecision::Write(write, reason);
        }
        match existing {
            Some(certs) if certs.client_ca != client_ca || certs.peer_ca != peer_ca => {
                let certs = MemberCertificates { client_ca, peer_ca, ..certs.clone() };
                SecretDecision::Write(
                    SecretWrite::MemberBundle(name.clone(), Box::new(certs)),
                    WriteReason::BundleChanged,
                )
            }
            Some(_) | None => SecretDecision::Due(
                [server, peer].into_iter().filter_map(Result::ok).flatten().min(),
            ),
        }
    }

    /// The decision about a member's certificate of one side; `None` if there is no certificate.
    fn leaf(
        &self,
        side: Side,
        name: &MemberName,
        existing: Option<&CertifiedKey>,
        missing: &WriteReason,
    ) -> Option<LeafDecision> {
        let ca = self.ca(side);
        let hosts = match side {
            Side::Client => server_hosts(self.blueprint, name),
            Side::Peer => peer_hosts(self.blueprint, name),
        };
        let selector = LeafSelector {
            blueprint: self.blueprint,
            ca_set: self.ca_set,
            trust_state: self.trust_states.get(side),
            source: self.sources.get(side),
            side,
            ca,
            now: self.now,
        };
        Some(match (selector.select(name, existing)?, existing) {
            (source, None) => Err((source, missing.clone())),
            (LeafSource::Use(key_pair), Some(existing)) if *key_pair == *existing => Ok(None),
            (source @ LeafSource::Use(_), Some(_)) => Err((source, WriteReason::SourceChanged)),
            (LeafSource::Issue, Some(existing)) => {
                let check = LeafCheck { certificate: &existing.certificate, ca, hosts };
                match self.write_reason(&check) {
                    Some(reason) => Err((LeafSource::Issue, reason)),
                    None => Ok(self.renewal_time(&check)),
                }
            }
        })
    }

    const fn ca(&self, side: Side) -> &Certificate {
        match side {
            Side::Client => &self.ca_set.current.client.certificate,
            Side::Peer => &self.ca_set.current.peer.certificate,
        }
    }

    fn client_secret(
        &self,
        secret: &Reading<Option<(ClientSecret, Option<InvalidSecret>)>>,
        fields: &BTreeMap<String, String>,
    ) -> SecretDecision {
        if self.blueprint.advertised_scheme() == Scheme::Http {
            return plaintext_client_secret(secret, fields);
        }
        let trust_state = &self.trust_states.client;
        let ca = trust_state.published.certificates(self.ca_set, Side::Client);
        let confirmed = trust_state.confirmed.certificates(self.ca_set, Side::Client);
        let from_source = self.sources.client.application.as_ref();
        let from_source =
            from_source.filter(|key_pair| key_pair.verify_as_client(&confirmed, self.now).is_ok());
        let (existing, invalid) = match secret {
            Reading::Unknown => return SecretDecision::Unknown,
            Reading::Known(None) => (None, None),
            Reading::Known(Some((existing, invalid))) => (Some(existing), invalid.clone()),
        };
        let missing = || invalid.clone().map_or(WriteReason::Missing, WriteReason::Invalid);
        let existing_pair = existing.and_then(|existing| existing.key_pair.as_ref());
        let external =
            from_source.or_else(|| existing_pair.filter(|key_pair| self.keeps_external(key_pair)));
        // While the managed CAs are trusted, applications can use certificates of them.
        let is_issued = external.is_none() && trust_state.confirmed.managed;
        let mut renewal = None;
        if is_issued {
            let Some(key_pair) = existing_pair else {
                return SecretDecision::Write(SecretWrite::ClientCert, missing());
            };
            let certificate = &key_pair.certificate;
            let check = LeafCheck { certificate, ca: self.ca(Side::Client), hosts: Vec::new() };
            if let Some(reason) = self.write_reason(&check) {
                return SecretDecision::Write(SecretWrite::ClientCert, reason);
            }
            renewal = self.renewal_time(&check);
        }
        let key_pair = if is_issued { existing_pair.cloned() } else { external.cloned() };
        let desired = ClientSecret { fields: fields.clone(), key_pair, ca };
        let reason = match existing {
            None => missing(),
            Some(existing) if *existing == desired && invalid.is_none() => {
                return SecretDecision::Due(renewal);
            }
            Some(existing) if existing.ca != desired.ca => WriteReason::BundleChanged,
            Some(existing) if existing.key_pair != desired.key_pair => WriteReason::SourceChanged,
            Some(_) => WriteReason::ContentChanged,
        };
        SecretDecision::Write(SecretWrite::ClientFields(Box::new(desired)), reason)
    }

    /// Whether applications keep their external certificate until another one is available: the new
    /// one is not trusted yet, or is invalid. If no change is in progress and the source has no
    /// certificate for applications, applications bring their own.
    fn keeps_external(&self, key_pair: &CertifiedKey) -> bool {
        let (trust_state, source) = (&self.trust_states.client, &self.sources.client);
        let returns_to_managed = source.leaves == Leaves::Managed && trust_state.confirmed.managed;
        let is_managed = key_pair.certificate.is_signed_by(self.ca(Side::Client), self.now);
        let is_complete =
            source.desired.as_ref().is_some_and(|desired| trust_state.is_complete(desired));
        let is_expected = !is_complete || source.application.is_some();
        let confirmed = trust_state.confirmed.certificates(self.ca_set, Side::Client);
        let is_external = !returns_to_managed && !is_managed && is_expected;
        is_external && key_pair.verify_as_client(&confirmed, self.now).is_ok()
    }

    /// Why a managed certificate must be issued again, if it must.
    fn write_reason(&self, check: &LeafCheck<'_>) -> Option<WriteReason> {
        let LeafCheck { certificate, ca, hosts } = check;
        if !certificate.is_signed_by(ca, self.now) {
            return Some(WriteReason::Untrusted);
        }
        if certificate.hosts() != hosts.iter().cloned().collect::<BTreeSet<_>>() {
            return Some(WriteReason::SanMismatch);
        }
        let is_due = is_renewal_due(certificate, self.now) && self.would_live_longer(check);
        is_due.then_some(WriteReason::RenewalDue)
    }

    /// A certificate that expires with its CA would expire no later if it were issued again.
    fn would_live_longer(&self, check: &LeafCheck<'_>) -> bool {
        self.lifetimes.leaf_validity(check.ca, self.now).until > check.certificate.until
    }

    fn renewal_time(&self, check: &LeafCheck<'_>) -> Option<Timestamp> {
        let at = renewal_time(check.certificate);
        (at > self.now).then_some(at)
    }
}

/// The client Secret for plaintext: fields only, without a certificate.
fn plaintext_client_secret(
    secret: &Reading<Option<(ClientSecret, Option<InvalidSecret>)>>,
    fields: &BTreeMap<String, String>,
) -> SecretDecision {
    let desired = ClientSecret::plaintext(fields.clone());
    let reason = match secret {
        Reading::Unknown => return SecretDecision::Unknown,
        Reading::Known(None) => WriteReason::Missing,
        Reading::Known(Some((existing, _))) if *existing == desired => {
            return SecretDecision::Due(None);
        }
        Reading::Known(Some(_)) => WriteReason::ContentChanged,
    };
    SecretDecision::Write(SecretWrite::ClientFields(Box::new(desired)), reason)
}

impl SecretsPlan {
    const fn default() -> Self {
        Self { writes: Vec::new(), error: None, next_renewal: None }
    }

    const fn failed(error: CertificateError) -> Self {
        Self { writes: Vec::new(), error: Some(error), next_renewal: None }
    }

    fn add(&mut self, decision: SecretDecision) {
        match decision {
            SecretDecision::Write(write, reason) => self.writes.push((write, reason)),
            SecretDecision::Due(at) => {
                self.next_renewal = self.next_renewal.into_iter().chain(at).min();
            }
            SecretDecision::Unknown => {}
        }
    }
}
