//! The Secrets of clusters: read, signed, written, and remembered as long as this replica leads.
//! Comes in: a blueprint, and who the members are. Goes out: credentials for the operator itself, and what became of
//! the Secrets. May touch: `ports`. Secrets are not watched, because that would need a right to all of
//! them: they are looked at whenever something is to be done, and when a certificate is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::json;

use super::identity::authorities::Authorities;
use super::identity::binding::{Binding, Identity, words};
use super::identity::keys::Broken;
use super::identity::leaves::Leaves;
use super::identity::lifetimes::{Lifetimes, due_at};
use super::identity::mint::{self, Signing};
use super::identity::wanted::{Looked, Stuck, Wanted, Write, wanted};
use super::render::Blueprint;
use super::seen::{Name, Reading};
use crate::api::names;
use crate::pki::mint::Unmade;
use crate::ports::call::{CallError, Class};
use crate::ports::etcd::Credentials;
use crate::ports::objects::{ObjectError, Objects};

/// A Secret that somebody took away is missed after this time at the latest.
const LOOK_AGAIN: Duration = Duration::from_hours(1);
/// One write leads to another at most so often: authorities, then what they sign.
const MOST_ROUNDS: usize = 3;

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
}

/// Whose Secrets there should be.
pub(crate) struct Circle<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// The members, each with the uid of its EtcdMember.
    pub(crate) members: Vec<(Name, String)>,
    /// Those that applications are told of; nothing before the cluster was formed: until then nobody must
    /// be able to write to it.
    pub(crate) told: Option<Vec<Name>>,
}

type Owners = Option<Vec<OwnerReference>>;

/// What is needed to write a Secret.
struct Desk<'a> {
    objects: &'a Objects,
    circle: &'a Circle<'a>,
    authorities: Option<&'a Authorities>,
    now: Timestamp,
}

/// The members and their uids, those that applications are told of, and whether the cluster owns its Secrets.
type Right = (BTreeSet<(Name, String)>, Option<Vec<Name>>, bool);

/// What is remembered of one cluster.
#[derive(Clone)]
struct Keys {
    credentials: Credentials,
    /// When the operator's own certificate is due.
    own_due: Timestamp,
    /// The members whose Secrets were seen to be right, and those that applications are told of.
    right: Option<Right>,
    /// When to look at them again.
    look: Timestamp,
    stuck: Option<Stuck>,
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

    /// What the operator shows to the members of a cluster, if that is known.
    pub(crate) fn credentials(&self, uid: &str, now: Timestamp) -> Option<Credentials> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(uid).filter(|it| now < it.own_due).map(|it| it.credentials.clone())
    }

    /// Why nothing can be signed for a cluster.
    pub(crate) fn stuck(&self, uid: &str) -> Option<Stuck> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(uid).and_then(|it| it.stuck.clone())
    }

    /// Forgets a cluster that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Whether the Secrets must be looked at.
    pub(crate) fn must_look(&self, circle: &Circle<'_>, now: Timestamp) -> bool {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let known = keys.get(circle.blueprint.uid);
        known.is_none_or(|it| {
            now >= it.look || now >= it.own_due || it.right.as_ref() != Some(&circle.right())
        })
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
            let authorities = match &looked.authorities {
                Reading::Known(Some(Ok(authorities))) => Some(authorities),
                Reading::Known(Some(Err(_)) | None) | Reading::Unknown => None,
            };
            let disowned = secrets.with_another_owner(circle);
            kept.stuck.clone_from(&found.stuck);
            if found.writes.is_empty() && disowned.is_empty() {
                if let Some(authorities) = authorities {
                    self.remember(circle, authorities, &found, now)?;
                }
                return Ok(kept);
            }
            for (name, owners) in disowned {
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                let done = objects.merge::<Secret>(circle.blueprint.namespace, &name, &patch).await;
                done.map_err(KeyringError::Write)?;
                kept.written.push(name);
            }
            let desk = Desk { objects, circle, authorities, now };
            for (write, _) in &found.writes {
                kept.written.extend(self.write(&desk, write).await?);
            }
        }
        Ok(kept)
    }

    async fn write(&self, desk: &Desk<'_>, write: &Write) -> Result<Option<String>, KeyringError> {
        let Desk { objects, circle, authorities, now } = desk;
        let blueprint = circle.blueprint;
        let signing = |authorities| Signing { authorities, lifetimes: self.lifetimes, now: *now };
        let secret = match (write, authorities) {
            (Write::Authorities, _) => return self.found(desk).await,
            (Write::Member(_) | Write::Binding | Write::Words(_), None) => return Ok(None),
            (Write::Member(name), Some(authorities)) => {
                let leaves =
                    signing(authorities).member(blueprint, name).map_err(KeyringError::Make)?;
                match circle.members.iter().find(|(it, _)| it == name) {
                    Some((_, uid)) => leaves.secret(blueprint, name, uid),
                    None => return Ok(None),
                }
            }
            (Write::Binding, Some(authorities)) => {
                let identity = signing(authorities).application(blueprint);
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
        let blueprint = desk.circle.blueprint;
        let made = mint::authorities(blueprint, self.lifetimes, desk.now);
        let secret = made.map_err(KeyringError::Make)?.secret(blueprint);
        match desk.objects.create(&secret).await {
            Ok(_) => Ok(Some(secret.name_any())),
            Err(error) if error.class() == Class::Conflict => Ok(None),
            Err(error) => Err(KeyringError::Write(error)),
        }
    }

    fn remember(
        &self,
        circle: &Circle<'_>,
        authorities: &Authorities,
        found: &Wanted,
        now: Timestamp,
    ) -> Result<(), KeyringError> {
        let signing = Signing { authorities, lifetimes: self.lifetimes, now };
        let later = SignedDuration::try_from(LOOK_AGAIN).unwrap_or(SignedDuration::ZERO);
        let latest = now.saturating_add(later).unwrap_or(Timestamp::MAX);
        let look = found.next.map_or(latest, |next| next.min(latest));
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let before = keys.get(circle.blueprint.uid);
        let still_good = before.filter(|it| {
            now < it.own_due
                && it.credentials.authority == authorities.client.certificate.pem().into_bytes()
        });
        let (credentials, own_due) = if let Some(it) = still_good {
            (it.credentials.clone(), it.own_due)
        } else {
            let Identity { pair, ca } = signing.operator().map_err(KeyringError::Make)?;
            let credentials = Credentials {
                authority: ca.pem().into_bytes(),
                certificate: pair.certificate.pem().into_bytes(),
                key: pair.key.pem().into_bytes(),
            };
            (credentials, due_at(&pair.certificate))
        };
        let right = found.stuck.is_none().then(|| circle.right());
        let fresh = Keys { credentials, own_due, right, look, stuck: found.stuck.clone() };
        keys.insert(circle.blueprint.uid.to_owned(), fresh);
        Ok(())
    }
}

impl Circle<'_> {
    fn right(&self) -> Right {
        let members = self.members.iter().cloned().collect();
        (members, self.told.clone(), self.blueprint.owner().is_some())
    }
}

