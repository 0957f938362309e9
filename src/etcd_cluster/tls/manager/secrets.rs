//! The Secrets of a cluster as read, with their drift.
//! Guarantees: a Secret that could not be read is an error and never a missing Secret.

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

/// The Secrets of a cluster, as read.
pub(super) struct Secrets {
    pub(super) ca: Option<Secret>,
    members: Vec<(MemberName, Option<Secret>)>,
    client: Option<Secret>,
}

impl Secrets {
    pub(super) async fn read(
        objects: &Objects,
        scope: &CertificateScope<'_>,
    ) -> Result<Self, ApiError> {
        let Blueprint { name, namespace, .. } = *scope.blueprint;
        let mut members = Vec::new();
        for (member, _) in &scope.members {
            let secret = objects.get(namespace, &names::member_secret(&member.0)).await?;
            members.push((member.clone(), secret));
        }
        let client = match &scope.published_members {
            Some(_) => objects.get(namespace, &names::client_secret(name)).await?,
            None => None,
        };
        let ca = objects.get(namespace, &names::ca_secret(name)).await?;
        Ok(Self { ca, members, client })
    }

    /// Parses all Secrets.
    pub(super) fn parse(
        &self,
        scope: &CertificateScope<'_>,
        sources: SourceStates,
    ) -> Result<SecretsState, InvalidSecret> {
        let trust_states = self.ca.as_ref().map(TrustStates::read).transpose()?;
        let member = |(name, secret): &(MemberName, Option<Secret>)| {
            (name.clone(), Reading::Known(secret.as_ref().map(MemberCertificates::read)))
        };
        Ok(SecretsState {
            ca_set: Reading::Known(self.ca.as_ref().map(CaSet::read)),
            trust_states: trust_states.unwrap_or_else(TrustStates::managed),
            sources,
            members: self.members.iter().map(member).collect(),
            // An unknown Secret is not written.
            client_secret: match &scope.published_members {
                Some(_) => Reading::Known(self.client.as_ref().map(ClientSecret::read)),
                None => Reading::Unknown,
            },
        })
    }

    /// The name of a Secret that exists without the label of this cluster.
    pub(super) fn name_conflict(&self, scope: &CertificateScope<'_>) -> Option<String> {
        let members = self.members.iter().filter_map(|(_, secret)| secret.as_ref());
        let mut all = members.chain(&self.ca).chain(&self.client);
        let is_owned = |secret: &Secret| {
            secret.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str)
                == Some(scope.blueprint.uid)
        };
        all.find(|secret| !is_owned(secret)).map(ResourceExt::name_any)
    }

    /// The Secrets whose owner references differ, with the desired ones.
    pub(super) fn owner_drift(&self, scope: &CertificateScope<'_>) -> Vec<(String, Owners)> {
        let blueprint = scope.blueprint;
        let cluster = blueprint.owner().map(|owner| vec![owner]);
        let shared = self.ca.iter().chain(&self.client);
        let shared = shared.map(|secret| (secret, cluster.clone()));
        let members = self.members.iter().filter_map(|(name, secret)| {
            let (_, uid) = scope.members.iter().find(|(member, _)| member == name)?;
            let metadata = blueprint.member_metadata(name.0.as_str(), name, uid);
            Some((secret.as_ref()?, metadata.owner_references))
        });
        let uids = |owners: &[OwnerReference]| -> Vec<String> {
            owners.iter().map(|owner| owner.uid.clone()).collect()
        };
        shared
            .chain(members)
            .filter(|(secret, owners)| {
                uids(secret.owner_references()) != uids(owners.as_deref().unwrap_or_default())
            })
            .map(|(secret, owners)| (secret.name_any(), owners))
            .collect()
    }
}
