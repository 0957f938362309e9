//! The Secrets of clusters: read, signed, written, and remembered as long as this replica leads.
//! Comes in: a blueprint, and who the members are. Goes out: credentials for the operator itself, and what became of
//! the Secrets. May touch: `clients`. Secrets are not watched, because that would need a right to all of
//! them: they are looked at whenever something is to be done, and when a certificate is due. Here authorities change
//! their places, too: it is one write of the Secret that they are in.

mod ca_rotation;
mod cache;
mod probe;
mod secrets;
mod sources;
mod trust_change;

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;

use super::ca_set::{CaSet, RotationStep};
use super::client_secret::{ClientSecret, fields};
use super::issue::{self, Issuer};
use super::lifetimes::Lifetimes;
use super::readiness::PodTrust;
use super::secrets_plan::{CertificateError, SecretWrite, SecretsPlan, SecretsState, plan_secrets};
use super::source::SourceStates;
use super::trust_bundle::Side;
use super::trust_state::{TrustStates, TrustStep};
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::etcd::MemberEndpoint;
use crate::clients::objects::{ObjectError, Objects};
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::{MemberName, Reading};
use crate::pki::issue::IssueError;
use ca_rotation::RotationOutcome;
use cache::CachedCredentials;
use secrets::Secrets;
use trust_change::TrustChangeOutcome;

/// One write leads to another at most so often: owners, authorities, where certificates come from, whom to trust and what
/// they sign, and since when.
const MAX_ROUNDS: usize = 10;

/// Why the Secrets are not as they should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateManagerError {
    /// A Secret could not be read.
    #[error(transparent)]
    Read(ApiError),
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
    Make(#[source] IssueError),
}

/// What became of the Secrets of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateOutcome {
    /// Which were written.
    pub(crate) written: Vec<String>,
    /// Why nothing can be signed.
    pub(crate) stuck: Option<CertificateError>,
    /// How authorities changed their places.
    pub(crate) turns: Vec<RotationStep>,
    /// How sides came to rest on others.
    pub(crate) moves: Vec<TrustStep>,
}

impl CertificateOutcome {
    fn stuck(self, why: CertificateError) -> Self {
        Self { stuck: Some(why), ..self }
    }
}

/// A pod, and where its member can be called.
#[derive(Clone, Debug)]
pub(crate) struct PodEndpoint {
    pub(crate) seat: PodTrust,
    /// Nowhere if it has no address.
    pub(crate) place: Option<MemberEndpoint>,
    /// Whether certificates are shown in it: to clients, and to members.
    pub(crate) uses: [bool; 2],
}

/// Whose Secrets there should be.
pub(crate) struct CertificateScope<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// The members, each with the uid of its EtcdMember.
    pub(crate) members: Vec<(MemberName, String)>,
    /// Those that applications are told of; nothing before the cluster was formed: until then nobody must
    /// be able to write to it.
    pub(crate) told: Option<Vec<MemberName>>,
    /// Every pod.
    pub(crate) seats: Vec<PodEndpoint>,
    /// Whether etcd is known to ask nobody who they are.
    pub(crate) asks_nobody: bool,
    /// The word with which the user asks for new authorities.
    pub(crate) asked: Option<String>,
}

/// What is needed to write a Secret.
struct Ctx<'a> {
    objects: &'a Objects,
    circle: &'a CertificateScope<'a>,
    ring: Option<&'a CaSet>,
    footings: &'a TrustStates,
    offers: &'a SourceStates,
    now: Timestamp,
}

/// The keys of every cluster, by the uid of its EtcdCluster.
pub(crate) struct CertificateManager {
    keys: Mutex<BTreeMap<String, CachedCredentials>>,
    lifetimes: Lifetimes,
}

impl CertificateManager {
    /// Nothing is known yet.
    pub(crate) const fn new(lifetimes: Lifetimes) -> Self {
        Self { keys: Mutex::new(BTreeMap::new()), lifetimes }
    }

