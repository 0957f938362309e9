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

use super::keys::{Broken, entry, has, text};
use super::roots::{Roots, Side};
use crate::pki::authority::{Certificate, Unfit};
use crate::pki::leaf::Signed;

/// The key under which it is.
const SOURCES: &str = "sources";

/// What one side rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footing {
    /// Whom all who run are known to trust: what these sign may be shown.
    pub(crate) proven: Roots,
    /// Whom everybody is told to trust.
    pub(crate) told: Roots,
    /// Since when everybody can read that, and whom it was about to rest on then. Whoever changes their mind begins anew:
    /// applications need their time for that, too.
    pub(crate) since: Option<(Timestamp, Roots)>,
    /// What was given for the operator to show; nothing while our own authorities sign that.
    pub(crate) pair: Option<Signed>,
}

/// Both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footings {
    pub(crate) client: Footing,
    pub(crate) peer: Footing,
}

/// One change of a footing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Nobody uses this side yet: it rests on these from the beginning.
    Settle(Roots, Option<Box<Signed>>),
    /// These are trusted from now on. Nothing that the new ones signed is shown yet.
    Introduce(Roots),
    /// The operator shows this.
    Show(Box<Signed>),
    /// Every Secret says that it comes to rest on these: from now on it can be read, and the time for that begins.
    Publish(Roots),
    /// All are known to trust those whom they were told to: what these sign may be shown.
    Establish,
    /// Nobody else is trusted any more.
    Drop(Roots),
}

impl Move {
    /// What it is called, if anybody is told of it.
    pub(crate) const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Introduce(_) => Some("AuthoritiesIntroduced"),
            Self::Establish => Some("CertificatesTakenOver"),
            Self::Drop(_) => Some("AuthoritiesDropped"),
            Self::Settle(..) | Self::Show(_) | Self::Publish(_) => None,
        }
    }

    /// What is said of it.
    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::Settle(..) => "It is known where certificates come from.",
            Self::Introduce(_) => "Other certificate authorities are trusted beside those before.",
            Self::Show(_) => "The operator shows a new certificate.",
            Self::Publish(_) => "Every Secret says so.",
            Self::Establish => "Members show what the other certificate authorities signed.",
            Self::Drop(_) => "The certificate authorities before are trusted no more.",
        }
    }
}

impl Footing {
    /// Our own authorities, and nobody else.
    pub(crate) const fn plain() -> Self {
        Self { proven: Roots::ours(), told: Roots::ours(), since: None, pair: None }
    }

    /// What it becomes.
    fn moved(&self, change: &Move, now: Timestamp) -> Self {
        let same = self.clone();
        match change.clone() {
            Move::Settle(roots, pair) => {
                Self { proven: roots.clone(), told: roots, since: None, pair: pair.map(|it| *it) }
            }
            Move::Introduce(told) => Self { told, since: None, ..same },
            Move::Show(pair) => Self { pair: Some(*pair), ..same },
            Move::Publish(roots) => {
                let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
                Self { since: Some((second, roots)), ..same }
            }
            Move::Establish => Self { proven: self.told.clone(), since: None, ..same },
            Move::Drop(roots) => Self {
                // What somebody else signed is of no use where nobody else is trusted.
                pair: same.pair.filter(|_| !roots.others.is_empty()),
                proven: roots.clone(),
                told: roots,
                since: None,
            },
        }
    }
}

impl Footings {
    /// Nothing was ever written down.
    pub(crate) const fn plain() -> Self {
        Self { client: Footing::plain(), peer: Footing::plain() }
    }

    /// One of the two.
    pub(crate) const fn of(&self, side: Side) -> &Footing {
        match side {
            Side::Client => &self.client,
            Side::Peer => &self.peer,
        }
    }

    /// What they become.
    pub(crate) fn moved(&self, moves: &[(Side, Move)], now: Timestamp) -> Self {
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
    pub(crate) fn read(secret: &Secret) -> Result<Self, Broken> {
        if !has(secret, SOURCES) {
            return Ok(Self::plain());
        }
        let broken = || Broken { secret: secret.name_any(), key: SOURCES, why: Unfit::Garbled };
        let text = text(secret, SOURCES).ok_or_else(broken)?;
        // What the reader says might tell of a key.
        let Written { client, peer } = serde_json::from_str(&text).or(Err(broken()))?;
        let read = |it: WrittenSide| it.read().ok_or_else(broken);
        Ok(Self { client: read(client)?, peer: read(peer)? })
    }

    /// The change of the Secret that writes them down, bound to the very Secret that was looked at.
    pub(crate) fn written(&self, held: &Secret) -> Value {
        let value = if *self == Self::plain() {
            Value::Null
        } else {
            let sides = Side::BOTH.map(|side| (side.word(), written(self.of(side))));
            let all: serde_json::Map<_, _> =
                sides.into_iter().map(|(word, side)| (word.to_owned(), side)).collect();
            json!(entry(SOURCES, Value::Object(all).to_string()).1)
        };
        json!({
            "metadata": { "uid": held.uid(), "resourceVersion": held.resource_version() },
            "data": { SOURCES: value },
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
}

#[derive(Serialize, Deserialize)]
struct WrittenRoots {
    ours: bool,
    others: String,
}

fn written(footing: &Footing) -> Value {
    let Footing { proven, told, since, pair } = footing;
    let roots = |it: &Roots| WrittenRoots {
        ours: it.ours,
        others: it.others.iter().map(Certificate::pem).collect(),
    };
    json!(WrittenSide {
        proven: roots(proven),
        told: roots(told),
        since: since.as_ref().map(|(at, toward)| (*at, roots(toward))),
        certificate: pair.as_ref().map(Signed::pem),
        key: pair.as_ref().map(|it| it.key.pem()),
    })
}

impl WrittenSide {
    fn read(self) -> Option<Footing> {
        let Self { proven, told, since, certificate, key } = self;
        let pair = match (certificate, key) {
            (Some(certificate), Some(key)) => {
                Some(Signed::read(certificate.as_bytes(), key.as_bytes()).ok()?)
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let since = match since {
            Some((at, toward)) => Some((at, toward.read()?)),
            None => None,
        };
        Some(Footing { proven: proven.read()?, told: told.read()?, since, pair })
    }
}

impl WrittenRoots {
    /// Somebody must be trusted.
    fn read(self) -> Option<Roots> {
        let Self { ours, others } = self;
        let others = Certificate::list(others.as_bytes());
        let roots = Roots { ours, ..Roots::given(others) };
        (roots.ours || !roots.others.is_empty()).then_some(roots)
    }
}
