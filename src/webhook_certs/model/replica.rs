//! A replica of the model test. Its rules are the real ones; the two tasks around them are
//! simulated: the model passes in the time and the responses, and a certificate is only a number.

use std::time::Duration;

use jiff::Timestamp;

use super::server::{View, Write};
use super::{CALL_TIMEOUT, wall};
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::{Certificate, CertificateAuthority, PrivateKey};
use crate::webhook_certs::apply::{Outcome, after_write, apply};
use crate::webhook_certs::ca_set::CaSet;
use crate::webhook_certs::decide::{self, Plan, Step, decide};
use crate::webhook_certs::leaf::{
    self, Leaf, LeafStep, ReplicaState, Times, is_trusted_by_targets, leaf_validity, plan_leaf,
};
use crate::webhook_certs::lifetimes::{Lifetimes, later};
use crate::webhook_certs::state::{
    LeaderState, ObservedState, ReadFailure, SecretState, TargetState,
};

enum TaskState {
    Idle {
        until: u64,
    },
    /// The response is in flight. It contains the state at the time of the request.
    Reading {
        due: u64,
        view: Option<View>,
        sent: u64,
    },
    Writing {
        deadline: u64,
        plan: Option<Plan>,
        bundle: Vec<u8>,
    },
}

/// One of the two tasks of a replica.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    ServingCertificate,
    CaRotation,
}

pub(super) struct Replica {
    pub(super) process: u64,
    /// The error of its wall clock, in seconds.
    pub(super) skew: i64,
    lifetimes: Lifetimes,
    pub(super) paused_until: u64,
    pub(super) disconnected_until: u64,
    /// Until when its watches deliver no events.
    pub(super) watch_broken_until: u64,
    pub(super) leads: bool,
    pub(super) state: ReplicaState,
    pub(super) gate_open: bool,
    pub(super) leaves: u64,
    leader_state: LeaderState,
    serving: TaskState,
    rotation: TaskState,
    cas: u64,
}

impl Replica {
    pub(super) fn new(process: u64, skew: i64, lifetimes: Lifetimes) -> Self {
        Self {
            process,
            skew,
            lifetimes,
            paused_until: 0,
            disconnected_until: 0,
            watch_broken_until: 0,
            leads: false,
            state: ReplicaState::default(),
            gate_open: false,
            leaves: 0,
            leader_state: LeaderState::default(),
            serving: TaskState::Idle { until: 0 },
            rotation: TaskState::Idle { until: 0 },
            cas: 0,
        }
    }

    fn times(&self, now: u64) -> Times {
        Times { now: instant(now), wall: wall(now, self.skew) }
    }

    /// A watch event: the Secret or a target has changed.
    pub(super) fn notify(&mut self, now: u64) {
        if now < self.watch_broken_until || now < self.disconnected_until {
            return;
        }
        for task_state in [&mut self.serving, &mut self.rotation] {
            if let TaskState::Idle { until } = task_state {
                *until = (*until).min(now + 1);
            }
        }
    }

    pub(super) fn is_paused(&self, now: u64) -> bool {
        now < self.paused_until
    }

    pub(super) fn set_leading(&mut self, leads: bool, now: u64) {
        if self.leads != leads {
            self.leads = leads;
            self.leader_state = LeaderState::default();
            self.rotation = TaskState::Idle { until: now };
        }
    }

    /// The response to a write.
    pub(super) fn respond(&mut self, task: Task, outcome: Outcome, now: u64) {
        match task {
            Task::ServingCertificate => self.serving = TaskState::Idle { until: now + 1 },
            Task::CaRotation => self.written(outcome, now),
        }
    }

    fn written(&mut self, outcome: Outcome, now: u64) {
        let idle = TaskState::Idle { until: now + 1 };
        if let TaskState::Writing { plan, bundle, .. } = std::mem::replace(&mut self.rotation, idle)
            && let Some(plan) = plan
        {
            let leader_state = std::mem::take(&mut self.leader_state);
            self.leader_state = after_write(leader_state, plan, outcome, bundle, instant(now));
        }
    }

    /// Advances both tasks to `now`; `read` returns the state of the server and the response time.
    pub(super) fn tick(
        &mut self,
        now: u64,
        read: &mut dyn FnMut() -> (View, u64),
    ) -> Vec<(Task, Write)> {
        if self.is_paused(now) {
            return Vec::new();
        }
        let create = self.serving(now, read).map(|write| (Task::ServingCertificate, write));
        let rotation = if self.leads { self.rotation(now, read) } else { None };
        create.into_iter().chain(rotation.map(|write| (Task::CaRotation, write))).collect()
    }

    fn read(&self, now: u64, read: &mut dyn FnMut() -> (View, u64)) -> TaskState {
        let (view, delay) = read();
        let view = (now >= self.disconnected_until).then_some(view);
        TaskState::Reading { due: now + delay, view, sent: now }
    }