/// The Secrets of a cluster, as they were read.
struct Secrets {
    authorities: Option<Secret>,
    members: Vec<(Name, Option<Secret>)>,
    binding: Option<Secret>,
}

impl Secrets {
    async fn read(objects: &Objects, circle: &Circle<'_>) -> Result<Self, CallError> {
        let Blueprint { name, namespace, .. } = *circle.blueprint;
        let mut members = Vec::new();
        for (member, _) in &circle.members {
            let secret = objects.get(namespace, &names::member_secret(&member.0)).await?;
            members.push((member.clone(), secret));
        }
        let binding = match &circle.told {
            Some(_) => objects.get(namespace, &names::client_secret(name)).await?,
            None => None,
        };
        let authorities = objects.get(namespace, &names::authority_secret(name)).await?;
        Ok(Self { authorities, members, binding })
    }

    fn looked(&self, circle: &Circle<'_>) -> Looked {
        let leaves = |it: &Secret| -> Result<Leaves, Broken> { Leaves::read(it) };
        let member = |(name, secret): &(Name, Option<Secret>)| {
            (name.clone(), Reading::Known(secret.as_ref().map(leaves)))
        };
        Looked {
            authorities: Reading::Known(self.authorities.as_ref().map(Authorities::read)),
            members: self.members.iter().map(member).collect(),
            // Unknown is not written.
            binding: match &circle.told {
                Some(_) => Reading::Known(self.binding.as_ref().map(Binding::read)),
                None => Reading::Unknown,
            },
        }
    }

    /// A Secret with one of our names that does not say that it is this cluster's.
    fn of_somebody_else(&self, circle: &Circle<'_>) -> Option<String> {
        let members = self.members.iter().filter_map(|(_, secret)| secret.as_ref());
        let mut all = members.chain(&self.authorities).chain(&self.binding);
        let ours = |it: &Secret| {
            it.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str)
                == Some(circle.blueprint.uid)
        };
        all.find(|it| !ours(it)).map(ResourceExt::name_any)
    }

    /// The Secrets that would go with somebody else than they should, with whom they should go with.
    fn with_another_owner(&self, circle: &Circle<'_>) -> Vec<(String, Owners)> {
        let blueprint = circle.blueprint;
        let of_cluster = blueprint.owner().map(|it| vec![it]);
        let both = self.authorities.iter().chain(&self.binding);
        let both = both.map(|it| (it, of_cluster.clone()));
        let members = self.members.iter().filter_map(|(name, secret)| {
            let (_, uid) = circle.members.iter().find(|(it, _)| it == name)?;
            let metadata = blueprint.member_metadata(name.0.as_str(), name, uid);
            Some((secret.as_ref()?, metadata.owner_references))
        });
        let uids = |owners: &[OwnerReference]| -> Vec<String> {
            owners.iter().map(|it| it.uid.clone()).collect()
        };
        both.chain(members)
            .filter(|(it, owners)| {
                uids(it.owner_references()) != uids(owners.as_deref().unwrap_or_default())
            })
            .map(|(it, owners)| (it.name_any(), owners))
            .collect()
    }
}
