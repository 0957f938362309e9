//! The Secrets of a cluster as they were read, and what of them is not as it should be.
//! Comes in: whose Secrets there should be. Goes out: what is in them, whose they are, and who owns them.
//! May touch: `ports`. A Secret that could not be read is an error, and never a missing one.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::Circle;
use crate::api::names;
use crate::etcd_cluster::identity::binding::Binding;
use crate::etcd_cluster::identity::footing::Footings;
use crate::etcd_cluster::identity::keys::Broken;
use crate::etcd_cluster::identity::leaves::Leaves;
use crate::etcd_cluster::identity::offer::Offers;
use crate::etcd_cluster::identity::ring::Ring;
use crate::etcd_cluster::identity::wanted::Looked;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::seen::{Name, Reading};
use crate::ports::call::CallError;
use crate::ports::objects::Objects;

type Owners = Option<Vec<OwnerReference>>;

/// The Secrets of a cluster, as they were read.
pub(super) struct Secrets {
    pub(super) authorities: Option<Secret>,
    members: Vec<(Name, Option<Secret>)>,
    binding: Option<Secret>,
}

impl Secrets {
    pub(super) async fn read(objects: &Objects, circle: &Circle<'_>) -> Result<Self, CallError> {
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

    /// All that is in them, beside what each side is offered.
    pub(super) fn looked(&self, circle: &Circle<'_>, offers: Offers) -> Result<Looked, Broken> {
        let footings = self.authorities.as_ref().map(Footings::read).transpose()?;
        let leaves = |it: &Secret| -> Result<Leaves, Broken> { Leaves::read(it) };
        let member = |(name, secret): &(Name, Option<Secret>)| {
            (name.clone(), Reading::Known(secret.as_ref().map(leaves)))
        };
        Ok(Looked {
            ring: Reading::Known(self.authorities.as_ref().map(Ring::read)),
            footings: footings.unwrap_or_else(Footings::plain),
            offers,
            members: self.members.iter().map(member).collect(),
            // Unknown is not written.
            binding: match &circle.told {
                Some(_) => Reading::Known(self.binding.as_ref().map(Binding::read)),
                None => Reading::Unknown,
            },
        })
    }

    /// A Secret with one of our names that does not say that it is this cluster's.
    pub(super) fn of_somebody_else(&self, circle: &Circle<'_>) -> Option<String> {
        let members = self.members.iter().filter_map(|(_, secret)| secret.as_ref());
        let mut all = members.chain(&self.authorities).chain(&self.binding);
        let ours = |it: &Secret| {
            it.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str)
                == Some(circle.blueprint.uid)
        };
        all.find(|it| !ours(it)).map(ResourceExt::name_any)
    }

    /// The Secrets that would go with somebody else than they should, with whom they should go with.
    pub(super) fn with_another_owner(&self, circle: &Circle<'_>) -> Vec<(String, Owners)> {
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
