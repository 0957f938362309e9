//! The Secrets of clusters: read, signed, written, and remembered as long as this replica leads.
//! Comes in: a blueprint, and who the members are. Goes out: credentials for the operator itself, and what became of
//! the Secrets. May touch: `ports`. Secrets are not watched, because that would need a right to all of
//! them: they are looked at whenever something is to be done, and when a certificate is due. Here authorities change
//! their places, too: it is one write of the Secret that they are in.

mod change;
mod memory;
mod prove;
mod secrets;
mod sources;
mod turn;

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;

use super::identity::binding::{Binding, words};
use super::identity::company::Seat;
use super::identity::footing::{Footings, Move};
use super::identity::lifetimes::Lifetimes;
use super::identity::mint::{self, Signing};
use super::identity::offer::Offers;
use super::identity::ring::{Ring, Turn};
use super::identity::roots::Side;
use super::identity::wanted::{Looked, Stuck, Wanted, Write, wanted};
use super::render::Blueprint;
use super::seen::{Name, Reading};
use crate::pki::mint::Unmade;
use crate::ports::call::{CallError, Class};
use crate::ports::etcd::Place;
use crate::ports::objects::{ObjectError, Objects};
use change::Changed;
use memory::Keys;
use secrets::Secrets;
use turn::Turned;

/// One write leads to another at most so often: owners, authorities, where certificates come from, whom to trust and what
/// they sign, and since when.
const MOST_ROUNDS: usize = 10;

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
    /// How sides came to rest on others.
    pub(crate) moves: Vec<Move>,
}

impl Kept {
    fn stuck(self, why: Stuck) -> Self {
        Self { stuck: Some(why), ..self }
    }
}

/// A pod, and where its member can be called.
#[derive(Clone, Debug)]
pub(crate) struct Seated {
    pub(crate) seat: Seat,
    /// Nowhere if it has no address.
    pub(crate) place: Option<Place>,
    /// Whether certificates are shown in it: to clients, and to members.
    pub(crate) uses: [bool; 2],
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
    /// Whether etcd is known to ask nobody who they are.
    pub(crate) asks_nobody: bool,
    /// The word with which the user asks for new authorities.
    pub(crate) asked: Option<String>,
}

/// What is needed to write a Secret.
struct Desk<'a> {
    objects: &'a Objects,
    circle: &'a Circle<'a>,
    ring: Option<&'a Ring>,
    footings: &'a Footings,
    offers: &'a Offers,
    now: Timestamp,
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
            let offers = self.offers(objects, circle, now).await?;
            let looked = match secrets.looked(circle, offers) {
                Ok(looked) => looked,
                Err(broken) => return Ok(kept.stuck(Stuck::Broken(broken))),
            };
            if let Some(stuck) = circle.unfounded(&looked.offers) {
                return Ok(kept.stuck(stuck));
            }
            let told = circle.told.clone().unwrap_or_default();
            let found = wanted(circle.blueprint, &looked, &told, self.lifetimes, now);
            let ring = match &looked.ring {
                Reading::Known(Some(Ok(ring))) => Some(ring),
                Reading::Known(Some(Err(_)) | None) | Reading::Unknown => None,
            };
            let disowned = secrets.with_another_owner(circle);
            kept.stuck.clone_from(&found.stuck);
            let Looked { footings, offers, .. } = &looked;
            let desk = Desk { objects, circle, ring, footings, offers, now };
            if found.writes.is_empty() && disowned.is_empty() {
                if self.comes_to_rest(&desk, &secrets, &found, &mut kept).await? {
                    return Ok(kept);
                }
                continue;
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

    /// Every Secret is as it should be: lets authorities change their places, if it is time. Answers whether there is nothing
    /// to look at again.
    async fn comes_to_rest(
        &self,
        desk: &Desk<'_>,
        secrets: &Secrets,
        found: &Wanted,
        kept: &mut Kept,
    ) -> Result<bool, KeyringError> {
        let (Some(ring), Some(held)) = (desk.ring, &secrets.authorities) else { return Ok(true) };
        let mut noted = match self.turn(desk, ring, held, found).await? {
            Turned::Made(turn) => {
                kept.turns.extend(turn);
                return Ok(false);
            }
            Turned::Not(noted) => noted,
        };
        match self.change(desk, ring, held, found).await? {
            Changed::Made(moves) => {
                kept.moves.extend(moves);
                Ok(false)
            }
            Changed::Not(changing, lacking) => {
                noted.lacking.extend(lacking);
                self.remember(desk, ring, found, (noted, changing))?;
                Ok(true)
            }
        }
    }

    async fn write(&self, desk: &Desk<'_>, write: &Write) -> Result<Option<String>, KeyringError> {
        let Desk { objects, circle, ring, footings, offers: _, now } = desk;
        let blueprint = circle.blueprint;
        let signing = |ring| Signing { ring, lifetimes: self.lifetimes, now: *now };
        let owner = |name: &Name| circle.members.iter().find(|(it, _)| it == name);
        let secret = match (write, ring) {
            (Write::Authorities, _) => return self.found(desk).await,
            (Write::Member(..) | Write::Trust(..) | Write::Binding | Write::Words(_), None) => {
                return Ok(None);
            }
            (Write::Member(name, draft), Some(ring)) => {
                let leaves = signing(ring).member(blueprint, name, draft);
                let leaves = leaves.map_err(KeyringError::Make)?;
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                leaves.secret(blueprint, name, uid)
            }
            (Write::Trust(name, leaves), Some(_)) => {
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                leaves.secret(blueprint, name, uid)
            }
            (Write::Binding, Some(ring)) => {
                let pair = signing(ring).application(blueprint).map_err(KeyringError::Make)?;
                let told = circle.told.clone().unwrap_or_default();
                let ca = footings.client.told.list(ring, Side::Client);
                let words = words(blueprint, &told);
                Binding { words, pair: Some(pair), ca }.secret(blueprint)
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
}

impl Desk<'_> {
    /// Whether both sides rest on what they shall rest on. Where that is not known they must be at rest all the same.
    fn is_settled(&self) -> bool {
        Side::BOTH.into_iter().all(|side| {
            let footing = self.footings.of(side);
            let wish = self.offers.of(side).wish.as_ref();
            wish.map_or_else(|| footing.is_at_rest(), |wish| footing.rests_on(wish))
        })
    }
}

impl Circle<'_> {
    /// Every pod, and the name of every member.
    fn company(&self) -> (Vec<Seat>, Vec<Name>) {
        let seats = self.seats.iter().map(|it| it.seat.clone()).collect();
        (seats, self.members.iter().map(|(name, _)| name.clone()).collect())
    }

    /// Whether anybody may be showing or taking certificates on a side. Who has no pod may be about to get one.
    fn is_used(&self, side: Side) -> bool {
        let has_seat = |name: &Name| self.seats.iter().any(|it| it.seat.member == *name);
        let uses = |it: &Seated| match (side, it.uses) {
            (Side::Client, [client, _]) => client,
            (Side::Peer, [_, peer]) => peer,
        };
        !self.members.is_empty()
            && (self.members.iter().any(|(name, _)| !has_seat(name)) || self.seats.iter().any(uses))
    }

    /// Why a cluster without members cannot be founded: what it shall rest on is not there.
    fn unfounded(&self, offers: &Offers) -> Option<Stuck> {
        let flaw = offers.flaw().filter(|it| it.stops() && self.members.is_empty());
        flaw.filter(|_| self.told.is_none()).cloned().map(Stuck::Given)
    }
}
