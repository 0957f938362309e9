//! The Secrets of a cluster as they were read, and what of them is not as it should be.
//! Comes in: whose Secrets there should be. Goes out: what is in them, whose they are, and who owns them.
//! May touch: `clients`. A Secret that could not be read is an error, and never a missing one.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::CertificateScope;
use crate::api::names;
use crate::clients::error::ApiError;
use crate::clients::objects::Objects;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::{MemberName, Reading};
use crate::etcd_cluster::tls::ca_set::CaSet;
use crate::etcd_cluster::tls::client_secret::ClientSecret;
use crate::etcd_cluster::tls::member_certs::MemberCertificates;
use crate::etcd_cluster::tls::secret_keys::InvalidSecret;
use crate::etcd_cluster::tls::secrets_plan::SecretsState;
use crate::etcd_cluster::tls::source::SourceStates;
use crate::etcd_cluster::tls::trust_state::TrustStates;

type Owners = Option<Vec<OwnerReference>>;

/// The Secrets of a cluster, as they were read.
pub(super) struct Secrets {
    pub(super) authorities: Option<Secret>,
    members: Vec<(MemberName, Option<Secret>)>,
    binding: Option<Secret>,
}

impl Secrets {
    pub(super) async fn read(
        objects: &Objects,
        circle: &CertificateScope<'_>,
    ) -> Result<Self, ApiError> {
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
        let authorities = objects.get(namespace, &names::ca_secret(name)).await?;
        Ok(Self { authorities, members, binding })
    }

    /// All that is in them, beside what each side is offered.
    pub(super) fn looked(
        &self,
        circle: &CertificateScope<'_>,
        offers: SourceStates,
    ) -> Result<SecretsState, InvalidSecret> {
        let footings = self.authorities.as_ref().map(TrustStates::read).transpose()?;
        let leaves = |it: &Secret| -> Result<MemberCertificates, InvalidSecret> {
            MemberCertificates::read(it)
        };
        let member = |(name, secret): &(MemberName, Option<Secret>)| {
            (name.clone(), Reading::Known(secret.as_ref().map(leaves)))
        };
        Ok(SecretsState {
            ring: Reading::Known(self.authorities.as_ref().map(CaSet::read)),
            footings: footings.unwrap_or_else(TrustStates::managed),
            offers,
            members: self.members.iter().map(member).collect(),
            // Unknown is not written.
            binding: match &circle.told {
                Some(_) => Reading::Known(self.binding.as_ref().map(ClientSecret::read)),
                None => Reading::Unknown,
            },
        })
    }

    /// A Secret with one of our names that does not say that it is this cluster's.
    pub(super) fn of_somebody_else(&self, circle: &CertificateScope<'_>) -> Option<String> {
        let members = self.members.iter().filter_map(|(_, secret)| secret.as_ref());
        let mut all = members.chain(&self.authorities).chain(&self.binding);
        let ours = |it: &Secret| {
            it.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str)
                == Some(circle.blueprint.uid)
        };
        all.find(|it| !ours(it)).map(ResourceExt::name_any)
    }

    /// The Secrets that would go with somebody else than they should, with whom they should go with.
    pub(super) fn with_another_owner(
        &self,
        circle: &CertificateScope<'_>,
    ) -> Vec<(String, Owners)> {
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