    /// Looks at the Secrets, and writes what is missing or due.
    pub(crate) async fn reconcile(
        &self,
        objects: &Objects,
        circle: &CertificateScope<'_>,
        now: Timestamp,
    ) -> Result<CertificateOutcome, CertificateManagerError> {
        let mut kept = CertificateOutcome::default();
        for _ in 0..MAX_ROUNDS {
            let secrets =
                Secrets::read(objects, circle).await.map_err(CertificateManagerError::Read)?;
            if let Some(taken) = secrets.of_somebody_else(circle) {
                return Err(CertificateManagerError::Taken(taken));
            }
            let offers = self.offers(objects, circle, now).await?;
            let looked = match secrets.looked(circle, offers) {
                Ok(looked) => looked,
                Err(broken) => return Ok(kept.stuck(CertificateError::InvalidSecret(broken))),
            };
            if let Some(stuck) = circle.unfounded(&looked.offers) {
                return Ok(kept.stuck(stuck));
            }
            let told = circle.told.clone().unwrap_or_default();
            let found = plan_secrets(circle.blueprint, &looked, &told, self.lifetimes, now);
            let ring = match &looked.ring {
                Reading::Known(Some(Ok(ring))) => Some(ring),
                Reading::Known(Some(Err(_)) | None) | Reading::Unknown => None,
            };
            let disowned = secrets.with_another_owner(circle);
            kept.stuck.clone_from(&found.stuck);
            let SecretsState { footings, offers, .. } = &looked;
            let desk = Ctx { objects, circle, ring, footings, offers, now };
            if found.writes.is_empty() && disowned.is_empty() {
                if self.comes_to_rest(&desk, &secrets, &found, &mut kept).await? {
                    return Ok(kept);
                }
                continue;
            }
            for (name, owners) in disowned {
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                let done = objects.merge::<Secret>(circle.blueprint.namespace, &name, &patch).await;
                done.map_err(CertificateManagerError::Write)?;
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
        desk: &Ctx<'_>,
        secrets: &Secrets,
        found: &SecretsPlan,
        kept: &mut CertificateOutcome,
    ) -> Result<bool, CertificateManagerError> {
        let (Some(ring), Some(held)) = (desk.ring, &secrets.authorities) else { return Ok(true) };
        let mut noted = match self.turn(desk, ring, held, found).await? {
            RotationOutcome::Applied(turn) => {
                kept.turns.extend(turn);
                return Ok(false);
            }
            RotationOutcome::Waiting(noted) => noted,
        };
        match self.change(desk, ring, held, found).await? {
            TrustChangeOutcome::Applied(moves) => {
                kept.moves.extend(moves);
                Ok(false)
            }
            TrustChangeOutcome::Waiting(changing, lacking) => {
                noted.lacking.extend(lacking);
                self.store(desk, ring, found, (noted, changing))?;
                Ok(true)
            }
        }
    }

    async fn write(
        &self,
        desk: &Ctx<'_>,
        write: &SecretWrite,
    ) -> Result<Option<String>, CertificateManagerError> {
        let Ctx { objects, circle, ring, footings, offers: _, now } = desk;
        let blueprint = circle.blueprint;
        let signing = |ring| Issuer { ring, lifetimes: self.lifetimes, now: *now };
        let owner = |name: &MemberName| circle.members.iter().find(|(it, _)| it == name);
        let secret = match (write, ring) {
            (SecretWrite::CreateCa, _) => return self.create_ca(desk).await,
            (
                SecretWrite::Member(..)
                | SecretWrite::MemberBundle(..)
                | SecretWrite::ClientCert
                | SecretWrite::ClientFields(_),
                None,
            ) => {
                return Ok(None);
            }
            (SecretWrite::Member(name, draft), Some(ring)) => {
                let leaves = signing(ring).member(blueprint, name, draft);
                let leaves = leaves.map_err(CertificateManagerError::Make)?;
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                leaves.secret(blueprint, name, uid)
            }
            (SecretWrite::MemberBundle(name, leaves), Some(_)) => {
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                leaves.secret(blueprint, name, uid)
            }
            (SecretWrite::ClientCert, Some(ring)) => {
                let pair =
                    signing(ring).application(blueprint).map_err(CertificateManagerError::Make)?;
                let told = circle.told.clone().unwrap_or_default();
                let ca = footings.client.told.list(ring, Side::Client);
                let words = fields(blueprint, &told);
                ClientSecret { words, pair: Some(pair), ca }.secret(blueprint)
            }
            (SecretWrite::ClientFields(binding), Some(_)) => binding.secret(blueprint),
        };
        objects.apply(&secret).await.map_err(CertificateManagerError::Write)?;
        Ok(Some(secret.name_any()))
    }

    /// Makes the authorities. Whoever was faster has made the right ones; they are read in the next round.
    async fn create_ca(&self, desk: &Ctx<'_>) -> Result<Option<String>, CertificateManagerError> {
        let CertificateScope { blueprint, asked, .. } = desk.circle;
        let made = issue::ca_pair(blueprint, self.lifetimes, desk.now);
        let first = CaSet::first(made.map_err(CertificateManagerError::Make)?, asked.clone());
        let secret = first.secret(blueprint);
        match desk.objects.create(&secret).await {
            Ok(_) => Ok(Some(secret.name_any())),
            Err(error) if error.class() == ErrorClass::Conflict => Ok(None),
            Err(error) => Err(CertificateManagerError::Write(error)),
        }
    }
}

impl Ctx<'_> {
    /// Whether both sides rest on what they shall rest on. Where that is not known they must be at rest all the same.
    fn is_settled(&self) -> bool {
        Side::BOTH.into_iter().all(|side| {
            let footing = self.footings.of(side);
            let wish = self.offers.of(side).wish.as_ref();
            wish.map_or_else(|| footing.is_at_rest(), |wish| footing.rests_on(wish))
        })
    }
}

impl CertificateScope<'_> {
    /// Every pod, and the name of every member.
    fn company(&self) -> (Vec<PodTrust>, Vec<MemberName>) {
        let seats = self.seats.iter().map(|it| it.seat.clone()).collect();
        (seats, self.members.iter().map(|(name, _)| name.clone()).collect())
    }

    /// Whether anybody may be showing or taking certificates on a side. Who has no pod may be about to get one.
    fn is_used(&self, side: Side) -> bool {
        let has_seat = |name: &MemberName| self.seats.iter().any(|it| it.seat.member == *name);
        let uses = |it: &PodEndpoint| match (side, it.uses) {
            (Side::Client, [client, _]) => client,
            (Side::Peer, [_, peer]) => peer,
        };
        !self.members.is_empty()
            && (self.members.iter().any(|(name, _)| !has_seat(name)) || self.seats.iter().any(uses))
    }

    /// Why a cluster without members cannot be founded: what it shall rest on is not there.
    fn unfounded(&self, offers: &SourceStates) -> Option<CertificateError> {
        let flaw = offers.flaw().filter(|it| it.is_fatal() && self.members.is_empty());
        flaw.filter(|_| self.told.is_none()).cloned().map(CertificateError::External)
    }
}
