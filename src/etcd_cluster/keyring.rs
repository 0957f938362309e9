//! The Secrets of clusters: read, signed, written, and remembered as long as this replica leads.
//! Comes in: a blueprint, and who the members are. Goes out: credentials for the operator itself, and what became of
//! the Secrets. May touch: `ports`. Secrets are not watched, because that would need a right to all of
//! them: they are looked at whenever something is to be done, and when a certificate is due. Here authorities change
//! their places, too: it is one write of the Secret that they are in.

mod prove;
mod secrets;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;

use super::doors::Scheme;
use super::identity::binding::{Binding, Identity, words};
use super::identity::lifetimes::{Lifetimes, due_at};
use super::identity::mint::{self, Signing};
use super::identity::ring::{Ring, Turn};
use super::identity::rotation::{Seat, Turning};
use super::identity::trust::{Sides, Trust};
use super::identity::wanted::{Stuck, Wanted, Write, wanted};
use super::render::Blueprint;
use super::seen::{Name, Reading};
use crate::pki::authority::{Certificate, bundle};
use crate::pki::mint::Unmade;
use crate::ports::call::{CallError, Class};
use crate::ports::etcd::{Credentials, Place};
use crate::ports::objects::{ObjectError, Objects};
use secrets::Secrets;
use turn::{Noted, Turned, next_look};

/// One write leads to another at most so often: owners, authorities, whom to trust and what they sign, and since when.
const MOST_ROUNDS: usize = 6;

/// Why the Secrets are not as they should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    /// A Secret could not be read.
    #[error(transparent)]
    Read(CallError),
    /// A Secret could not be written.
    #[error(transparent)]
    Write(ObjectError),
    /// A Secret has the name of one of ours, and is somebody else's.
    #[error(
        "the Secret {0} is there, and not this cluster's: it is not touched; rename it, or the cluster"
    )]
    Taken(String),
    /// Nothing could be signed.
    #[error("failed to make the certificates of a cluster")]
    Make(#[source] Unmade),
}

/// What became of the Secrets of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// Which were written.
    pub(crate) written: Vec<String>,
    /// Why nothing can be signed.
    pub(crate) stuck: Option<Stuck>,
    /// How authorities changed their places.
    pub(crate) turns: Vec<Turn>,
}

/// A pod, and where its member can be called.
#[derive(Clone, Debug)]
pub(crate) struct Seated {
    pub(crate) seat: Seat,
    /// Nowhere if it has no address.
    pub(crate) place: Option<Place>,
}

/// Whose Secrets there should be.
pub(crate) struct Circle<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// The members, each with the uid of its EtcdMember.
    pub(crate) members: Vec<(Name, String)>,
    /// Those that applications are told of; nothing before the cluster was formed: until then nobody must
    /// be able to write to it.
    pub(crate) told: Option<Vec<Name>>,
    /// Every pod.
    pub(crate) seats: Vec<Seated>,
    /// The word with which the user asks for new authorities.
    pub(crate) asked: Option<String>,
}

/// What is needed to write a Secret.
struct Desk<'a> {
    objects: &'a Objects,
    circle: &'a Circle<'a>,
    ring: Option<&'a Ring>,
    now: Timestamp,
}

/// What the Secrets were seen to be right for.
#[derive(Clone, PartialEq, Eq)]
struct Right {
    /// The members and their uids.
    members: BTreeSet<(Name, String)>,
    /// Those that applications are told of.
    told: Option<Vec<Name>>,
    /// How these are called.
    scheme: Scheme,
    /// Whether the cluster owns its Secrets.
    is_owned: bool,
    asked: Option<String>,
    is_paused: bool,
}

/// What is remembered of one cluster.
#[derive(Clone)]
struct Keys {
    credentials: Credentials,
    /// Who signed the operator's own certificate.
    signer: Certificate,
    /// When the operator's own certificate is due.
    own_due: Timestamp,
    right: Option<Right>,
    /// When to look at them again.
    look: Timestamp,
    stuck: Option<Stuck>,
    /// Whom members trust by what is in their Secrets.
    trust: Trust,
    /// What the authorities wait for that take the place of others.
    turning: Option<Turning>,
}

