//! Applies the next step of the rotation of the managed CAs, as one write of the CA Secret.
//! Crash safety: the step is decided from observed state only, so any failure here is retried.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::{CertificateManager, CertificateManagerError, Ctx, probe};
use crate::clients::error::ErrorClass;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::tls::ca_rotation::{
    self, RotationContext, RotationDecision, RotationStatus,
};
use crate::etcd_cluster::tls::ca_set::{CaSet, RotationStep};
use crate::etcd_cluster::tls::issue::{self, Issuer};
use crate::etcd_cluster::tls::readiness::{
    MemberReadiness, PodTrust, ProbeResults, TlsProbe, WaitingFor,
};
use crate::etcd_cluster::tls::secrets_plan::SecretsPlan;
use crate::etcd_cluster::tls::trust_hash::{Sides, TrustHash};

/// A deleted Secret is noticed after this time at the latest.
const SECRETS_INTERVAL: Duration = Duration::from_hours(1);
/// How often members are checked that a step waits for.
const MEMBER_WAIT_INTERVAL: Duration = Duration::from_secs(5);

/// The result of a rotation attempt.
pub(super) enum RotationOutcome {
    /// No step is due.
    Waiting(RotationReport),
    /// All Secrets must be read again: a step was applied, or another writer was faster.
    Applied(Option<RotationStep>),
}

/// What is cached about a rotation.
pub(super) struct RotationReport {
    pub(super) status: Option<RotationStatus>,
    pub(super) stale_pods: BTreeSet<String>,
}

impl CertificateManager {
    /// Applies the next step of the rotation, if it is due.
    pub(super) async fn rotate(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        existing: &Secret,
        plan: &SecretsPlan,
    ) -> Result<RotationOutcome, CertificateManagerError> {
        let Ctx { scope, now, .. } = *ctx;
        let (decision, stale_pods) = self.decide_rotation(ctx, ca_set, plan).await?;
        let step = match decision {
            RotationDecision::Idle => {
                return Ok(RotationOutcome::Waiting(RotationReport { status: None, stale_pods }));
            }
            RotationDecision::Wait(waiting_for) => {
                let status = Some(RotationStatus { phase: ca_set.phase.clone(), waiting_for });
                return Ok(RotationOutcome::Waiting(RotationReport { status, stale_pods }));
            }
            RotationDecision::NeedsProbe => return Ok(RotationOutcome::Applied(None)),
            RotationDecision::Start => {
                let ca_pair = issue::ca_pair(scope.blueprint, self.lifetimes, now);
                let ca_pair = ca_pair.map_err(CertificateManagerError::Issue)?;
                RotationStep::Start(Box::new(ca_pair), scope.rotation_request.clone())
            }
            RotationDecision::StartOverlap => RotationStep::StartOverlap,
            RotationDecision::SwitchIssuer(next) => RotationStep::SwitchIssuer(next),
            RotationDecision::RemoveOldCa => RotationStep::RemoveOldCa,
            RotationDecision::Finish => RotationStep::Finish,
        };
        let Blueprint { name, namespace, .. } = *scope.blueprint;
        let patch = ca_set.patch(&step, existing, now);
        match ctx.objects.merge::<Secret>(namespace, &existing.name_any(), &patch).await {
            Ok(_) => {
                let detail = step.message();
                tracing::info!(namespace, cluster = name, detail, "CA rotation step applied");
                Ok(RotationOutcome::Applied(Some(step)))
            }
            // Another writer changed the Secret since it was read.
            Err(error) if error.class() == ErrorClass::Conflict => {
                Ok(RotationOutcome::Applied(None))
            }
            Err(error) => Err(CertificateManagerError::Write(error)),
        }
    }

    /// Decides the next step, and finds the pods with a stale trust bundle. Members are probed only
    /// if the decision depends on it.
    async fn decide_rotation(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        plan: &SecretsPlan,
    ) -> Result<(RotationDecision, BTreeSet<String>), CertificateManagerError> {
        let Ctx { scope, now, .. } = *ctx;
        let tls_sides = Sides::with_tls(scope.blueprint);
        let trust = TrustHash::new(tls_sides, ca_set, ctx.trust_states);
        let sides = tls_sides.with_managed_ca(ctx.trust_states);
        let (pods, members) = scope.pods_and_members();
        let is_blocked = scope.blueprint.spec.paused || plan.error.is_some();
        let context = RotationContext {
            ca_set,
            lifetimes: self.lifetimes,
            now,
            rotation_request: scope.rotation_request.as_deref(),
            may_rotate: scope.published_members.is_some() && sides.any() && !is_blocked,
            // One change at a time: a trust change goes first, unless a rotation has started.
            may_start: ctx.is_trust_settled(),
            readiness: MemberReadiness { trust_hash: &trust.hash, members: &members, pods: &pods },
        };
        let decision = ca_rotation::next(&context, None);
        if decision != RotationDecision::NeedsProbe {
            return Ok((decision, BTreeSet::new()));
        }
        let issuer = Issuer { ca_set, lifetimes: self.lifetimes, now };
        let results = probe::probe_rotation(scope, sides, &issuer)
            .await
            .map_err(CertificateManagerError::Issue)?;
        Ok((ca_rotation::next(&context, Some(&results)), stale_pods(&results, &pods)))
    }
}

/// UIDs of the pods whose probe contradicts their trust bundle hash.
pub(super) fn stale_pods(results: &ProbeResults, pods: &[PodTrust]) -> BTreeSet<String> {
    let is_stale = |pod: &&PodTrust| match results.get(&pod.member) {
        Some(TlsProbe::RejectsNewCa | TlsProbe::TrustsOldCa) => true,
        Some(TlsProbe::Ok | TlsProbe::PresentsOldCert | TlsProbe::Unreachable(_)) | None => false,
    };
    pods.iter().filter(is_stale).map(|pod| pod.pod_uid.clone()).collect()
}

/// When the Secrets must be read again at the latest.
pub(super) fn next_read(waiting_for: Option<&WaitingFor>, now: Timestamp) -> Timestamp {
    let later = |span: Duration| {
        let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::ZERO);
        now.saturating_add(span).unwrap_or(Timestamp::MAX)
    };
    match waiting_for {
        None | Some(WaitingFor::Unpause | WaitingFor::BundleSpace) => later(SECRETS_INTERVAL),
        Some(WaitingFor::Overlap(at)) => later(SECRETS_INTERVAL).min(*at),
        Some(WaitingFor::Restart(_) | WaitingFor::Probe(..)) => later(MEMBER_WAIT_INTERVAL),
    }
}
