//! Reads, issues and writes the Secrets of clusters, applies steps of CA rotations and trust
//! changes, and caches the operator's credentials while this replica leads.
//! Secrets are not watched, because that needs permission for all of them: they are read before any
//! write, and when a certificate is due.

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

/// The most rounds of one reconciliation, as one write leads to the next: owners, CAs, sources,
/// trust bundles, certificates, start of the overlap.
const MAX_ROUNDS: usize = 10;

/// Why the Secrets could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateManagerError {
    #[error(transparent)]
    Read(ApiError),
    #[error(transparent)]
    Write(ObjectError),
    /// An object with one of the cluster's names is not owned by the cluster.
    #[error(
        "Secret \"{0}\" exists and is not owned by this EtcdCluster; delete it or rename the \
         cluster"
    )]
    NameConflict(String),
    #[error("failed to issue the certificates of the cluster")]
    Issue(#[source] IssueError),
}

/// The result of reconciling the Secrets of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateOutcome {
    /// The names of the written Secrets.
    pub(crate) written: Vec<String>,
    /// Why no certificate can be issued.
    pub(crate) error: Option<CertificateError>,
    pub(crate) rotation_steps: Vec<RotationStep>,
    pub(crate) trust_steps: Vec<TrustStep>,
}

impl CertificateOutcome {
    fn with_error(self, error: CertificateError) -> Self {
        Self { error: Some(error), ..self }
    }
}

/// A pod, and the endpoint of its member.
#[derive(Clone, Debug)]
pub(crate) struct PodEndpoint {
    pub(crate) trust: PodTrust,
    /// `None` if the pod has no address.
    pub(crate) endpoint: Option<MemberEndpoint>,
    /// Whether the pod uses TLS for clients, and for peers.
    pub(crate) uses_tls: [bool; 2],
}

/// The members and pods of a cluster, as far as certificates depend on them.
pub(crate) struct CertificateScope<'a> {
    pub(crate) blueprint: &'a Blueprint<'a>,
    /// The members, each with the UID of its EtcdMember.
    pub(crate) members: Vec<(MemberName, String)>,
    /// The members in the client Secret; `None` before the cluster is bootstrapped: until then no
    /// application may write to the cluster.
    pub(crate) published_members: Option<Vec<MemberName>>,
    pub(crate) pods: Vec<PodEndpoint>,
    /// Whether etcd authentication is known to be disabled.
    pub(crate) auth_disabled: bool,
    /// The user's request for a CA rotation.
    pub(crate) rotation_request: Option<String>,
}

/// What one round works with.
struct Ctx<'a> {
    objects: &'a Objects,
    scope: &'a CertificateScope<'a>,
    ca_set: Option<&'a CaSet>,
    trust_states: &'a TrustStates,
    sources: &'a SourceStates,
    now: Timestamp,
}

/// Manages the certificates of all clusters.
pub(crate) struct CertificateManager {
    /// By the UID of the EtcdCluster.
    cache: Mutex<BTreeMap<String, CachedCredentials>>,
    lifetimes: Lifetimes,
}

impl CertificateManager {
    /// A manager with an empty cache.
    pub(crate) const fn new(lifetimes: Lifetimes) -> Self {
        Self { cache: Mutex::new(BTreeMap::new()), lifetimes }
    }

    /// Reads the Secrets, and writes those that are missing, due or outdated.
    pub(crate) async fn reconcile(
        &self,
        objects: &Objects,
        scope: &CertificateScope<'_>,
        now: Timestamp,
    ) -> Result<CertificateOutcome, CertificateManagerError> {
        let mut outcome = CertificateOutcome::default();
        for _ in 0..MAX_ROUNDS {
            let secrets =
                Secrets::read(objects, scope).await.map_err(CertificateManagerError::Read)?;
            if let Some(name) = secrets.name_conflict(scope) {
                return Err(CertificateManagerError::NameConflict(name));
            }
            let sources = self.read_sources(objects, scope, now).await?;
            let state = match secrets.parse(scope, sources) {
                Ok(state) => state,
                Err(invalid) => {
                    return Ok(outcome.with_error(CertificateError::InvalidSecret(invalid)));
                }
            };
            if let Some(error) = scope.bootstrap_error(&state.sources) {
                return Ok(outcome.with_error(error));
            }
            let members = scope.published_members.clone().unwrap_or_default();
            let plan = plan_secrets(scope.blueprint, &state, &members, self.lifetimes, now);
            let ca_set = match &state.ca_set {
                Reading::Known(Some(Ok(ca_set))) => Some(ca_set),
                Reading::Known(Some(Err(_)) | None) | Reading::Unknown => None,
            };
            let owner_drift = secrets.owner_drift(scope);
            outcome.error.clone_from(&plan.error);
            let SecretsState { trust_states, sources, .. } = &state;
            let ctx = Ctx { objects, scope, ca_set, trust_states, sources, now };
            if plan.writes.is_empty() && owner_drift.is_empty() {
                if self.apply_steps(&ctx, &secrets, &plan, &mut outcome).await? {
                    return Ok(outcome);
                }
                continue;
            }
            for (name, owners) in owner_drift {
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                let written = objects.merge::<Secret>(scope.blueprint.namespace, &name, &patch);
                written.await.map_err(CertificateManagerError::Write)?;
                outcome.written.push(name);
            }
            for (write, _) in &plan.writes {
                outcome.written.extend(self.write(&ctx, write).await?);
            }
        }
        Ok(outcome)
    }

