//! What each side of a cluster rests on, as it is written down beside the authorities.
//! Comes in: a Secret that anyone may have written to. Goes out: the footings, and each change as one write.
//! May touch: `pki`, Kubernetes' own types; pure. A cluster that has never had certificates from elsewhere has nothing
//! written down. What was given is kept here, too: who made it may take it away, and members must still be called.
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

/// The key under which it is.
const TRUST_STATE: &str = "trust-state";

/// What one side rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustState {
    /// Whom all who run are known to trust: what these sign may be shown.
    pub(crate) proven: TrustBundle,
    /// Whom everybody is told to trust.
    pub(crate) told: TrustBundle,
    /// Since when everybody can read that, and whom it was about to rest on then. Whoever changes their mind begins anew:
    /// applications need their time for that, too.
    pub(crate) since: Option<(Timestamp, TrustBundle)>,
    /// What was given for the operator to show; nothing while our own authorities sign that.
    pub(crate) pair: Option<CertifiedKey>,
    /// Who is not to be trusted any more, while members may not have been started since.
    pub(crate) dropped: Vec<Certificate>,
}

/// Both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustStates {
    pub(crate) client: TrustState,
    pub(crate) peer: TrustState,
}

/// One change of a footing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustStep {
    /// Nobody uses this side yet: it rests on these from the beginning.
    Initialize(TrustBundle, Option<Box<CertifiedKey>>),
    /// These are trusted from now on. Nothing that the new ones signed is shown yet.
    AddRoots(TrustBundle),
    /// The operator shows this.
    UseCertificate(Box<CertifiedKey>),
    /// Every Secret says that it comes to rest on these: from now on it can be read, and the time for that begins.
    StartOverlap(TrustBundle),
    /// All are known to trust those whom they were told to: what these sign may be shown.
    SwitchLeaves,
    /// Nobody but these is to be trusted any more; those are who goes.
    RemoveRoots(TrustBundle, Vec<Certificate>),
    /// No member trusts those who went.
    Finish,
}

impl TrustStep {
    /// What it is called, if anybody is told of it.
    pub(crate) const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::AddRoots(_) => Some("CARotationStarted"),
            Self::SwitchLeaves => Some("CASwitched"),
            Self::RemoveRoots(..) => Some("OldCARemoved"),
            Self::Finish => Some("CARotationCompleted"),
            Self::Initialize(..) | Self::UseCertificate(_) | Self::StartOverlap(_) => None,
        }
    }

    /// What is said of it.
    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::Initialize(..) => "It is known where certificates come from.",
            Self::AddRoots(_) => "Other certificate authorities are trusted beside those before.",
            Self::UseCertificate(_) => "The operator shows a new certificate.",
            Self::StartOverlap(_) => "Every Secret says so.",
            Self::SwitchLeaves => "Members show what the other certificate authorities signed.",
            Self::RemoveRoots(..) => {
                "Nobody needs the certificate authorities before any more; members are started without them."
            }
            Self::Finish => "No member trusts the certificate authorities before any more.",
        }
    }
}

impl TrustState {
    /// Our own authorities, and nobody else.
    pub(crate) const fn managed() -> Self {
        let proven = TrustBundle::managed();
        Self { proven, told: TrustBundle::managed(), since: None, pair: None, dropped: Vec::new() }
    }

    /// What it becomes.
    fn moved(&self, change: &TrustStep, now: Timestamp) -> Self {
        let same = self.clone();
        match change.clone() {
            TrustStep::Initialize(roots, pair) => {
                let pair = pair.map(|it| *it);
                Self { proven: roots.clone(), told: roots, since: None, pair, dropped: Vec::new() }
            }
            TrustStep::AddRoots(told) => Self { told, since: None, ..same },
            TrustStep::UseCertificate(pair) => Self { pair: Some(*pair), ..same },
            TrustStep::StartOverlap(roots) => {
                let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
                Self { since: Some((second, roots)), ..same }
            }
            // Who was dropped before was asked for in the same calls.
            TrustStep::SwitchLeaves => {
                Self { proven: self.told.clone(), since: None, dropped: Vec::new(), ..same }
            }
            TrustStep::RemoveRoots(roots, dropped) => Self {
                // What somebody else signed is of no use where nobody else is trusted.
                pair: same.pair.filter(|_| !roots.others.is_empty()),
                proven: roots.clone(),
                told: roots,
                since: None,
                dropped,
            },
            TrustStep::Finish => Self { dropped: Vec::new(), ..same },
        }
    }

