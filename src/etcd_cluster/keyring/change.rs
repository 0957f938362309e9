//! Sides come to rest on other authorities, if it is time.
//! Comes in: what each side rests on and is offered, and who runs. Goes out: one write of the Secret that it is written down
//! in, or what it waits for. May touch: `ports`. It chooses nothing: the changeover does. Whatever was seen before is true
//! again after any failure here.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::prove::{self, Door};
use super::turn::lacking_in;
use super::{Desk, Keyring, KeyringError};
use crate::api::etcd_cluster::checked::Certificates;
use crate::etcd_cluster::identity::changeover::{self, Changing, Facts, Next, Stage};
use crate::etcd_cluster::identity::company::Company;
use crate::etcd_cluster::identity::footing::Move;
use crate::etcd_cluster::identity::mint::Signing;
use crate::etcd_cluster::identity::offer::Wish;
use crate::etcd_cluster::identity::ring::{Ring, Stage as RingStage};
use crate::etcd_cluster::identity::roots::Side;
use crate::etcd_cluster::identity::trust::{Sides, Trust};
use crate::etcd_cluster::identity::wanted::Wanted;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::mint::Unmade;
use crate::ports::call::Class;

/// What came of it.
pub(super) enum Changed {
    /// Nothing; this is waited for on each side, and these pods lack what they should have.
    Not(Vec<Changing>, BTreeSet<String>),
    /// Everything is to be looked at again: something was written, or somebody else was faster.
    Made(Vec<Move>),
}

impl Keyring {
    /// Lets sides come to rest on others, if it is time.
    pub(super) async fn change(
        &self,
        desk: &Desk<'_>,
        ring: &Ring,
        held: &Secret,
        found: &Wanted,
    ) -> Result<Changed, KeyringError> {
        let (mut moves, mut changing, mut lacking) = (Vec::new(), Vec::new(), BTreeSet::new());
        for side in Side::BOTH {
            let (next, lacks) = self.next_of(desk, ring, found, side).await?;
            lacking.extend(lacks);
            match next {
                // A proof that is not whole is asked for again.
                Next::Rest | Next::Prove => {}
                Next::Move(change) => moves.push((side, change)),
                Next::Wait(waits) => {
                    let wish = desk.offers.of(side).wish.as_ref();
                    let stage = wish.map(|it| desk.footings.of(side).stage(it));
                    changing.extend(stage.map(|stage| Changing { side, stage, waits }));
                }
            }
        }
        if moves.is_empty() {
            return Ok(Changed::Not(changing, lacking));
        }
        let Blueprint { name, namespace, .. } = *desk.circle.blueprint;
        let patch = desk.footings.moved(&moves, desk.now).written(held);
        match desk.objects.merge::<Secret>(namespace, &held.name_any(), &patch).await {
            Ok(_) => {
                for (side, change) in &moves {
                    let (side, words) = (side.word(), change.words());
                    tracing::info!(namespace, cluster = name, side, words, "certificates move");
                }
                Ok(Changed::Made(moves.into_iter().map(|(_, change)| change).collect()))
            }
            // Somebody has written to it since it was read.
            Err(error) if error.class() == Class::Conflict => Ok(Changed::Made(Vec::new())),
            Err(error) => Err(KeyringError::Write(error)),
        }
    }

    /// What is to be done about one side, and the pods that lack what they should have. Members are called only if that
    /// decides it.
    async fn next_of(
        &self,
        desk: &Desk<'_>,
        ring: &Ring,
        found: &Wanted,
        side: Side,
    ) -> Result<(Next, BTreeSet<String>), KeyringError> {
        let Desk { circle, footings, offers, now, .. } = *desk;
        let trust = Trust::on(Sides::of(circle.blueprint), ring, footings);
        let (seats, members) = circle.company();
        // Who shows a user's certificate has a user's name: etcd must not ask for the operator's own any more.
        let has_other_name = matches!(circle.blueprint.spec.client_tls, Certificates::Secret(_));
        let is_left_alone = circle.blueprint.spec.paused
            || found.stuck.is_some()
            || side == Side::Client && has_other_name && !circle.asks_nobody;
        let footing = footings.of(side);
        let wish = offers.of(side).wish.as_ref();
        let wished = wish.map(|it| it.roots.list(ring, side)).unwrap_or_default();
        let facts = Facts {
            footing,
            wish,
            is_used: circle.is_used(side),
            may_move: circle.told.is_some() && !is_left_alone && ring.stage == RingStage::Still,
            overlap: match side {
                Side::Client => self.lifetimes.overlap,
                // No application shows or takes anything here, and members are called.
                Side::Peer => Duration::ZERO,
            },
            now,
            proven: &footing.proven.list(ring, side),
            wished: &wished,
            company: Company { word: &trust.word, members: &members, seats: &seats },
        };
        let next = changeover::next(&facts, None);
        let (Next::Prove, Some(wish)) = (&next, facts.wish) else {
            return Ok((next, BTreeSet::new()));
        };
        let door = self.door(desk, ring, side, wish).map_err(KeyringError::Make)?;
        let proof = prove::call(circle, &[door]).await;
        Ok((changeover::next(&facts, Some(&proof)), lacking_in(&proof, &seats)))
    }

    /// Calls as those whom the coming ones sign. Before these sign what members show, what the others signed is taken, too.
    fn door(&self, desk: &Desk<'_>, ring: &Ring, side: Side, wish: &Wish) -> Result<Door, Unmade> {
        let signing = Signing { ring, lifetimes: self.lifetimes, now: desk.now };
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
            Stage::Asked | Stage::Introduced => footing.told.list(ring, side),
            Stage::Retiring | Stage::Dropped => wish.roots.list(ring, side),
        };
        Ok(Door { port: side.port(), shown, trusts, dropped: footing.unnamed(ring, side) })
    }
}
