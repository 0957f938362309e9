//! Authorities change their places, if it is time.
//! Comes in: the ring, the Secret that it is in, and who runs. Goes out: one write of that Secret, or what it waits for.
//! May touch: `ports`. It chooses nothing: the rotation does. Whatever was seen before is true again after any failure here.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::{Desk, Keyring, KeyringError, prove};
use crate::etcd_cluster::identity::company::{Company, Proof, Seat, Shown, Waits};
use crate::etcd_cluster::identity::mint::{self, Signing};
use crate::etcd_cluster::identity::ring::{Ring, Turn};
use crate::etcd_cluster::identity::rotation::{self, Facts, Next, Turning};
use crate::etcd_cluster::identity::trust::{Sides, Trust};
use crate::etcd_cluster::identity::wanted::Wanted;
use crate::etcd_cluster::render::Blueprint;
use crate::ports::call::Class;

/// A Secret that somebody took away is missed after this time at the latest.
const LOOK_AGAIN: Duration = Duration::from_hours(1);
/// How often members are looked at that authorities wait for.
const WAITED_FOR: Duration = Duration::from_secs(5);

/// What came of it.
pub(super) enum Turned {
    /// Nothing; this is to be remembered.
    Not(Noted),
    /// Everything is to be looked at again: a turn was made, or somebody else was faster.
    Made(Option<Turn>),
}

/// What is remembered beside the Secrets.
pub(super) struct Noted {
    pub(super) turning: Option<Turning>,
    pub(super) lacking: BTreeSet<String>,
}

impl Keyring {
    /// Lets the authorities change their places, if it is time.
    pub(super) async fn turn(
        &self,
        desk: &Desk<'_>,
        ring: &Ring,
        held: &Secret,
        found: &Wanted,
    ) -> Result<Turned, KeyringError> {
        let Desk { circle, now, .. } = *desk;
        let (next, lacking) = self.next(desk, ring, found).await?;
        let turn = match next {
            Next::Rest => return Ok(Turned::Not(Noted { turning: None, lacking })),
            Next::Wait(waits) => {
                let turning = Some(Turning { stage: ring.stage.clone(), waits });
                return Ok(Turned::Not(Noted { turning, lacking }));
            }
            Next::Prove => return Ok(Turned::Made(None)),
            Next::Begin => {
                let made = mint::authorities(circle.blueprint, self.lifetimes, now);
                let made = made.map_err(KeyringError::Make)?;
                Turn::Begin(Box::new(made), circle.asked.clone())
            }
            Next::Publish => Turn::Publish,
            Next::TakeOver(next) => Turn::TakeOver(next),
            Next::Drop => Turn::Drop,
            Next::Forget => Turn::Forget,
        };
        let Blueprint { name, namespace, .. } = *circle.blueprint;
        let patch = ring.turned(&turn, held, now);
        match desk.objects.merge::<Secret>(namespace, &held.name_any(), &patch).await {
            Ok(_) => {
                let words = turn.words();
                tracing::info!(namespace, cluster = name, words, "certificate authorities turn");
                Ok(Turned::Made(Some(turn)))
            }
            // Somebody has written to it since it was read.
            Err(error) if error.class() == Class::Conflict => Ok(Turned::Made(None)),
            Err(error) => Err(KeyringError::Write(error)),
        }
    }

    /// What is to be done, and the pods that lack what they should have. Members are called only if that decides it.
    async fn next(
        &self,
        desk: &Desk<'_>,
        ring: &Ring,
        found: &Wanted,
    ) -> Result<(Next, BTreeSet<String>), KeyringError> {
        let Desk { circle, now, .. } = *desk;
        let protected = Sides::of(circle.blueprint);
        let trust = Trust::on(protected, ring, desk.footings);
        let sides = protected.with_ours(desk.footings);
        let (seats, members) = circle.company();
        let is_left_alone = circle.blueprint.spec.paused || found.stuck.is_some();
        let facts = Facts {
            ring,
            lifetimes: self.lifetimes,
            now,
            asked: circle.asked.as_deref(),
            may_turn: circle.told.is_some() && sides.any() && !is_left_alone,
            // One change at a time: a side that comes to rest on others goes first, unless we were faster.
            may_begin: desk.is_settled(),
            company: Company { word: &trust.word, members: &members, seats: &seats },
        };
        let next = rotation::next(&facts, None);
        if next != Next::Prove {
            return Ok((next, BTreeSet::new()));
        }
        let signing = Signing { ring, lifetimes: self.lifetimes, now };
        let proof = prove::prove(circle, sides, &signing).await.map_err(KeyringError::Make)?;
        Ok((rotation::next(&facts, Some(&proof)), lacking_in(&proof, &seats)))
    }
}

/// The pods of those who trust others than they were made to.
pub(super) fn lacking_in(proof: &Proof, seats: &[Seat]) -> BTreeSet<String> {
    let trusts_others = |it: &&Seat| match proof.get(&it.member) {
        Some(Shown::Refuses | Shown::StillTrusts) => true,
        Some(Shown::Well | Shown::ShowsOther | Shown::Silent(_)) | None => false,
    };
    seats.iter().filter(trusts_others).map(|it| it.pod.clone()).collect()
}

/// When to look again, whatever else is due.
pub(super) fn next_look(waits: Option<&Waits>, now: Timestamp) -> Timestamp {
    let later = |span: Duration| {
        let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::ZERO);
        now.saturating_add(span).unwrap_or(Timestamp::MAX)
    };
    match waits {
        None | Some(Waits::Allowed | Waits::Room) => later(LOOK_AGAIN),
        Some(Waits::Until(at)) => later(LOOK_AGAIN).min(*at),
        Some(Waits::Started(_) | Waits::Shown(..)) => later(WAITED_FOR),
    }
}
