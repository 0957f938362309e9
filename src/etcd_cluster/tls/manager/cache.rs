//! What is cached of the Secrets of a cluster while this replica leads: the operator's credentials,
//! the trust bundle hash, the report, and when the Secrets must be read again.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::ca_rotation::{RotationReport, next_read};
use super::{CertificateManager, CertificateManagerError, CertificateScope, Ctx};
use crate::api::etcd_cluster::validated::Certificates;
use crate::api::names;
use crate::clients::etcd::Credentials;
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::tls::ca_set::CaSet;
use crate::etcd_cluster::tls::external_secret::CertificateProblem;
use crate::etcd_cluster::tls::issue::Issuer;
use crate::etcd_cluster::tls::lifetimes::renewal_time;
use crate::etcd_cluster::tls::report::CertificateReport;
use crate::etcd_cluster::tls::secrets_plan::SecretsPlan;
use crate::etcd_cluster::tls::source::Leaves;
use crate::etcd_cluster::tls::trust_bundle::Side;
use crate::etcd_cluster::tls::trust_change::TrustChangeStatus;
use crate::etcd_cluster::tls::trust_hash::{Sides, TrustHash};
use crate::etcd_cluster::transport::Scheme;
use crate::pki::ca::{Certificate, bundle};

/// How often external certificates are read.
const SOURCE_INTERVAL: Duration = Duration::from_secs(30);
/// How often invalid external certificates are read: a user is fixing them.
const BROKEN_SOURCE_INTERVAL: Duration = Duration::from_secs(5);

/// The inputs for which the Secrets were found up to date.
#[derive(Clone, PartialEq)]
struct ScopeFingerprint {
    /// The members and their UIDs.
    members: BTreeSet<(MemberName, String)>,
    published_members: Option<Vec<MemberName>>,
    advertised_scheme: Scheme,
    /// The certificate sources for clients and for peers.
    sources: [Certificates; 2],
    /// Whether the cluster owns its Secrets.
    is_owner: bool,
    rotation_request: Option<String>,
    is_paused: bool,
}

/// What is cached of one cluster.
#[derive(Clone)]
pub(super) struct CachedCredentials {
    credentials: Credentials,
    /// The CA of the operator's certificate; an external certificate stands for itself.
    issuer: Certificate,
    /// When the operator's certificate must be renewed.
    renew_at: Timestamp,
    /// `None` if the Secrets are not up to date.
    fingerprint: Option<ScopeFingerprint>,
    /// When the Secrets must be read again.
    next_read: Timestamp,
    report: CertificateReport,
    /// The trust bundle in the members' Secrets.
    trust_hash: TrustHash,
    requires_cluster_name: bool,
    operator_cn_recognized: bool,
}