    /// Whom no member must name any more when it says whom it takes. Members name authorities, and do not show them: who has
    /// the name of somebody who is trusted cannot be told from them.
    pub(crate) fn unnamed(&self, ring: &CaSet, side: Side) -> Vec<Certificate> {
        let trusted: Vec<_> = self.told.list(ring, side).iter().map(Certificate::subject).collect();
        let is_told_apart = |it: &&Certificate| !trusted.contains(&it.subject());
        self.dropped.iter().filter(is_told_apart).cloned().collect()
    }
}

impl TrustStates {
    /// Nothing was ever written down.
    pub(crate) const fn managed() -> Self {
        Self { client: TrustState::managed(), peer: TrustState::managed() }
    }

    /// One of the two.
    pub(crate) const fn of(&self, side: Side) -> &TrustState {
        match side {
            Side::Client => &self.client,
            Side::Peer => &self.peer,
        }
    }

    /// What they become.
    pub(crate) fn moved(&self, moves: &[(Side, TrustStep)], now: Timestamp) -> Self {
        let mut after = self.clone();
        for (side, change) in moves {
            let footing = after.of(*side).moved(change, now);
            match side {
                Side::Client => after.client = footing,
                Side::Peer => after.peer = footing,
            }
        }
        after
    }

    /// What a Secret says.
    pub(crate) fn read(secret: &Secret) -> Result<Self, InvalidSecret> {
        if !has(secret, TRUST_STATE) {
            return Ok(Self::managed());
        }
        let broken = || InvalidSecret {
            secret: secret.name_any(),
            key: TRUST_STATE,
            why: ParseError::Modified,
        };
        let text = text(secret, TRUST_STATE).ok_or_else(broken)?;
        // What the reader says might tell of a key.
        let Written { client, peer } = serde_json::from_str(&text).or(Err(broken()))?;
        let read = |it: WrittenSide| it.read().ok_or_else(broken);
        Ok(Self { client: read(client)?, peer: read(peer)? })
    }

    /// The change of the Secret that writes them down, bound to the very Secret that was looked at.
    pub(crate) fn written(&self, held: &Secret) -> Value {
        let value = if *self == Self::managed() {
            Value::Null
        } else {
            let sides = Side::BOTH.map(|side| (side.word(), written(self.of(side))));
            let all: serde_json::Map<_, _> =
                sides.into_iter().map(|(word, side)| (word.to_owned(), side)).collect();
            json!(entry(TRUST_STATE, Value::Object(all).to_string()).1)
        };
        json!({
            "metadata": { "uid": held.uid(), "resourceVersion": held.resource_version() },
            "data": { TRUST_STATE: value },
        })
    }
}

/// As it is written. It has keys in it and is shown to nobody.
#[derive(Deserialize)]
struct Written {
    client: WrittenSide,
    peer: WrittenSide,
}

#[derive(Serialize, Deserialize)]
struct WrittenSide {
    proven: WrittenRoots,
    told: WrittenRoots,
    since: Option<(Timestamp, WrittenRoots)>,
    certificate: Option<String>,
    key: Option<String>,
    /// An older release does not write it.
    #[serde(default)]
    dropped: String,
}

#[derive(Serialize, Deserialize)]
struct WrittenRoots {
    ours: bool,
    others: String,
}

fn written(footing: &TrustState) -> Value {
    let TrustState { proven, told, since, pair, dropped } = footing;
    let roots = |it: &TrustBundle| WrittenRoots {
        ours: it.ours,
        others: it.others.iter().map(Certificate::pem).collect(),
    };
    json!(WrittenSide {
        proven: roots(proven),
        told: roots(told),
        since: since.as_ref().map(|(at, toward)| (*at, roots(toward))),
        certificate: pair.as_ref().map(CertifiedKey::pem),
        key: pair.as_ref().map(|it| it.key.pem()),
        dropped: dropped.iter().map(Certificate::pem).collect(),
    })
}

impl WrittenSide {
    fn read(self) -> Option<TrustState> {
        let Self { proven, told, since, certificate, key, dropped } = self;
        let pair = match (certificate, key) {
            (Some(certificate), Some(key)) => {
                Some(CertifiedKey::from_pem(certificate.as_bytes(), key.as_bytes()).ok()?)
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let since = match since {
            Some((at, toward)) => Some((at, toward.read()?)),
            None => None,
        };
        let dropped = Certificate::parse_ca_bundle(dropped.as_bytes());
        Some(TrustState { proven: proven.read()?, told: told.read()?, since, pair, dropped })
    }
}

impl WrittenRoots {
    /// Somebody must be trusted.
    fn read(self) -> Option<TrustBundle> {
        let Self { ours, others } = self;
        let others = Certificate::parse_ca_bundle(others.as_bytes());
        let roots = TrustBundle { ours, ..TrustBundle::external(others) };
        (roots.ours || !roots.others.is_empty()).then_some(roots)
    }
}