    /// All Secrets are up to date: applies due steps of a rotation or a trust change. Returns
    /// whether no other round is needed.
    async fn apply_steps(
        &self,
        ctx: &Ctx<'_>,
        secrets: &Secrets,
        plan: &SecretsPlan,
        outcome: &mut CertificateOutcome,
    ) -> Result<bool, CertificateManagerError> {
        let (Some(ca_set), Some(existing)) = (ctx.ca_set, &secrets.ca) else { return Ok(true) };
        let mut rotation = match self.rotate(ctx, ca_set, existing, plan).await? {
            RotationOutcome::Applied(step) => {
                outcome.rotation_steps.extend(step);
                return Ok(false);
            }
            RotationOutcome::Waiting(rotation) => rotation,
        };
        match self.change_trust(ctx, ca_set, existing, plan).await? {
            TrustChangeOutcome::Applied(steps) => {
                outcome.trust_steps.extend(steps);
                Ok(false)
            }
            TrustChangeOutcome::Waiting(changes, stale_pods) => {
                rotation.stale_pods.extend(stale_pods);
                self.store(ctx, ca_set, plan, (rotation, changes))?;
                Ok(true)
            }
        }
    }

    async fn write(
        &self,
        ctx: &Ctx<'_>,
        write: &SecretWrite,
    ) -> Result<Option<String>, CertificateManagerError> {
        let Ctx { objects, scope, ca_set, trust_states, sources: _, now } = ctx;
        let blueprint = scope.blueprint;
        let issuer = |ca_set| Issuer { ca_set, lifetimes: self.lifetimes, now: *now };
        let owner = |name: &MemberName| scope.members.iter().find(|(member, _)| member == name);
        let secret = match (write, ca_set) {
            (SecretWrite::CreateCa, _) => return self.create_ca(ctx).await,
            (
                SecretWrite::Member(..)
                | SecretWrite::MemberBundle(..)
                | SecretWrite::ClientCert
                | SecretWrite::ClientFields(_),
                None,
            ) => {
                return Ok(None);
            }
            (SecretWrite::Member(name, plan), Some(ca_set)) => {
                let certs = issuer(ca_set).member(blueprint, name, plan);
                let certs = certs.map_err(CertificateManagerError::Issue)?;
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                certs.secret(blueprint, name, uid)
            }
            (SecretWrite::MemberBundle(name, certs), Some(_)) => {
                let Some((_, uid)) = owner(name) else { return Ok(None) };
                certs.secret(blueprint, name, uid)
            }
            (SecretWrite::ClientCert, Some(ca_set)) => {
                let key_pair = issuer(ca_set).application(blueprint);
                let key_pair = Some(key_pair.map_err(CertificateManagerError::Issue)?);
                let members = scope.published_members.clone().unwrap_or_default();
                let ca = trust_states.client.published.certificates(ca_set, Side::Client);
                let fields = fields(blueprint, &members);
                ClientSecret { fields, key_pair, ca }.secret(blueprint)
            }
            (SecretWrite::ClientFields(client_secret), Some(_)) => client_secret.secret(blueprint),
        };
        objects.apply(&secret).await.map_err(CertificateManagerError::Write)?;
        Ok(Some(secret.name_any()))
    }

    /// Creates the CAs. After a conflict the next round reads the CAs that another writer created.
    async fn create_ca(&self, ctx: &Ctx<'_>) -> Result<Option<String>, CertificateManagerError> {
        let CertificateScope { blueprint, rotation_request, .. } = ctx.scope;
        let ca_pair = issue::ca_pair(blueprint, self.lifetimes, ctx.now);
        let ca_pair = ca_pair.map_err(CertificateManagerError::Issue)?;
        let secret = CaSet::new(ca_pair, rotation_request.clone()).secret(blueprint);
        match ctx.objects.create(&secret).await {
            Ok(_) => Ok(Some(secret.name_any())),
            Err(error) if error.class() == ErrorClass::Conflict => Ok(None),
            Err(error) => Err(CertificateManagerError::Write(error)),
        }
    }
}

impl Ctx<'_> {
    /// Whether no trust change is in progress or desired. If the desired trust is unknown, the
    /// current one must be idle.
    fn is_trust_settled(&self) -> bool {
        Side::BOTH.into_iter().all(|side| {
            let trust_state = self.trust_states.get(side);
            let desired = self.sources.get(side).desired.as_ref();
            desired
                .map_or_else(|| trust_state.is_idle(), |desired| trust_state.is_complete(desired))
        })
    }
}

impl CertificateScope<'_> {
    /// The trust of all pods, and the names of all members.
    fn pods_and_members(&self) -> (Vec<PodTrust>, Vec<MemberName>) {
        let pods = self.pods.iter().map(|pod| pod.trust.clone()).collect();
        (pods, self.members.iter().map(|(name, _)| name.clone()).collect())
    }

    /// Whether a member may use certificates on a side. A member without a pod may be about to.
    fn is_used(&self, side: Side) -> bool {
        let has_pod = |name: &MemberName| self.pods.iter().any(|pod| pod.trust.member == *name);
        let uses_tls = |pod: &PodEndpoint| match (side, pod.uses_tls) {
            (Side::Client, [client, _]) => client,
            (Side::Peer, [_, peer]) => peer,
        };
        !self.members.is_empty()
            && (self.members.iter().any(|(name, _)| !has_pod(name))
                || self.pods.iter().any(uses_tls))
    }

    /// Why a cluster without members cannot be bootstrapped: its external certificates are missing.
    fn bootstrap_error(&self, sources: &SourceStates) -> Option<CertificateError> {
        let is_new = self.members.is_empty() && self.published_members.is_none();
        let problem = sources.problem().filter(|problem| problem.is_fatal() && is_new);
        problem.cloned().map(CertificateError::External)
    }
}
