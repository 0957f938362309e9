//! The trust state of each side, recorded beside the managed CAs in the CA Secret. Pure.
//! A cluster that never had external certificates has no record. External certificates in use are
//! copied into the record: their owner may delete them while members must still be dialed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ca_set::CaSet;
use super::secret_keys::{InvalidSecret, entry, has, text};
use super::trust_bundle::{Side, TrustBundle};
use crate::pki::ca::{Certificate, ParseError};
use crate::pki::leaf::CertifiedKey;

/// The Secret key of the record.
const TRUST_STATE: &str = "trust-state";

/// The trust state of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustState {
    /// All running members trust these CAs: certificates of them may be presented.
    pub(crate) confirmed: TrustBundle,
    /// The trust bundle in the Secrets of members and applications.
    pub(crate) published: TrustBundle,
    /// Since when all Secrets contain it, and the bundle desired at that time. A change of the
    /// desired bundle restarts the overlap: applications need the time again.
    pub(crate) overlap_start: Option<(Timestamp, TrustBundle)>,
    /// The operator's external client certificate; `None` while the managed CA issues it.
    pub(crate) operator_cert: Option<CertifiedKey>,
    /// Removed CAs, while members may not have been restarted since.
    pub(crate) removed: Vec<Certificate>,
}

/// The trust states of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustStates {
    pub(crate) client: TrustState,
    pub(crate) peer: TrustState,
}

/// One step of a trust change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustStep {
    /// No member uses this side yet: the desired bundle and certificate are used from the start.
    Initialize(TrustBundle, Option<Box<CertifiedKey>>),
    /// Publishes this bundle, with the new CAs added. No certificate of them is presented yet.
    AddRoots(TrustBundle),
    /// The operator presents this certificate.
    UseCertificate(Box<CertifiedKey>),
    /// Starts the overlap toward this bundle: all Secrets are up to date.
    StartOverlap(TrustBundle),
    /// All members trust the published bundle: certificates of the new CAs may be presented.
    SwitchLeaves,
    /// Publishes only this bundle; the listed CAs are removed.
    RemoveRoots(TrustBundle, Vec<Certificate>),
    /// No member trusts the removed CAs.
    Finish,
}

impl TrustStep {
    /// The reason of the Event, if there is one.
    pub(crate) const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::AddRoots(_) => Some("CARotationStarted"),
            Self::SwitchLeaves => Some("CASwitched"),
            Self::RemoveRoots(..) => Some("OldCARemoved"),
            Self::Finish => Some("CARotationCompleted"),
            Self::Initialize(..) | Self::UseCertificate(_) | Self::StartOverlap(_) => None,
        }
    }

    /// The message of the Event and the log line.
    pub(crate) const fn message(&self) -> &'static str {
        match self {
            Self::Initialize(..) => "Certificate source is recorded",
            Self::AddRoots(_) => "New CAs are trusted in addition to the previous CAs",
            Self::UseCertificate(_) => "The operator uses a new client certificate",
            Self::StartOverlap(_) => "All Secrets are up to date; the overlap starts",
            Self::SwitchLeaves => "Members present certificates of the new CAs",
            Self::RemoveRoots(..) => {
                "Previous CAs are removed from the trust bundles; members restart without them"
            }
            Self::Finish => "No member trusts the previous CAs",
        }
    }
}

impl TrustState {
    /// Only the managed CAs.
    pub(crate) const fn managed() -> Self {
        Self {
            confirmed: TrustBundle::managed(),
            published: TrustBundle::managed(),
            overlap_start: None,
            operator_cert: None,
            removed: Vec::new(),
        }
    }

    /// The state after a step.
    fn apply(&self, step: &TrustStep, now: Timestamp) -> Self {
        let same = self.clone();
        match step.clone() {
            TrustStep::Initialize(bundle, operator_cert) => Self {
                confirmed: bundle.clone(),
                published: bundle,
                overlap_start: None,
                operator_cert: operator_cert.map(|key_pair| *key_pair),
                removed: Vec::new(),
            },
            TrustStep::AddRoots(published) => Self { published, overlap_start: None, ..same },
            TrustStep::UseCertificate(key_pair) => Self { operator_cert: Some(*key_pair), ..same },
            TrustStep::StartOverlap(target) => {
                let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
                Self { overlap_start: Some((second, target)), ..same }
            }
            // The same probes have confirmed that CAs removed before are not trusted.
            TrustStep::SwitchLeaves => Self {
                confirmed: self.published.clone(),
                overlap_start: None,
                removed: Vec::new(),
                ..same
            },
            TrustStep::RemoveRoots(bundle, removed) => Self {
                // An external certificate is useless where no external CA is trusted.
                operator_cert: same.operator_cert.filter(|_| !bundle.external.is_empty()),
                confirmed: bundle.clone(),
                published: bundle,
                overlap_start: None,
                removed,
            },
            TrustStep::Finish => Self { removed: Vec::new(), ..same },
        }
    }

