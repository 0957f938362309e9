//! The managed CAs of a cluster and the phase of their rotation, stored in one Secret. Pure.
//!
//! ```text
//!   Idle --start--> Distributing --switch--> Retiring --remove--> Verifying --finish--> Idle
//!   issues:  current   current               next                 next                  next
//!   trusted: current   current, next         next, current        next                  next
//! ```
//!
//! Crash safety: each step is one write of one Secret. The trust bundle is the same before and
//! after the switch of the issuer, so no member has to read a new one in time. Removed CAs are
//! recorded until no member trusts them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::ca_pair::{CaPair, CaSlot};
use super::secret_keys::{
    InvalidSecret, NEXT_CLIENT, OVERLAP_START, PREVIOUS_CLIENT, PREVIOUS_PEER, REMOVED_CLIENT,
    REMOVED_PEER, ROTATION_REQUEST, entry, has, read_certificate, text,
};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::ca::Certificate;

/// The keys of the previous CAs while they are trusted.
const PREVIOUS: [&str; 2] = [PREVIOUS_CLIENT, PREVIOUS_PEER];
/// The keys of the previous CAs after their removal.
const REMOVED: [&str; 2] = [REMOVED_CLIENT, REMOVED_PEER];

/// The managed CAs of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaSet {
    /// The CAs that issue certificates.
    pub(crate) current: CaPair,
    pub(crate) phase: RotationPhase,
    /// Since when all Secrets contain the result of the last step.
    pub(crate) overlap_start: Option<Timestamp>,
    /// The last rotation request that was started.
    pub(crate) rotation_request: Option<String>,
}

/// The phase of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RotationPhase {
    /// No rotation is in progress.
    Idle,
    /// The new CAs are trusted, and issue certificates when all members trust them.
    Distributing(Box<CaPair>),
    /// The previous client CA and peer CA are trusted while their certificates may be in use.
    Retiring([Certificate; 2]),
    /// The previous CAs are removed, but members may not have been restarted since.
    Verifying([Certificate; 2]),
}

/// One step of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RotationStep {
    /// Adds new CAs. The request is recorded in the same write, so that a request is served once.
    Start(Box<CaPair>, Option<String>),
    /// Starts the overlap: all Secrets are up to date. Time before this step does not count, such
    /// as the time in which the operator did not run.
    StartOverlap,
    /// The new CAs issue certificates.
    SwitchIssuer(Box<CaPair>),
    /// Removes the old CAs from the trust bundles.
    RemoveOldCa,
    /// No member trusts the old CAs.
    Finish,
}

impl RotationStep {
    /// The reason of the Event, if there is one.
    pub(crate) const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Start(..) => Some("CARotationStarted"),
            Self::SwitchIssuer(_) => Some("CASwitched"),
            Self::RemoveOldCa => Some("OldCARemoved"),
            Self::Finish => Some("CARotationCompleted"),
            Self::StartOverlap => None,
        }
    }

    /// The message of the Event and the log line.
    pub(crate) const fn message(&self) -> &'static str {
        match self {
            Self::Start(..) => "New CAs are trusted in addition to the current CAs",
            Self::StartOverlap => "All Secrets are up to date; the overlap starts",
            Self::SwitchIssuer(_) => "Certificates are issued by the new CAs",
            Self::RemoveOldCa => {
                "Old CAs are removed from the trust bundles; members restart without them"
            }
            Self::Finish => "No member trusts the old CAs",
        }
    }
}

impl CaSet {
    /// The first CAs of a cluster.
    pub(crate) const fn new(current: CaPair, rotation_request: Option<String>) -> Self {
        Self { current, phase: RotationPhase::Idle, overlap_start: None, rotation_request }
    }

    /// Parses the CA Secret.
    pub(crate) fn read(secret: &Secret) -> Result<Self, InvalidSecret> {
        let pair = |[client, peer]: [&'static str; 2]| -> Result<_, InvalidSecret> {
            Ok([read_certificate(secret, client)?, read_certificate(secret, peer)?])
        };
        let phase = if has(secret, NEXT_CLIENT.certificate) {
            RotationPhase::Distributing(Box::new(CaPair::read(secret, CaSlot::Next)?))
        } else if has(secret, PREVIOUS_CLIENT) {
            RotationPhase::Retiring(pair(PREVIOUS)?)
        } else if has(secret, REMOVED_CLIENT) {
            RotationPhase::Verifying(pair(REMOVED)?)
        } else {
            RotationPhase::Idle
        };
        Ok(Self {
            current: CaPair::read(secret, CaSlot::Current)?,
            phase,
            overlap_start: text(secret, OVERLAP_START).and_then(|time| time.parse().ok()),
            rotation_request: text(secret, ROTATION_REQUEST),
        })
    }

