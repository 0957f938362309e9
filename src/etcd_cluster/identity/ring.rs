//! The authorities of a cluster while others take their place: who signs, who will, and who did.
//!
//! ```text
//!   Still --begin--> Introduced(next) --take over--> Retiring(old) --drop--> Dropped(old) --forget--> Still
//!   signs: now       now                             next                    next                     next
//!   trusted: now     now, next                       next, now               next                     next
//! ```
//!
//! Comes in: a Secret that anyone may have written to. Goes out: the ring, and each turn as one write.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure. All of it is in one Secret, so a turn is made or it is
//! not. Whom to trust is the same before and after a take-over: nobody has to hear of it in time. Who was dropped is
//! remembered until no member trusts it any more.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::authorities::{Authorities, Place};
use super::keys::{
    ASKED, Broken, DROPPED_CLIENT, DROPPED_PEER, NEXT_CLIENT, OLD_CLIENT, OLD_PEER, SINCE, entry,
    has, one, text,
};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::authority::Certificate;

/// Those who signed before, while they are trusted.
const OLD: [&str; 2] = [OLD_CLIENT, OLD_PEER];
/// And afterwards.
const DROPPED: [&str; 2] = [DROPPED_CLIENT, DROPPED_PEER];

/// The authorities of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Those who sign.
    pub(crate) now: Authorities,
    /// Who else is trusted.
    pub(crate) stage: Stage,
    /// Since when everybody can read what came of the last turn.
    pub(crate) since: Option<Timestamp>,
    /// What a user asked for last that was begun.
    pub(crate) asked: Option<String>,
}

/// How far others have come in taking their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There are no others.
    Still,
    /// These are trusted, and sign when every member has heard of them.
    Introduced(Box<Authorities>),
    /// Those who signed before, for clients and for members, are trusted as long as what they signed is about.
    Retiring([Certificate; 2]),
    /// Those who signed before are not to be trusted any more, and members may not have been started since.
    Dropped([Certificate; 2]),
}

/// One step of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Others come. What was asked for is written down with it, so that it is done once.
    Begin(Box<Authorities>, Option<String>),
    /// All Secrets say so: from now on they can be read, and the time for that begins. An operator that was away meanwhile
    /// takes nothing of it.
    Publish,
    /// They sign from now on.
    TakeOver(Box<Authorities>),
    /// Those who signed before are not to be trusted any more.
    Drop,
    /// No member trusts them.
    Forget,
}

impl Turn {
    /// What it is called, if anybody is told of it.
    pub(crate) const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Begin(..) => Some("AuthoritiesIntroduced"),
            Self::TakeOver(_) => Some("AuthoritiesTookOver"),
            Self::Drop => Some("AuthoritiesDropped"),
            Self::Forget => Some("AuthoritiesGone"),
            Self::Publish => None,
        }
    }

    /// What is said of it.
    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::Begin(..) => "New certificate authorities are trusted beside those that sign.",
            Self::Publish => "Every Secret says so.",
            Self::TakeOver(_) => "The new certificate authorities sign.",
            Self::Drop => {
                "Nobody needs the old certificate authorities any more; members are started without them."
            }
            Self::Forget => "No member trusts the old certificate authorities any more.",
        }
    }
}

impl Ring {
    /// A ring of authorities that are the first.
    pub(crate) const fn first(now: Authorities, asked: Option<String>) -> Self {
        Self { now, stage: Stage::Still, since: None, asked }
    }

    /// What a Secret says.
    pub(crate) fn read(secret: &Secret) -> Result<Self, Broken> {
        let stage = if has(secret, NEXT_CLIENT.certificate) {
            Stage::Introduced(Box::new(Authorities::read(secret, Place::Next)?))
        } else if has(secret, OLD_CLIENT) {
            Stage::Retiring([one(secret, OLD_CLIENT)?, one(secret, OLD_PEER)?])
        } else if has(secret, DROPPED_CLIENT) {
            Stage::Dropped([one(secret, DROPPED_CLIENT)?, one(secret, DROPPED_PEER)?])
        } else {
            Stage::Still
        };
        Ok(Self {
            now: Authorities::read(secret, Place::Now)?,
            stage,
            since: text(secret, SINCE).and_then(|it| it.parse().ok()),
            asked: text(secret, ASKED),
        })
    }

