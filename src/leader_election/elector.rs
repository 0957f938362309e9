//! The election loop: observe the Lease, decide, write, report, and repeat after a delay.
//! Publishes `Leadership` on a watch channel; every choice is made by `decide`.

mod report;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch;
use tokio::time;

use super::decide::{Reason, Step, decide};
use super::lease::LeaseRef;
use super::state::{ElectionState, LeaseRecord, LeaseState, ObservedState, ReadFailure, Timing};
use super::transition::{Outcome, after_write};
use super::write::{PendingWrite, Write, may_hold_lease, prepare, released_lease};
use crate::api::leadership::Leadership;
use crate::clients::clock::{self, Clock};
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::named_object::LeaseClient;
use crate::telemetry::{Gates, Metrics};

/// The leader elector of one replica.
pub(crate) struct LeaderElector {
    pub(crate) client: LeaseClient,
    pub(crate) identity: String,
    pub(crate) timing: Timing,
    pub(crate) clock: Clock,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
    pub(crate) leadership: watch::Sender<Leadership>,
}

/// State that changes from one reconciliation to the next.
#[derive(Default)]
struct ElectionRun {
    election: ElectionState,
    /// What was logged last about decisions, reads and writes, so that each change is logged once.
    logged_reason: Option<Reason>,
    logged_read_error: Option<ErrorClass>,
    logged_write_error: Option<ErrorClass>,
}

impl LeaderElector {
    /// Competes until `stop` is done, then releases the Lease if this replica holds it. The caller
    /// stops every leader task of this process first.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = ElectionRun::default();
        loop {
            // A read may be cancelled at any time. A write that was sent is awaited, so that the
            // release below knows whether this replica holds the Lease.
            let (lease_state, lease) = tokio::select! {
                () = &mut stop => break,
                observed = self.observe(&mut run) => observed,
            };
            let delay = self.reconcile(&mut run, &lease_state, lease.as_ref()).await;
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(delay) => {}
            }
        }
        self.release(&run.election).await;
    }

    async fn observe(&self, run: &mut ElectionRun) -> (LeaseState, Option<Lease>) {
        let Some(timeout) = run.election.call_timeout(&self.timing, self.clock.now()) else {
            return (LeaseState::Unknown(ReadFailure::NoResponse), None);
        };
        match self.client.read(timeout).await {
            Ok(Some(lease)) => {
                run.logged_read_error = None;
                (LeaseState::Found(Box::new(LeaseRecord::from_lease(&lease))), Some(lease))
            }
            Ok(None) => {
                run.logged_read_error = None;
                (LeaseState::NotFound, None)
            }
            Err(error) => {
                self.report_read_error(run, &error);
                (read_failure(error.class()), None)
            }
        }
    }

    /// Decides, writes and reports; returns the delay before the next read.
    async fn reconcile(
        &self,
        run: &mut ElectionRun,
        lease_state: &LeaseState,
        lease: Option<&Lease>,
    ) -> Duration {
        let now = self.clock.now();
        let election = std::mem::take(&mut run.election).observe(&self.identity, lease_state, now);
        let state = ObservedState {
            identity: &self.identity,
            timing: &self.timing,
            now,
            lease_state,
            election: &election,
        };
        let plan = decide(&state);
        self.report_plan(run, plan, lease_state);
        if let Step::StepDown { .. } = plan.step {
            // Reported before the write: leader tasks must stop first.
            self.report(Leadership::Following);
        }
        let lease_ref = LeaseRef { namespace: &self.client.namespace, name: &self.client.name };
        let times = (self.clock.now(), clock::wall());
        let (pending, write) = prepare(&state, plan.step, lease, lease_ref, times);
        let outcome = self.act(run, &election, &pending, write).await;
        self.report_gates(lease_state, &outcome);
        let now = self.clock.now();
        run.election = after_write(election, &pending, &outcome, &self.timing, now);
        self.report(run.election.leadership(now));
        let conflict = outcome == Outcome::Conflict;
        run.election.retry_delay(&self.timing, conflict, self.clock.now())
    }

    async fn act(
        &self,
        run: &mut ElectionRun,
        election: &ElectionState,
        pending: &PendingWrite,
        write: Option<Write>,
    ) -> Outcome {
        let timeout = election.call_timeout(&self.timing, pending.sent);
        let (Some(write), Some(timeout)) = (write, timeout) else {
            return Outcome::NoWrite;
        };
        let creates = matches!(write, Write::Create(_));
        let written = match write {
            Write::Create(lease) => self.client.create(&lease, timeout).await,
            Write::Replace(lease) => self.client.replace(&lease, timeout).await,
        };
        match written {
            Ok(lease) => {
                run.logged_write_error = None;
                Outcome::Written { uid: lease.metadata.uid.unwrap_or_default() }
            }
            Err(error) => {
                self.report_write_error(run, &error);
                write_failure(error.class(), creates)
            }
        }
    }

    /// Releases the Lease if this replica holds it, so that the next leader need not wait for its
    /// expiry.
    async fn release(&self, election: &ElectionState) {
        self.report_shutdown();
        if !may_hold_lease(election) {
            return;
        }
        match self.release_lease(election).await {
            Ok(true) => tracing::info!(identity = self.identity, "lease released"),
            Ok(false) => tracing::info!(
                identity = self.identity,
                "lease is not held by this replica; nothing to release"
            ),
            Err(error) => self.report_release_error(&error),
        }
    }

    async fn release_lease(&self, election: &ElectionState) -> Result<bool, ApiError> {
        let timeout = self.timing.call_timeout();
        let lease = self.client.read(timeout).await?;
        let times = (self.clock.now(), clock::wall());
        match released_lease(election, &self.identity, lease.as_ref(), times) {
            Some(released) => self.client.replace(&released, timeout).await.map(|_| true),
            None => Ok(false),
        }
    }
}

const fn read_failure(class: ErrorClass) -> LeaseState {
    match class {
        ErrorClass::NotFound => LeaseState::NotFound,
        ErrorClass::Rejected => LeaseState::Unknown(ReadFailure::Forbidden),
        ErrorClass::Conflict | ErrorClass::ServerError | ErrorClass::Unreachable => {
            LeaseState::Unknown(ReadFailure::NoResponse)
        }
    }
}

const fn write_failure(class: ErrorClass, creates: bool) -> Outcome {
    match class {
        // A create that finds nothing lacks its namespace: an early retry does not help.
        ErrorClass::NotFound if creates => Outcome::Forbidden,
        ErrorClass::NotFound => Outcome::NotFound,
        ErrorClass::Conflict => Outcome::Conflict,
        ErrorClass::Rejected => Outcome::Forbidden,
        ErrorClass::ServerError | ErrorClass::Unreachable => Outcome::Unknown,
    }
}
