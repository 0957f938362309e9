//! A replica of the model world. Its rules are the real ones; what is made up is the corridors around
//! them: their time and their answers are handed to them, and certificates are mere numbers.
//! Comes in: the world's time, views, ends of writes. Goes out: writes. May touch: nothing.

use std::time::Duration;

use jiff::Timestamp;

use super::server::{View, Write};
use super::{LIMIT, wall};
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::{Certificate, CertificateAuthority, PrivateKey};
use crate::webhook_certs::apply::{Outcome, after_write, apply};
use crate::webhook_certs::ca_set::CaSet;
use crate::webhook_certs::decide::{self, Plan, decide};
use crate::webhook_certs::leaf::{
    self, Leaf, ReplicaState, Step, Times, is_trusted_by_targets, renew, span,
};
use crate::webhook_certs::lifetimes::{Lifetimes, later};
use crate::webhook_certs::state::{
    LeaderState, ObservedState, ReadFailure, SecretState, TargetState,
};

enum Doing {
    Resting {
        until: u64,
    },
    /// The answer is on its way. It shows the world as it was when it was asked for.
    Looking {
        due: u64,
        view: Option<View>,
        asked: u64,
    },
    Writing {
        limit: u64,
        plan: Option<Plan>,
        bundle: Vec<u8>,
    },
}

/// One of the two corridors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Corridor {
    ServingCertificate,
    CaRotation,
}

pub(super) struct Replica {
    pub(super) process: u64,
    /// How far its wall clock is off, in seconds.
    pub(super) skew: i64,
    lifetimes: Lifetimes,
    pub(super) paused_until: u64,
    pub(super) cut_until: u64,
    /// Until when no watch tells it anything.
    pub(super) deaf_until: u64,
    pub(super) leads: bool,
    pub(super) state: ReplicaState,
    pub(super) opened: bool,
    pub(super) signed: u64,
    memory: LeaderState,
    keep: Doing,
    rotate: Doing,
    authorities: u64,
}

impl Replica {
    pub(super) fn new(process: u64, skew: i64, lifetimes: Lifetimes) -> Self {
        Self {
            process,
            skew,
            lifetimes,
            paused_until: 0,
            cut_until: 0,
            deaf_until: 0,
            leads: false,
            state: ReplicaState::default(),
            opened: false,
            signed: 0,
            memory: LeaderState::default(),
            keep: Doing::Resting { until: 0 },
            rotate: Doing::Resting { until: 0 },
            authorities: 0,
        }
    }

    fn times(&self, now: u64) -> Times {
        Times { now: moment(now), wall: wall(now, self.skew) }
    }

    /// The Secret or a target has changed.
    pub(super) fn wake(&mut self, now: u64) {
        if now < self.deaf_until || now < self.cut_until {
            return;
        }
        for doing in [&mut self.keep, &mut self.rotate] {
            if let Doing::Resting { until } = doing {
                *until = (*until).min(now + 1);
            }
        }
    }

    pub(super) fn is_paused(&self, now: u64) -> bool {
        now < self.paused_until
    }

    pub(super) fn lead(&mut self, leads: bool, now: u64) {
        if self.leads != leads {
            self.leads = leads;
            self.memory = LeaderState::default();
            self.rotate = Doing::Resting { until: now };
        }
    }

    /// The end of a write.
    pub(super) fn answer(&mut self, corridor: Corridor, outcome: Outcome, now: u64) {
        match corridor {
            Corridor::ServingCertificate => self.keep = Doing::Resting { until: now + 1 },
            Corridor::CaRotation => self.written(outcome, now),
        }
    }

    fn written(&mut self, outcome: Outcome, now: u64) {
        let rest = Doing::Resting { until: now + 1 };
        if let Doing::Writing { plan, bundle, .. } = std::mem::replace(&mut self.rotate, rest)
            && let Some(plan) = plan
        {
            let memory = std::mem::take(&mut self.memory);
            self.memory = after_write(memory, plan, outcome, bundle, moment(now));
        }
    }

    /// Goes on as far as it can; `look` shows the world, and how long its answers take.
    pub(super) fn tick(
        &mut self,
        now: u64,
        look: &mut dyn FnMut() -> (View, u64),
    ) -> Vec<(Corridor, Write)> {
        if self.is_paused(now) {
            return Vec::new();
        }
        let kept = self.keep(now, look).map(|write| (Corridor::ServingCertificate, write));
        let rotated = if self.leads { self.rotate(now, look) } else { None };
        kept.into_iter().chain(rotated.map(|write| (Corridor::CaRotation, write))).collect()
    }

    fn ask(&self, now: u64, look: &mut dyn FnMut() -> (View, u64)) -> Doing {
        let (view, delay) = look();
        let view = (now >= self.cut_until).then_some(view);
        Doing::Looking { due: now + delay, view, asked: now }
    }