    fn serving(&mut self, now: u64, read: &mut dyn FnMut() -> (View, u64)) -> Option<Write> {
        match &mut self.serving {
            TaskState::Idle { until } if now < *until => return None,
            TaskState::Idle { .. } => self.serving = self.read(now, read),
            TaskState::Writing { deadline, .. } if now < *deadline => return None,
            TaskState::Writing { .. } => self.serving = TaskState::Idle { until: now + 1 },
            TaskState::Reading { .. } => {}
        }
        let TaskState::Reading { due, view, sent } = &mut self.serving else { return None };
        if now < *due {
            return None;
        }
        let (view, sent) = (view.take(), *sent);
        self.plan_leaf(view, sent, now)
    }

    fn plan_leaf(&mut self, view: Option<View>, sent: u64, now: u64) -> Option<Write> {
        let (secret_state, target_states) = match view {
            Some(view) => (view.secret_state, view.target_states),
            None => (
                SecretState::Unknown(ReadFailure::NoResponse),
                vec![TargetState::Unknown(ReadFailure::NoResponse)],
            ),
        };
        let (sent, times) = (self.times(sent), self.times(now));
        self.state = std::mem::take(&mut self.state).observe(&secret_state, sent);
        let plan = plan_leaf(&self.lifetimes, &self.state, &secret_state, times);
        if plan.step == LeafStep::Issue {
            let ca = self.state.signing_ca(&self.lifetimes, times).unwrap().certificate.clone();
            self.issue_leaf(ca, times.wall);
        }
        self.gate_open |=
            is_trusted_by_targets(&self.state, &target_states, times.wall) == Some(true);
        if plan.step == LeafStep::CreateSecret {
            let ca_set = CaSet::new(self.issue_ca(times.wall), &self.state.known_certificates());
            let deadline = now + CALL_TIMEOUT;
            self.serving = TaskState::Writing { deadline, plan: None, bundle: Vec::new() };
            return Some(Write::Create(ca_set));
        }
        let delay = leaf::requeue_delay(&self.lifetimes, &self.state, plan, times.wall);
        let delay = delay.as_secs().max(1);
        let delay = if self.gate_open { delay } else { delay.min(2) };
        self.serving = TaskState::Idle { until: now + delay };
        None
    }

    fn issue_leaf(&mut self, ca: Certificate, wall: Timestamp) {
        let (from, until) = leaf_validity(&self.lifetimes, &ca, wall);
        self.leaves += 1;
        self.state.leaf = Some(Leaf { ca, issued: wall, from, until });
    }

    /// A CA that is unique in this model.
    fn issue_ca(&mut self, wall: Timestamp) -> CertificateAuthority {
        self.cas += 1;
        let der = [self.process.to_be_bytes(), self.cas.to_be_bytes()].concat();
        let (from, until) = (self.lifetimes.not_before(wall), later(wall, self.lifetimes.ca));
        let certificate = Certificate { der, from, until };
        CertificateAuthority { certificate, key: PrivateKey::new(Vec::new()) }
    }

    fn rotation(&mut self, now: u64, read: &mut dyn FnMut() -> (View, u64)) -> Option<Write> {
        match &mut self.rotation {
            TaskState::Idle { until } if now < *until => return None,
            TaskState::Idle { .. } => self.rotation = self.read(now, read),
            TaskState::Writing { deadline, .. } if now < *deadline => return None,
            TaskState::Writing { .. } => self.written(Outcome::Unknown, now),
            TaskState::Reading { .. } => {}
        }
        let TaskState::Reading { due, view, sent } = &mut self.rotation else { return None };
        if now < *due {
            return None;
        }
        let (view, sent) = (view.take(), *sent);
        self.rotation = TaskState::Idle { until: now + 1 };
        self.decide(&view?, sent, now)
    }

    fn decide(&mut self, view: &View, sent: u64, now: u64) -> Option<Write> {
        let Times { now: instant, wall } = self.times(now);
        let leader_state = std::mem::take(&mut self.leader_state);
        let leader_state = leader_state.observe(&view.secret_state, &view.target_states, instant);
        self.leader_state = leader_state.clone();
        let lifetimes = self.lifetimes;
        let state = ObservedState {
            lifetimes: &lifetimes,
            wall,
            now: instant,
            secret_state: &view.secret_state,
            targets: &view.target_states,
            leader_state: &leader_state,
        };
        let plan = decide(&state);
        let delay = decide::requeue_delay(&state, plan).as_secs().max(1);
        self.rotation = TaskState::Idle { until: now + delay };
        let SecretState::Found { ca_set, .. } = &view.secret_state else { return None };
        let write = if let Step::InjectBundle(target) = plan.step {
            Write::InjectBundle { target, version: view.versions[target], bundle: ca_set.bundle() }
        } else {
            let new_ca = || Ok::<_, ()>(self.issue_ca(wall));
            let ca_set = apply(&state, ca_set, plan, new_ca).unwrap()?;
            Write::Replace { version: view.version, ca_set, observed: sent }
        };
        let deadline = now + CALL_TIMEOUT;
        self.rotation = TaskState::Writing { deadline, plan: Some(plan), bundle: ca_set.bundle() };
        Some(write)
    }
}

fn instant(now: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(now))
}
