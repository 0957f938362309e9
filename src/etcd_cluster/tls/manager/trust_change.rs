//! Applies the next steps of the trust changes of both sides, as one write of the CA Secret.
//! Crash safety: the steps are decided from observed state only, so any failure here is retried.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::ca_rotation::stale_pods;
use super::probe::{self, ProbeTarget};
use super::{CertificateManager, CertificateManagerError, Ctx};
use crate::api::etcd_cluster::validated::Certificates;
use crate::clients::error::ErrorClass;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::tls::ca_set::{CaSet, RotationPhase};
use crate::etcd_cluster::tls::issue::Issuer;
use crate::etcd_cluster::tls::readiness::MemberReadiness;
use crate::etcd_cluster::tls::secrets_plan::SecretsPlan;
use crate::etcd_cluster::tls::source::DesiredTrust;
use crate::etcd_cluster::tls::trust_bundle::Side;
use crate::etcd_cluster::tls::trust_change::{
    self, TrustChangeContext, TrustChangeStatus, TrustDecision, TrustPhase,
};
use crate::etcd_cluster::tls::trust_hash::{Sides, TrustHash};
use crate::etcd_cluster::tls::trust_state::TrustStep;
use crate::pki::issue::IssueError;

/// The result of a trust change attempt.
pub(super) enum TrustChangeOutcome {
    /// No step is due: the status of each side, and the UIDs of pods with a stale trust bundle.
    Waiting(Vec<TrustChangeStatus>, BTreeSet<String>),
    /// All Secrets must be read again: steps were applied, or another writer was faster.
    Applied(Vec<TrustStep>),
}

impl CertificateManager {
    /// Applies the next step of the trust change of each side, if it is due.
    pub(super) async fn change_trust(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        existing: &Secret,
        plan: &SecretsPlan,
    ) -> Result<TrustChangeOutcome, CertificateManagerError> {
        let (mut steps, mut waiting, mut all_stale) = (Vec::new(), Vec::new(), BTreeSet::new());
        for side in Side::BOTH {
            let (decision, stale) = self.decide_trust_change(ctx, ca_set, plan, side).await?;
            all_stale.extend(stale);
            match decision {
                // Incomplete probe results: the members are probed again.
                TrustDecision::Idle | TrustDecision::NeedsProbe => {}
                TrustDecision::Apply(step) => steps.push((side, step)),
                TrustDecision::Wait(waiting_for) => {
                    let desired = ctx.sources.get(side).desired.as_ref();
                    let phase = desired.map(|desired| ctx.trust_states.get(side).phase(desired));
                    waiting.extend(phase.map(|phase| TrustChangeStatus {
                        side,
                        phase,
                        waiting_for,
                    }));
                }
            }
        }
        if steps.is_empty() {
            return Ok(TrustChangeOutcome::Waiting(waiting, all_stale));
        }
        let Blueprint { name, namespace, .. } = *ctx.scope.blueprint;
        let patch = ctx.trust_states.apply(&steps, ctx.now).patch(existing);
        match ctx.objects.merge::<Secret>(namespace, &existing.name_any(), &patch).await {
            Ok(_) => {
                for (side, step) in &steps {
                    let (side, detail) = (side.as_str(), step.message());
                    tracing::info!(namespace, cluster = name, side, detail, "trust state updated");
                }
                Ok(TrustChangeOutcome::Applied(steps.into_iter().map(|(_, step)| step).collect()))
            }
            // Another writer changed the Secret since it was read.
            Err(error) if error.class() == ErrorClass::Conflict => {
                Ok(TrustChangeOutcome::Applied(Vec::new()))
            }
            Err(error) => Err(CertificateManagerError::Write(error)),
        }
    }

    /// Decides the next step of one side, and finds the pods with a stale trust bundle. Members are
    /// probed only if the decision depends on it.
    async fn decide_trust_change(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        plan: &SecretsPlan,
        side: Side,
    ) -> Result<(TrustDecision, BTreeSet<String>), CertificateManagerError> {
        let Ctx { scope, trust_states, sources, now, .. } = *ctx;
        let trust = TrustHash::new(Sides::with_tls(scope.blueprint), ca_set, trust_states);
        let (pods, members) = scope.pods_and_members();
        // With a user's certificate the operator has the user's common name: etcd authentication,
        // which knows only the operator's own, must be disabled first.
        let has_other_cn = matches!(scope.blueprint.spec.client_tls, Certificates::Secret(_));
        let is_blocked = scope.blueprint.spec.paused
            || plan.error.is_some()
            || side == Side::Client && has_other_cn && !scope.auth_disabled;
        let trust_state = trust_states.get(side);
        let desired = sources.get(side).desired.as_ref();
        let desired_cas = desired.map(|desired| desired.bundle.certificates(ca_set, side));
        let context = TrustChangeContext {
            trust_state,
            desired,
            is_used: scope.is_used(side),
            may_change: scope.published_members.is_some()
                && !is_blocked
                && ca_set.phase == RotationPhase::Idle,
            overlap: match side {
                Side::Client => self.lifetimes.overlap,
                // Applications do not use this side, and members are probed.
                Side::Peer => Duration::ZERO,
            },
            now,
            confirmed_cas: &trust_state.confirmed.certificates(ca_set, side),
            desired_cas: &desired_cas.unwrap_or_default(),
            readiness: MemberReadiness { trust_hash: &trust.hash, members: &members, pods: &pods },
        };
        let decision = trust_change::next(&context, None);
        let (TrustDecision::NeedsProbe, Some(desired)) = (&decision, context.desired) else {
            return Ok((decision, BTreeSet::new()));
        };
        let target = self.probe_target(ctx, ca_set, side, desired);
        let target = target.map_err(CertificateManagerError::Issue)?;
        let results = probe::probe_all(scope, &[target]).await;
        Ok((trust_change::next(&context, Some(&results)), stale_pods(&results, &pods)))
    }

    /// Probes with a client certificate of the new CAs. Until members present certificates of the
    /// new CAs, those of the old CAs are accepted, too.
    fn probe_target(
        &self,
        ctx: &Ctx<'_>,
        ca_set: &CaSet,
        side: Side,
        desired: &DesiredTrust,
    ) -> Result<ProbeTarget, IssueError> {
        let issuer = Issuer { ca_set, lifetimes: self.lifetimes, now: ctx.now };
        let ca = match side {
            Side::Client => &ca_set.current.client,
            Side::Peer => &ca_set.current.peer,
        };
        let client_cert = match &desired.operator_cert {
            Some(operator_cert) => operator_cert.clone(),
            None => issuer.client(ca)?,
        };
        let trust_state = ctx.trust_states.get(side);
        let trusted_cas = match trust_state.phase(desired) {
            TrustPhase::Requested | TrustPhase::Distributing => {
                trust_state.published.certificates(ca_set, side)
            }
            TrustPhase::Retiring | TrustPhase::Verifying => {
                desired.bundle.certificates(ca_set, side)
            }
        };
        let removed_cas = trust_state.removed_to_verify(ca_set, side);
        Ok(ProbeTarget { port: side.port(), client_cert, trusted_cas, removed_cas })
    }
}