    /// The removed CAs that members must not list as accepted issuers. Members list subjects and
    /// not certificates: a removed CA with the subject of a trusted one cannot be distinguished.
    pub(crate) fn removed_to_verify(&self, ca_set: &CaSet, side: Side) -> Vec<Certificate> {
        let trusted = self.published.certificates(ca_set, side);
        let trusted: Vec<_> = trusted.iter().map(Certificate::subject).collect();
        let is_distinguishable = |ca: &&Certificate| !trusted.contains(&ca.subject());
        self.removed.iter().filter(is_distinguishable).cloned().collect()
    }
}

impl TrustStates {
    /// The states of a cluster without a record.
    pub(crate) const fn managed() -> Self {
        Self { client: TrustState::managed(), peer: TrustState::managed() }
    }

    /// The state of one side.
    pub(crate) const fn get(&self, side: Side) -> &TrustState {
        match side {
            Side::Client => &self.client,
            Side::Peer => &self.peer,
        }
    }

    /// The states after some steps.
    pub(crate) fn apply(&self, steps: &[(Side, TrustStep)], now: Timestamp) -> Self {
        let mut after = self.clone();
        for (side, step) in steps {
            let trust_state = after.get(*side).apply(step, now);
            match side {
                Side::Client => after.client = trust_state,
                Side::Peer => after.peer = trust_state,
            }
        }
        after
    }

    /// Parses the record in the CA Secret.
    pub(crate) fn read(secret: &Secret) -> Result<Self, InvalidSecret> {
        if !has(secret, TRUST_STATE) {
            return Ok(Self::managed());
        }
        let invalid = || InvalidSecret {
            secret: secret.name_any(),
            key: TRUST_STATE,
            error: ParseError::Modified,
        };
        let text = text(secret, TRUST_STATE).ok_or_else(invalid)?;
        // The parser's error is omitted, because parts of a key might be in there.
        let StoredStates { client, peer } = serde_json::from_str(&text).or(Err(invalid()))?;
        let parse = |stored: StoredState| stored.parse().ok_or_else(invalid);
        Ok(Self { client: parse(client)?, peer: parse(peer)? })
    }

    /// The merge patch that records the states, bound to the UID and resourceVersion of `existing`.
    pub(crate) fn patch(&self, existing: &Secret) -> Value {
        let value = if *self == Self::managed() {
            Value::Null
        } else {
            let sides = Side::BOTH.map(|side| (side.as_str(), stored(self.get(side))));
            let all: serde_json::Map<_, _> =
                sides.into_iter().map(|(name, state)| (name.to_owned(), state)).collect();
            json!(entry(TRUST_STATE, Value::Object(all).to_string()).1)
        };
        json!({
            "metadata": { "uid": existing.uid(), "resourceVersion": existing.resource_version() },
            "data": { TRUST_STATE: value },
        })
    }
}

/// The record as stored. It contains private keys and must not be logged.
#[derive(Deserialize)]
struct StoredStates {
    client: StoredState,
    peer: StoredState,
}

#[derive(Serialize, Deserialize)]
struct StoredState {
    confirmed: StoredBundle,
    published: StoredBundle,
    overlap_start: Option<(Timestamp, StoredBundle)>,
    certificate: Option<String>,
    key: Option<String>,
    #[serde(default)]
    removed: String,
}

#[derive(Serialize, Deserialize)]
struct StoredBundle {
    managed: bool,
    external: String,
}

fn stored(trust_state: &TrustState) -> Value {
    let TrustState { confirmed, published, overlap_start, operator_cert, removed } = trust_state;
    let stored = |bundle: &TrustBundle| StoredBundle {
        managed: bundle.managed,
        external: bundle.external.iter().map(Certificate::pem).collect(),
    };
    json!(StoredState {
        confirmed: stored(confirmed),
        published: stored(published),
        overlap_start: overlap_start.as_ref().map(|(time, target)| (*time, stored(target))),
        certificate: operator_cert.as_ref().map(CertifiedKey::pem),
        key: operator_cert.as_ref().map(|key_pair| key_pair.key.pem()),
        removed: removed.iter().map(Certificate::pem).collect(),
    })
}

impl StoredState {
    fn parse(self) -> Option<TrustState> {
        let Self { confirmed, published, overlap_start, certificate, key, removed } = self;
        let operator_cert = match (certificate, key) {
            (Some(certificate), Some(key)) => {
                Some(CertifiedKey::from_pem(certificate.as_bytes(), key.as_bytes()).ok()?)
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let overlap_start = match overlap_start {
            Some((time, target)) => Some((time, target.parse()?)),
            None => None,
        };
        let (confirmed, published) = (confirmed.parse()?, published.parse()?);
        let removed = Certificate::parse_ca_bundle(removed.as_bytes());
        Some(TrustState { confirmed, published, overlap_start, operator_cert, removed })
    }
}

impl StoredBundle {
    /// An empty bundle is invalid: no connection would be possible.
    fn parse(self) -> Option<TrustBundle> {
        let Self { managed, external } = self;
        let external = Certificate::parse_ca_bundle(external.as_bytes());
        let bundle = TrustBundle { managed, ..TrustBundle::external(external) };
        (bundle.managed || !bundle.external.is_empty()).then_some(bundle)
    }
}