/// The keys of every cluster, by the uid of its EtcdCluster.
pub(crate) struct Keyring {
    keys: Mutex<BTreeMap<String, Keys>>,
    lifetimes: Lifetimes,
}

impl Keyring {
    /// Nothing is known yet.
    pub(crate) const fn new(lifetimes: Lifetimes) -> Self {
        Self { keys: Mutex::new(BTreeMap::new()), lifetimes }
    }

    fn of<T>(&self, uid: &str, read: impl FnOnce(&Keys) -> Option<T>) -> Option<T> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(uid).and_then(read)
    }

    /// What the operator shows to the members of a cluster, if that is known.
    pub(crate) fn credentials(&self, uid: &str, now: Timestamp) -> Option<Credentials> {
        self.of(uid, |it| (now < it.own_due).then(|| it.credentials.clone()))
    }

    /// Why nothing can be signed for a cluster.
    pub(crate) fn stuck(&self, uid: &str) -> Option<Stuck> {
        self.of(uid, |it| it.stuck.clone())
    }

    /// Whom the pods of a cluster should trust, if that is known.
    pub(crate) fn trust(&self, uid: &str) -> Option<Trust> {
        self.of(uid, |it| Some(it.trust.clone()))
    }

    /// What the coming authorities of a cluster wait for, if there are any.
    pub(crate) fn turning(&self, uid: &str) -> Option<Turning> {
        self.of(uid, |it| it.turning.clone())
    }

    /// Forgets a cluster that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Whether the Secrets must be looked at.
    pub(crate) fn must_look(&self, circle: &Circle<'_>, now: Timestamp) -> bool {
        let is_right = |it: &Keys| {
            now < it.look && now < it.own_due && it.right.as_ref() == Some(&circle.right())
        };
        self.of(circle.blueprint.uid, |it| is_right(it).then_some(())).is_none()
    }

    /// Looks at the Secrets, and writes what is missing or due.
    pub(crate) async fn keep(
        &self,
        objects: &Objects,
        circle: &Circle<'_>,
        now: Timestamp,
    ) -> Result<Kept, KeyringError> {
        let mut kept = Kept::default();
        for _ in 0..MOST_ROUNDS {
            let secrets = Secrets::read(objects, circle).await.map_err(KeyringError::Read)?;
            if let Some(taken) = secrets.of_somebody_else(circle) {
                return Err(KeyringError::Taken(taken));
            }
            let looked = secrets.looked(circle);
            let told = circle.told.clone().unwrap_or_default();
            let found = wanted(circle.blueprint, &looked, &told, self.lifetimes, now);
            let ring = match &looked.ring {
                Reading::Known(Some(Ok(ring))) => Some(ring),
                Reading::Known(Some(Err(_)) | None) | Reading::Unknown => None,
            };
            let disowned = secrets.with_another_owner(circle);
            kept.stuck.clone_from(&found.stuck);
            let desk = Desk { objects, circle, ring, now };
            if found.writes.is_empty() && disowned.is_empty() {
                let (Some(ring), Some(held)) = (ring, &secrets.authorities) else {
                    return Ok(kept);
                };
                match self.turn(&desk, ring, held, &found).await? {
                    Turned::Made(turn) => {
                        kept.turns.extend(turn);
                        continue;
                    }
                    Turned::Not(noted) => {
                        self.remember(&desk, ring, &found, noted)?;
                        return Ok(kept);
                    }
                }
            }
            for (name, owners) in disowned {
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                let done = objects.merge::<Secret>(circle.blueprint.namespace, &name, &patch).await;
                done.map_err(KeyringError::Write)?;
                kept.written.push(name);
            }
            for (write, _) in &found.writes {
                kept.written.extend(self.write(&desk, write).await?);
            }
        }
        Ok(kept)
    }

    async fn write(&self, desk: &Desk<'_>, write: &Write) -> Result<Option<String>, KeyringError> {
        let Desk { objects, circle, ring, now } = desk;
        let blueprint = circle.blueprint;
        let signing = |ring| Signing { ring, lifetimes: self.lifetimes, now: *now };
        let owner = |name: &Name| circle.members.iter().find(|(it, _)| it == name);
        let secret = match (write, ring) {
            (Write::Authorities, _) => return self.found(desk).await,
            (Write::Member(_) | Write::Trust(..) | Write::Binding | Write::Words(_), None) => {
                return Ok(None);
            }
            (Write::Member(name), Some(ring)) => {
                let leaves = signing(ring).member(blueprint, name).map_err(KeyringError::Make)?;
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                leaves.secret(blueprint, name, uid)
            }
            (Write::Trust(name, leaves), Some(_)) => {
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                leaves.secret(blueprint, name, uid)
            }
            (Write::Binding, Some(ring)) => {
                let identity = signing(ring).application(blueprint);
                let told = circle.told.clone().unwrap_or_default();
                let identity = Some(identity.map_err(KeyringError::Make)?);
                Binding { words: words(blueprint, &told), identity }.secret(blueprint)
            }
            (Write::Words(binding), Some(_)) => binding.secret(blueprint),
        };
        objects.apply(&secret).await.map_err(KeyringError::Write)?;
        Ok(Some(secret.name_any()))
    }

    /// Makes the authorities. Whoever was faster has made the right ones; they are read in the next round.
    async fn found(&self, desk: &Desk<'_>) -> Result<Option<String>, KeyringError> {
        let Circle { blueprint, asked, .. } = desk.circle;
        let made = mint::authorities(blueprint, self.lifetimes, desk.now);
        let first = Ring::first(made.map_err(KeyringError::Make)?, asked.clone());
        let secret = first.secret(blueprint);
        match desk.objects.create(&secret).await {
            Ok(_) => Ok(Some(secret.name_any())),
            Err(error) if error.class() == Class::Conflict => Ok(None),
            Err(error) => Err(KeyringError::Write(error)),
        }
    }

    fn remember(
        &self,
        desk: &Desk<'_>,
        ring: &Ring,
        found: &Wanted,
        noted: Noted,
    ) -> Result<(), KeyringError> {
        let Desk { circle, now, .. } = *desk;
        let signing = Signing { ring, lifetimes: self.lifetimes, now };
        let Noted { turning, mut lacking } = noted;
        let waits = turning.as_ref().map(|it| &it.waits);
        let look = found.next.into_iter().chain([next_look(waits, now)]).min().unwrap_or(now);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let before = keys.get(circle.blueprint.uid);
        let signer = ring.now.client.certificate.clone();
        let trusted = bundle(&ring.for_clients());
        let still_good = before.filter(|it| {
            now < it.own_due && it.signer == signer && it.credentials.authority == trusted
        });
        let (credentials, own_due) = if let Some(it) = still_good {
            (it.credentials.clone(), it.own_due)
        } else {
            let Identity { pair, ca } = signing.operator().map_err(KeyringError::Make)?;
            let credentials = Credentials {
                authority: bundle(&ca),
                certificate: pair.certificate.pem().into_bytes(),
                key: pair.key.pem().into_bytes(),
            };
            (credentials, due_at(&pair.certificate))
        };
        // What a pod lacks it lacks until its end.
        lacking.extend(before.into_iter().flat_map(|it| it.trust.lacking.iter().cloned()));
        lacking.retain(|pod| circle.seats.iter().any(|it| it.seat.pod == *pod));
        let trust = Trust { lacking, ..Trust::of(Sides::of(circle.blueprint), ring) };
        let right = found.stuck.is_none().then(|| circle.right());
        let stuck = found.stuck.clone();
        let fresh = Keys { credentials, signer, own_due, right, look, stuck, trust, turning };
        keys.insert(circle.blueprint.uid.to_owned(), fresh);
        Ok(())
    }
}

impl Circle<'_> {
    fn right(&self) -> Right {
        Right {
            members: self.members.iter().cloned().collect(),
            told: self.told.clone(),
            scheme: self.blueprint.told(),
            is_owned: self.blueprint.owner().is_some(),
            asked: self.asked.clone(),
            is_paused: self.blueprint.spec.paused,
        }
    }
}
