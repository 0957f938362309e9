//! `CaPair` change their places, if it is time.
//! Comes in: the ring, the Secret that it is in, and who runs. Goes out: one write of that Secret, or what it waits for.
//! May touch: `clients`. It chooses nothing: the rotation does. Whatever was seen before is true again after any failure here.

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

/// A Secret that somebody took away is missed after this time at the latest.
const SECRETS_INTERVAL: Duration = Duration::from_hours(1);
/// How often members are looked at that authorities wait for.
const MEMBER_WAIT_INTERVAL: Duration = Duration::from_secs(5);

/// What came of it.
pub(super) enum RotationOutcome {
    /// Nothing; this is to be remembered.
    Waiting(RotationReport),
    /// Everything is to be looked at again: a turn was made, or somebody else was faster.
    Applied(Option<RotationStep>),
}

/// What is remembered beside the Secrets.
pub(super) struct RotationReport {
    pub(super) turning: Option<RotationStatus>,
    pub(super) lacking: BTreeSet<String>,
}

impl CertificateManager {
    /// Lets the authorities change their places, if it is time.
    pub(super) async fn turn(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        held: &Secret,
        found: &SecretsPlan,
    ) -> Result<RotationOutcome, CertificateManagerError> {
        let Ctx { circle, now, .. } = *desk;
        let (next, lacking) = self.next(desk, ring, found).await?;
        let turn = match next {
            RotationDecision::Idle => {
                return Ok(RotationOutcome::Waiting(RotationReport { turning: None, lacking }));
            }
            RotationDecision::Wait(waits) => {
                let turning = Some(RotationStatus { stage: ring.stage.clone(), waits });
                return Ok(RotationOutcome::Waiting(RotationReport { turning, lacking }));
            }
            RotationDecision::NeedsProbe => return Ok(RotationOutcome::Applied(None)),
            RotationDecision::Start => {
                let made = issue::ca_pair(circle.blueprint, self.lifetimes, now);
                let made = made.map_err(CertificateManagerError::Make)?;
                RotationStep::Start(Box::new(made), circle.asked.clone())
            }
            RotationDecision::StartOverlap => RotationStep::StartOverlap,
            RotationDecision::SwitchIssuer(next) => RotationStep::SwitchIssuer(next),
            RotationDecision::RemoveOldCa => RotationStep::RemoveOldCa,
            RotationDecision::Finish => RotationStep::Finish,
        };
        let Blueprint { name, namespace, .. } = *circle.blueprint;
        let patch = ring.turned(&turn, held, now);
        match desk.objects.merge::<Secret>(namespace, &held.name_any(), &patch).await {
            Ok(_) => {
                let words = turn.words();
                tracing::info!(namespace, cluster = name, words, "certificate authorities turn");
                Ok(RotationOutcome::Applied(Some(turn)))
            }
            // Somebody has written to it since it was read.
            Err(error) if error.class() == ErrorClass::Conflict => {
                Ok(RotationOutcome::Applied(None))
            }
            Err(error) => Err(CertificateManagerError::Write(error)),
        }
    }

    /// What is to be done, and the pods that lack what they should have. Members are called only if that decides it.
    async fn next(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        found: &SecretsPlan,
    ) -> Result<(RotationDecision, BTreeSet<String>), CertificateManagerError> {
        let Ctx { circle, now, .. } = *desk;
        let protected = Sides::of(circle.blueprint);
        let trust = TrustHash::on(protected, ring, desk.footings);
        let sides = protected.with_ours(desk.footings);
        let (seats, members) = circle.company();
        let is_left_alone = circle.blueprint.spec.paused || found.stuck.is_some();
        let facts = RotationContext {
            ring,
            lifetimes: self.lifetimes,
            now,
            asked: circle.asked.as_deref(),
            may_turn: circle.told.is_some() && sides.any() && !is_left_alone,
            // One change at a time: a side that comes to rest on others goes first, unless we were faster.
            may_begin: desk.is_settled(),
            company: MemberReadiness { word: &trust.word, members: &members, seats: &seats },
        };
        let next = ca_rotation::next(&facts, None);
        if next != RotationDecision::NeedsProbe {
            return Ok((next, BTreeSet::new()));
        }
        let signing = Issuer { ring, lifetimes: self.lifetimes, now };
        let proof = probe::probe_rotation(circle, sides, &signing)
            .await
            .map_err(CertificateManagerError::Make)?;
        Ok((ca_rotation::next(&facts, Some(&proof)), lacking_in(&proof, &seats)))
    }
}

/// The pods of those who trust others than they were made to.
pub(super) fn lacking_in(proof: &ProbeResults, seats: &[PodTrust]) -> BTreeSet<String> {
    let trusts_others = |it: &&PodTrust| match proof.get(&it.member) {
        Some(TlsProbe::RejectsNewCa | TlsProbe::TrustsOldCa) => true,
        Some(TlsProbe::Ok | TlsProbe::PresentsOldCert | TlsProbe::Unreachable(_)) | None => false,
    };
    seats.iter().filter(trusts_others).map(|it| it.pod.clone()).collect()
}

/// When to look again, whatever else is due.
pub(super) fn next_look(waits: Option<&WaitingFor>, now: Timestamp) -> Timestamp {
    let later = |span: Duration| {
        let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::ZERO);
        now.saturating_add(span).unwrap_or(Timestamp::MAX)
    };
    match waits {
        None | Some(WaitingFor::Unpause | WaitingFor::BundleSpace) => later(SECRETS_INTERVAL),
        Some(WaitingFor::Overlap(at)) => later(SECRETS_INTERVAL).min(*at),
        Some(WaitingFor::Restart(_) | WaitingFor::Probe(..)) => later(MEMBER_WAIT_INTERVAL),
    }
}