    fn keep(&mut self, now: u64, look: &mut dyn FnMut() -> (View, u64)) -> Option<Write> {
        match &mut self.keep {
            Doing::Resting { until } if now < *until => return None,
            Doing::Resting { .. } => self.keep = self.ask(now, look),
            Doing::Writing { limit, .. } if now < *limit => return None,
            Doing::Writing { .. } => self.keep = Doing::Resting { until: now + 1 },
            Doing::Looking { .. } => {}
        }
        let Doing::Looking { due, view, asked } = &mut self.keep else { return None };
        if now < *due {
            return None;
        }
        let (view, asked) = (view.take(), *asked);
        self.renew(view, asked, now)
    }

    fn renew(&mut self, view: Option<View>, asked: u64, now: u64) -> Option<Write> {
        let (secret_state, targets_state) = match view {
            Some(view) => (view.secret_state, view.targets_state),
            None => (
                SecretState::Unknown(ReadFailure::NoResponse),
                vec![TargetState::Unknown(ReadFailure::NoResponse)],
            ),
        };
        let (asked, times) = (self.times(asked), self.times(now));
        self.state = std::mem::take(&mut self.state).look(&secret_state, asked);
        let plan = renew(&self.lifetimes, &self.state, &secret_state, times);
        if plan.step == Step::Sign {
            let signer = self.state.signer(&self.lifetimes, times).unwrap().certificate.clone();
            self.sign(signer, times.wall);
        }
        self.opened |= is_trusted_by_targets(&self.state, &targets_state, times.wall) == Some(true);
        if plan.step == Step::Create {
            let ca_set = CaSet::new(self.authority(times.wall), &self.state.remembered());
            self.keep = Doing::Writing { limit: now + LIMIT, plan: None, bundle: Vec::new() };
            return Some(Write::Create(ca_set));
        }
        let rest = leaf::rest(&self.lifetimes, &self.state, plan, times.wall).as_secs().max(1);
        let rest = if self.opened { rest } else { rest.min(2) };
        self.keep = Doing::Resting { until: now + rest };
        None
    }

    fn sign(&mut self, authority: Certificate, wall: Timestamp) {
        let (from, until) = span(&self.lifetimes, &authority, wall);
        self.signed += 1;
        self.state.leaf = Some(Leaf { authority, signed: wall, from, until });
    }

    /// Unlike any other in this world.
    fn authority(&mut self, wall: Timestamp) -> CertificateAuthority {
        self.authorities += 1;
        let der = [self.process.to_be_bytes(), self.authorities.to_be_bytes()].concat();
        let (from, until) = (self.lifetimes.from(wall), later(wall, self.lifetimes.ca));
        let certificate = Certificate { der, from, until };
        CertificateAuthority { certificate, key: PrivateKey::new(Vec::new()) }
    }

    fn rotate(&mut self, now: u64, look: &mut dyn FnMut() -> (View, u64)) -> Option<Write> {
        match &mut self.rotate {
            Doing::Resting { until } if now < *until => return None,
            Doing::Resting { .. } => self.rotate = self.ask(now, look),
            Doing::Writing { limit, .. } if now < *limit => return None,
            Doing::Writing { .. } => self.written(Outcome::Unknown, now),
            Doing::Looking { .. } => {}
        }
        let Doing::Looking { due, view, asked } = &mut self.rotate else { return None };
        if now < *due {
            return None;
        }
        let (view, asked) = (view.take(), *asked);
        self.rotate = Doing::Resting { until: now + 1 };
        self.decide(&view?, asked, now)
    }

    fn decide(&mut self, view: &View, observed: u64, now: u64) -> Option<Write> {
        let Times { now: moment, wall } = self.times(now);
        let memory =
            std::mem::take(&mut self.memory).look(&view.secret_state, &view.targets_state, moment);
        self.memory = memory.clone();
        let lifetimes = self.lifetimes;
        let seen = ObservedState {
            lifetimes: &lifetimes,
            wall,
            now: moment,
            secret_state: &view.secret_state,
            targets: &view.targets_state,
            memory: &memory,
        };
        let plan = decide(&seen);
        let rest = decide::rest(&seen, plan).as_secs().max(1);
        self.rotate = Doing::Resting { until: now + rest };
        let SecretState::Found { ca_set, .. } = &view.secret_state else { return None };
        let write = if let decide::Step::InjectBundle(place) = plan.step {
            Write::InjectBundle { place, version: view.versions[place], bundle: ca_set.bundle() }
        } else {
            let fresh = || Ok::<_, ()>(self.authority(wall));
            let ca_set = apply(&seen, ca_set, plan, fresh).unwrap()?;
            Write::Replace { version: view.version, ca_set, observed }
        };
        self.rotate =
            Doing::Writing { limit: now + LIMIT, plan: Some(plan), bundle: ca_set.bundle() };
        Some(write)
    }
}

fn moment(now: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(now))
}