impl CertificateManager {
    fn cached<T>(
        &self,
        uid: &str,
        read: impl FnOnce(&CachedCredentials) -> Option<T>,
    ) -> Option<T> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(uid).and_then(read)
    }

    /// The operator's credentials for the members of a cluster, if known.
    pub(crate) fn credentials(&self, uid: &str, now: Timestamp) -> Option<Credentials> {
        self.cached(uid, |entry| (now < entry.renew_at).then(|| entry.credentials.clone()))
    }

    /// The trust bundle hash that the pods of a cluster should have, if known.
    pub(crate) fn trust_hash(&self, uid: &str) -> Option<TrustHash> {
        self.cached(uid, |entry| Some(entry.trust_hash.clone()))
    }

    /// Whether members require the cluster's name in peer certificates, because an external CA
    /// issues them.
    pub(crate) fn requires_cluster_name(&self, uid: &str) -> bool {
        self.cached(uid, |entry| Some(entry.requires_cluster_name)).unwrap_or_default()
    }

    /// Whether the operator's certificate has its own common name, which etcd users are known by.
    pub(crate) fn operator_cn_recognized(&self, uid: &str) -> bool {
        self.cached(uid, |entry| Some(entry.operator_cn_recognized)).unwrap_or_default()
    }

    /// The report about the certificates of a cluster.
    pub(crate) fn report(&self, uid: &str) -> CertificateReport {
        self.cached(uid, |entry| Some(entry.report.clone())).unwrap_or_default()
    }

    /// Removes a deleted cluster from the cache.
    pub(crate) fn evict(&self, uid: &str) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Whether the Secrets must be read.
    pub(crate) fn is_stale(&self, scope: &CertificateScope<'_>, now: Timestamp) -> bool {
        let is_fresh = |entry: &CachedCredentials| {
            now < entry.next_read
                && now < entry.renew_at
                && entry.fingerprint.as_ref() == Some(&scope.fingerprint())
        };
        self.cached(scope.blueprint.uid, |entry| is_fresh(entry).then_some(())).is_none()
    }

    pub(super) fn store(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        plan: &SecretsPlan,
        waiting: (RotationReport, Vec<TrustChangeStatus>),
    ) -> Result<(), CertificateManagerError> {
        let Ctx { scope, trust_states, sources, now, .. } = *ctx;
        let (RotationReport { status: rotation, mut stale_pods }, changes) = waiting;
        let waiting_for = rotation.iter().map(|status| &status.waiting_for);
        let waiting_for = waiting_for.chain(changes.iter().map(|status| &status.waiting_for));
        let reads = waiting_for.map(Some).chain([None]).map(|reason| next_read(reason, now));
        let reads = reads.chain(next_source_read(ctx)).chain(plan.next_renewal);
        let next_read = reads.min().unwrap_or(now);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = cache.get(scope.blueprint.uid);
        let (credentials, issuer, renew_at) = self.operator_credentials(ctx, ca_set, previous)?;
        let is_managed = issuer == ca_set.current.client.certificate;
        let operator_cn_recognized =
            is_managed || issuer.common_name().as_deref() == Some(names::OPERATOR);
        // A pod stays stale until its deletion.
        stale_pods
            .extend(previous.into_iter().flat_map(|entry| entry.trust_hash.stale_pods.clone()));
        stale_pods.retain(|uid| scope.pods.iter().any(|pod| pod.trust.pod_uid == *uid));
        let sides = Sides::with_tls(scope.blueprint);
        let trust_hash = TrustHash { stale_pods, ..TrustHash::new(sides, ca_set, trust_states) };
        let report = CertificateReport {
            error: plan.error.clone(),
            rotation,
            trust_change: changes.into_iter().next(),
            problem: sources.problem().cloned(),
            is_external: sources.is_external(),
        };
        let entry = CachedCredentials {
            credentials,
            issuer,
            renew_at,
            fingerprint: plan.error.is_none().then(|| scope.fingerprint()),
            next_read,
            report,
            trust_hash,
            requires_cluster_name: sides.peer && !trust_states.peer.published.managed,
            operator_cn_recognized,
        };
        cache.insert(scope.blueprint.uid.to_owned(), entry);
        Ok(())
    }

    /// The operator's credentials, the CA of its certificate, and when it must be renewed. A cached
    /// certificate of the managed CA is used until then.
    fn operator_credentials(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        previous: Option<&CachedCredentials>,
    ) -> Result<(Credentials, Certificate, Timestamp), CertificateManagerError> {
        let Ctx { trust_states, sources, now, .. } = *ctx;
        let trust_state = &trust_states.client;
        let ca = bundle(&trust_state.published.certificates(ca_set, Side::Client));
        let returns_to_managed =
            trust_state.confirmed.managed && sources.client.leaves == Leaves::Managed;
        if let Some(external) = trust_state.operator_cert.as_ref().filter(|_| !returns_to_managed) {
            let (certificate, key) = (external.pem().into_bytes(), external.key.pem().into_bytes());
            let credentials = Credentials { ca, certificate, key };
            return Ok((credentials, external.certificate.clone(), external.certificate.until));
        }
        let issuer = ca_set.current.client.certificate.clone();
        let reusable = previous.filter(|entry| {
            now < entry.renew_at && entry.issuer == issuer && entry.credentials.ca == ca
        });
        if let Some(entry) = reusable {
            return Ok((entry.credentials.clone(), issuer, entry.renew_at));
        }
        let key_pair = Issuer { ca_set, lifetimes: self.lifetimes, now }.operator();
        let key_pair = key_pair.map_err(CertificateManagerError::Issue)?;
        let (certificate, key) = (key_pair.pem().into_bytes(), key_pair.key.pem().into_bytes());
        let credentials = Credentials { ca, certificate, key };
        Ok((credentials, issuer, renewal_time(&key_pair.certificate)))
    }
}

/// When external certificates must be read again: changes of them are not watched.
fn next_source_read(ctx: &Ctx<'_>) -> Option<Timestamp> {
    let is_broken = ctx.sources.problem().is_some_and(CertificateProblem::is_fatal);
    let span = if is_broken { BROKEN_SOURCE_INTERVAL } else { SOURCE_INTERVAL };
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::ZERO);
    ctx.sources.is_external().then(|| ctx.now.saturating_add(span).unwrap_or(Timestamp::MAX))
}

impl CertificateScope<'_> {
    fn fingerprint(&self) -> ScopeFingerprint {
        let spec = self.blueprint.spec;
        ScopeFingerprint {
            members: self.members.iter().cloned().collect(),
            published_members: self.published_members.clone(),
            advertised_scheme: self.blueprint.advertised_scheme(),
            sources: [spec.client_tls.clone(), spec.peer_tls.clone()],
            is_owner: self.blueprint.owner().is_some(),
            rotation_request: self.rotation_request.clone(),
            is_paused: spec.paused,
        }
    }
}
