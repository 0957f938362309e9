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

use super::ca_pair::{CaPair, CaSlot};
use super::secret_keys::{
    InvalidSecret, NEXT_CLIENT, OVERLAP_START, PREVIOUS_CLIENT, PREVIOUS_PEER, REMOVED_CLIENT,
    REMOVED_PEER, ROTATION_REQUEST, entry, has, one, text,
};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::ca::Certificate;

/// Those who signed before, while they are trusted.
const OLD: [&str; 2] = [PREVIOUS_CLIENT, PREVIOUS_PEER];
/// And afterwards.
const DROPPED: [&str; 2] = [REMOVED_CLIENT, REMOVED_PEER];

/// The authorities of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaSet {
    /// Those who sign.
    pub(crate) now: CaPair,
    /// Who else is trusted.
    pub(crate) stage: RotationPhase,
    /// Since when everybody can read what came of the last turn.
    pub(crate) since: Option<Timestamp>,
    /// What a user asked for last that was begun.
    pub(crate) asked: Option<String>,
}

/// How far others have come in taking their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RotationPhase {
    /// There are no others.
    Idle,
    /// These are trusted, and sign when every member has heard of them.
    Distributing(Box<CaPair>),
    /// Those who signed before, for clients and for members, are trusted as long as what they signed is about.
    Retiring([Certificate; 2]),
    /// Those who signed before are not to be trusted any more, and members may not have been started since.
    Verifying([Certificate; 2]),
}

/// One step of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RotationStep {
    /// Others come. What was asked for is written down with it, so that it is done once.
    Start(Box<CaPair>, Option<String>),
    /// All Secrets say so: from now on they can be read, and the time for that begins. An operator that was away meanwhile
    /// takes nothing of it.
    StartOverlap,
    /// They sign from now on.
    SwitchIssuer(Box<CaPair>),
    /// Those who signed before are not to be trusted any more.
    RemoveOldCa,
    /// No member trusts them.
    Finish,
}

impl RotationStep {
    /// What it is called, if anybody is told of it.
    pub(crate) const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Start(..) => Some("CARotationStarted"),
            Self::SwitchIssuer(_) => Some("CASwitched"),
            Self::RemoveOldCa => Some("OldCARemoved"),
            Self::Finish => Some("CARotationCompleted"),
            Self::StartOverlap => None,
        }
    }

    /// What is said of it.
    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::Start(..) => "New certificate authorities are trusted beside those that sign.",
            Self::StartOverlap => "Every Secret says so.",
            Self::SwitchIssuer(_) => "The new certificate authorities sign.",
            Self::RemoveOldCa => {
                "Nobody needs the old certificate authorities any more; members are started without them."
            }
            Self::Finish => "No member trusts the old certificate authorities any more.",
        }
    }
}

impl CaSet {
    /// A ring of authorities that are the first.
    pub(crate) const fn first(now: CaPair, asked: Option<String>) -> Self {
        Self { now, stage: RotationPhase::Idle, since: None, asked }
    }

    /// What a Secret says.
    pub(crate) fn read(secret: &Secret) -> Result<Self, InvalidSecret> {
        let stage = if has(secret, NEXT_CLIENT.certificate) {
            RotationPhase::Distributing(Box::new(CaPair::read(secret, CaSlot::Next)?))
        } else if has(secret, PREVIOUS_CLIENT) {
            RotationPhase::Retiring([one(secret, PREVIOUS_CLIENT)?, one(secret, PREVIOUS_PEER)?])
        } else if has(secret, REMOVED_CLIENT) {
            RotationPhase::Verifying([one(secret, REMOVED_CLIENT)?, one(secret, REMOVED_PEER)?])
        } else {
            RotationPhase::Idle
        };
        Ok(Self {
            now: CaPair::read(secret, CaSlot::Current)?,
            stage,
            since: text(secret, OVERLAP_START).and_then(|it| it.parse().ok()),
            asked: text(secret, ROTATION_REQUEST),
        })
    }

    /// The Secret with it, for a cluster that has none.
    pub(crate) fn secret(&self, blueprint: &Blueprint<'_>) -> Secret {
        let Self { now, stage, since, asked } = self;
        let (next, old) = match stage {
            RotationPhase::Idle => (Vec::new(), Vec::new()),
            RotationPhase::Distributing(next) => (next.written(CaSlot::Next), Vec::new()),
            RotationPhase::Retiring(old) => (Vec::new(), written(OLD, old)),
            RotationPhase::Verifying(old) => (Vec::new(), written(DROPPED, old)),
        };
        let since = since.map(|it| entry(OVERLAP_START, it.to_string()));
        let asked = asked.as_ref().map(|it| entry(ROTATION_REQUEST, it.as_str()));
        let data = now.written(CaSlot::Current).into_iter().chain(next).chain(old);
        Secret {
            metadata: blueprint.metadata(names::ca_secret(blueprint.name)),
            type_: Some("Opaque".to_owned()),
            data: Some(data.chain(since).chain(asked).collect()),
            ..Secret::default()
        }
    }

    /// The change of the Secret that makes a turn, bound to the very Secret that was looked at.
    pub(crate) fn turned(&self, turn: &RotationStep, held: &Secret, now: Timestamp) -> Value {
        let mut data = Map::new();
        let mut write = |entries: Vec<(String, ByteString)>| {
            data.extend(entries.into_iter().map(|(key, value)| (key, json!(value))));
        };
        match turn {
            RotationStep::Start(next, asked) => {
                write(next.written(CaSlot::Next));
                write(asked.iter().map(|it| entry(ROTATION_REQUEST, it.as_str())).collect());
            }
            RotationStep::StartOverlap => {
                let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
                write(vec![entry(OVERLAP_START, second.to_string())]);
            }
            RotationStep::SwitchIssuer(next) => {
                write(next.written(CaSlot::Current));
                let [client, peer] = self.now.certificates();
                write(written(OLD, &[client.clone(), peer.clone()]));
                for pair in CaSlot::Next.keys() {
                    data.insert(pair.certificate.to_owned(), Value::Null);
                    data.insert(pair.key.to_owned(), Value::Null);
                }
            }
            RotationStep::RemoveOldCa => {
                if let RotationPhase::Retiring(old) = &self.stage {
                    write(written(DROPPED, old));
                }
                data.extend(OLD.map(|key| (key.to_owned(), Value::Null)));
            }
            RotationStep::Finish => data.extend(DROPPED.map(|key| (key.to_owned(), Value::Null))),
        }
        if *turn != RotationStep::StartOverlap && has(held, OVERLAP_START) {
            data.insert(OVERLAP_START.to_owned(), Value::Null);
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
            RotationPhase::Idle | RotationPhase::Verifying(_) => None,
            RotationPhase::Distributing(next) => Some(side(next.certificates())),
            RotationPhase::Retiring([client, peer]) => Some(side([client, peer])),
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