    /// The Secret with it, for a cluster that has none.
    pub(crate) fn secret(&self, blueprint: &Blueprint<'_>) -> Secret {
        let Self { now, stage, since, asked } = self;
        let (next, old) = match stage {
            Stage::Still => (Vec::new(), Vec::new()),
            Stage::Introduced(next) => (next.written(Place::Next), Vec::new()),
            Stage::Retiring(old) => (Vec::new(), written(OLD, old)),
            Stage::Dropped(old) => (Vec::new(), written(DROPPED, old)),
        };
        let since = since.map(|it| entry(SINCE, it.to_string()));
        let asked = asked.as_ref().map(|it| entry(ASKED, it.as_str()));
        let data = now.written(Place::Now).into_iter().chain(next).chain(old);
        Secret {
            metadata: blueprint.metadata(names::authority_secret(blueprint.name)),
            type_: Some("Opaque".to_owned()),
            data: Some(data.chain(since).chain(asked).collect()),
            ..Secret::default()
        }
    }

    /// The change of the Secret that makes a turn, bound to the very Secret that was looked at.
    pub(crate) fn turned(&self, turn: &Turn, held: &Secret, now: Timestamp) -> Value {
        let mut data = Map::new();
        let mut write = |entries: Vec<(String, ByteString)>| {
            data.extend(entries.into_iter().map(|(key, value)| (key, json!(value))));
        };
        match turn {
            Turn::Begin(next, asked) => {
                write(next.written(Place::Next));
                write(asked.iter().map(|it| entry(ASKED, it.as_str())).collect());
            }
            Turn::Publish => {
                let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
                write(vec![entry(SINCE, second.to_string())]);
            }
            Turn::TakeOver(next) => {
                write(next.written(Place::Now));
                let [client, peer] = self.now.certificates();
                write(written(OLD, &[client.clone(), peer.clone()]));
                for pair in Place::Next.keys() {
                    data.insert(pair.certificate.to_owned(), Value::Null);
                    data.insert(pair.key.to_owned(), Value::Null);
                }
            }
            Turn::Drop => {
                if let Stage::Retiring(old) = &self.stage {
                    write(written(DROPPED, old));
                }
                data.extend(OLD.map(|key| (key.to_owned(), Value::Null)));
            }
            Turn::Forget => data.extend(DROPPED.map(|key| (key.to_owned(), Value::Null))),
        }
        if *turn != Turn::Publish && has(held, SINCE) {
            data.insert(SINCE.to_owned(), Value::Null);
        }
        json!({
            "metadata": { "uid": held.uid(), "resourceVersion": held.resource_version() },
            "data": data,
        })
    }

    /// Whom to trust among clients, and who serves them; always in the same order.
    pub(crate) fn for_clients(&self) -> Vec<Certificate> {
        self.trusted(|[client, _]| client)
    }

    /// Whom to trust among members; always in the same order.
    pub(crate) fn for_peers(&self) -> Vec<Certificate> {
        self.trusted(|[_, peer]| peer)
    }

    fn trusted<'a>(
        &'a self,
        side: impl Fn([&'a Certificate; 2]) -> &'a Certificate,
    ) -> Vec<Certificate> {
        let other = match &self.stage {
            Stage::Still | Stage::Dropped(_) => None,
            Stage::Introduced(next) => Some(side(next.certificates())),
            Stage::Retiring([client, peer]) => Some(side([client, peer])),
        };
        let mut all: Vec<Certificate> =
            [side(self.now.certificates())].into_iter().chain(other).cloned().collect();
        all.sort_by(|a, b| a.der.cmp(&b.der));
        all
    }
}

fn written(keys: [&str; 2], certificates: &[Certificate; 2]) -> Vec<(String, ByteString)> {
    keys.into_iter().zip(certificates).map(|(key, it)| entry(key, it.pem())).collect()
}