    /// The CA Secret, for a cluster that has none.
    pub(crate) fn secret(&self, blueprint: &Blueprint<'_>) -> Secret {
        let Self { current, phase, overlap_start, rotation_request } = self;
        let (next, old) = match phase {
            RotationPhase::Idle => (Vec::new(), Vec::new()),
            RotationPhase::Distributing(next) => (next.entries(CaSlot::Next), Vec::new()),
            RotationPhase::Retiring(old) => (Vec::new(), entries(PREVIOUS, old)),
            RotationPhase::Verifying(old) => (Vec::new(), entries(REMOVED, old)),
        };
        let overlap_start = overlap_start.map(|time| entry(OVERLAP_START, time.to_string()));
        let rotation_request =
            rotation_request.as_ref().map(|request| entry(ROTATION_REQUEST, request.as_str()));
        let data = current.entries(CaSlot::Current).into_iter().chain(next).chain(old);
        Secret {
            metadata: blueprint.metadata(names::ca_secret(blueprint.name)),
            type_: Some("Opaque".to_owned()),
            data: Some(data.chain(overlap_start).chain(rotation_request).collect()),
            ..Secret::default()
        }
    }

    /// The merge patch that applies a step, bound to the UID and resourceVersion of `existing`.
    pub(crate) fn patch(&self, step: &RotationStep, existing: &Secret, now: Timestamp) -> Value {
        let mut data = Map::new();
        let mut write = |entries: Vec<(String, ByteString)>| {
            data.extend(entries.into_iter().map(|(key, value)| (key, json!(value))));
        };
        match step {
            RotationStep::Start(next, request) => {
                write(next.entries(CaSlot::Next));
                let request = request.iter().map(|text| entry(ROTATION_REQUEST, text.as_str()));
                write(request.collect());
            }
            RotationStep::StartOverlap => {
                let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
                write(vec![entry(OVERLAP_START, second.to_string())]);
            }
            RotationStep::SwitchIssuer(next) => {
                write(next.entries(CaSlot::Current));
                let [client, peer] = self.current.certificates();
                write(entries(PREVIOUS, &[client.clone(), peer.clone()]));
                for keys in CaSlot::Next.keys() {
                    data.insert(keys.certificate.to_owned(), Value::Null);
                    data.insert(keys.key.to_owned(), Value::Null);
                }
            }
            RotationStep::RemoveOldCa => {
                if let RotationPhase::Retiring(old) = &self.phase {
                    write(entries(REMOVED, old));
                }
                data.extend(PREVIOUS.map(|key| (key.to_owned(), Value::Null)));
            }
            RotationStep::Finish => data.extend(REMOVED.map(|key| (key.to_owned(), Value::Null))),
        }
        if *step != RotationStep::StartOverlap && has(existing, OVERLAP_START) {
            data.insert(OVERLAP_START.to_owned(), Value::Null);
        }
        json!({
            "metadata": { "uid": existing.uid(), "resourceVersion": existing.resource_version() },
            "data": data,
        })
    }

    /// The trusted client CAs, sorted.
    pub(crate) fn client_bundle(&self) -> Vec<Certificate> {
        self.bundle(|[client, _]| client)
    }

    /// The trusted peer CAs, sorted.
    pub(crate) fn peer_bundle(&self) -> Vec<Certificate> {
        self.bundle(|[_, peer]| peer)
    }

    fn bundle<'a>(
        &'a self,
        side: impl Fn([&'a Certificate; 2]) -> &'a Certificate,
    ) -> Vec<Certificate> {
        let other = match &self.phase {
            RotationPhase::Idle | RotationPhase::Verifying(_) => None,
            RotationPhase::Distributing(next) => Some(side(next.certificates())),
            RotationPhase::Retiring([client, peer]) => Some(side([client, peer])),
        };
        let mut all: Vec<Certificate> =
            [side(self.current.certificates())].into_iter().chain(other).cloned().collect();
        all.sort_by(|a, b| a.der.cmp(&b.der));
        all
    }
}

fn entries(keys: [&str; 2], certificates: &[Certificate; 2]) -> Vec<(String, ByteString)> {
    keys.into_iter().zip(certificates).map(|(key, ca)| entry(key, ca.pem())).collect()
}
