//! Sides come to rest on other authorities, if it is time.
//! Comes in: what each side rests on and is offered, and who runs. Goes out: one write of the Secret that it is written down
//! in, or what it waits for. May touch: `clients`. It chooses nothing: the changeover does. Whatever was seen before is true
//! again after any failure here.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::ca_rotation::lacking_in;
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

/// What came of it.
pub(super) enum TrustChangeOutcome {
    /// Nothing; this is waited for on each side, and these pods lack what they should have.
    Waiting(Vec<TrustChangeStatus>, BTreeSet<String>),
    /// Everything is to be looked at again: something was written, or somebody else was faster.
    Applied(Vec<TrustStep>),
}

impl CertificateManager {
    /// Lets sides come to rest on others, if it is time.
    pub(super) async fn change(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        held: &Secret,
        found: &SecretsPlan,
    ) -> Result<TrustChangeOutcome, CertificateManagerError> {
        let (mut moves, mut changing, mut lacking) = (Vec::new(), Vec::new(), BTreeSet::new());
        for side in Side::BOTH {
            let (next, lacks) = self.next_of(desk, ring, found, side).await?;
            lacking.extend(lacks);
            match next {
                // A proof that is not whole is asked for again.
                TrustDecision::Idle | TrustDecision::NeedsProbe => {}
                TrustDecision::Apply(change) => moves.push((side, change)),
                TrustDecision::Wait(waits) => {
                    let wish = desk.offers.of(side).wish.as_ref();
                    let stage = wish.map(|it| desk.footings.of(side).stage(it));
                    changing.extend(stage.map(|stage| TrustChangeStatus { side, stage, waits }));
                }
            }
        }
        if moves.is_empty() {
            return Ok(TrustChangeOutcome::Waiting(changing, lacking));
        }
        let Blueprint { name, namespace, .. } = *desk.circle.blueprint;
        let patch = desk.footings.moved(&moves, desk.now).written(held);
        match desk.objects.merge::<Secret>(namespace, &held.name_any(), &patch).await {
            Ok(_) => {
                for (side, change) in &moves {
                    let (side, words) = (side.word(), change.words());
                    tracing::info!(namespace, cluster = name, side, words, "certificates move");
                }
                Ok(TrustChangeOutcome::Applied(
                    moves.into_iter().map(|(_, change)| change).collect(),
                ))
            }
            // Somebody has written to it since it was read.
            Err(error) if error.class() == ErrorClass::Conflict => {
                Ok(TrustChangeOutcome::Applied(Vec::new()))
            }
            Err(error) => Err(CertificateManagerError::Write(error)),
        }
    }

    /// What is to be done about one side, and the pods that lack what they should have. Members are called only if that
    /// decides it.
    async fn next_of(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        found: &SecretsPlan,
        side: Side,
    ) -> Result<(TrustDecision, BTreeSet<String>), CertificateManagerError> {
        let Ctx { circle, footings, offers, now, .. } = *desk;
        let trust = TrustHash::on(Sides::of(circle.blueprint), ring, footings);
        let (seats, members) = circle.company();
        // Who shows a user's certificate has a user's name: etcd must not ask for the operator's own any more.
        let has_other_name = matches!(circle.blueprint.spec.client_tls, Certificates::Secret(_));
        let is_left_alone = circle.blueprint.spec.paused
            || found.stuck.is_some()
            || side == Side::Client && has_other_name && !circle.asks_nobody;
        let footing = footings.of(side);
        let wish = offers.of(side).wish.as_ref();
        let wished = wish.map(|it| it.roots.list(ring, side)).unwrap_or_default();
        let facts = TrustChangeContext {
            footing,
            wish,
            is_used: circle.is_used(side),
            may_move: circle.told.is_some() && !is_left_alone && ring.stage == RotationPhase::Idle,
            overlap: match side {
                Side::Client => self.lifetimes.overlap,
                // No application shows or takes anything here, and members are called.
                Side::Peer => Duration::ZERO,
            },
            now,
            proven: &footing.proven.list(ring, side),
            wished: &wished,
            company: MemberReadiness { word: &trust.word, members: &members, seats: &seats },
        };
        let next = trust_change::next(&facts, None);
        let (TrustDecision::NeedsProbe, Some(wish)) = (&next, facts.wish) else {
            return Ok((next, BTreeSet::new()));
        };
        let door = self.door(desk, ring, side, wish).map_err(CertificateManagerError::Make)?;
        let proof = probe::probe_all(circle, &[door]).await;
        Ok((trust_change::next(&facts, Some(&proof)), lacking_in(&proof, &seats)))
    }

    /// Calls as those whom the coming ones sign. Before these sign what members show, what the others signed is taken, too.
    fn door(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        side: Side,
        wish: &DesiredTrust,
    ) -> Result<ProbeTarget, IssueError> {
        let signing = Issuer { ring, lifetimes: self.lifetimes, now: desk.now };
        let authority = match side {
            Side::Client => &ring.now.client,
            Side::Peer => &ring.now.peer,
        };
        let shown = match &wish.pair {
            Some(pair) => pair.clone(),
            None => signing.caller(authority)?,
        };
        let footing = desk.footings.of(side);
        let trusts = match footing.stage(wish) {
            TrustPhase::Requested | TrustPhase::Distributing => footing.told.list(ring, side),
            TrustPhase::Retiring | TrustPhase::Verifying => wish.roots.list(ring, side),
        };
        Ok(ProbeTarget { port: side.port(), shown, trusts, dropped: footing.unnamed(ring, side) })
    }
}
