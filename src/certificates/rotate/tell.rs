//! What the leader tells of the authorities: metrics, and one log line for each change.
//! Comes in: decisions, writes and failures. Goes out: words, each said once until something else is
//! true. May touch: `telemetry`. No line holds a key, nor anything that was read beside dates.

use super::{Look, Rotate, Run, Written, outcome};
use crate::api::names;
use crate::certificates::carry_out::Outcome;
use crate::certificates::decide::{Because, Plan, Step};
use crate::certificates::look::Looked;
use crate::certificates::mint::Unmade;
use crate::certificates::seen::{Reading, Sight};
use crate::ports::call::{CallError, Class};
use crate::ports::changes::Change;
use crate::ports::mandate::Unled;
use crate::ports::trust::Target;
use crate::telemetry::chain;

/// What was last said, so that each is said once.
#[derive(Default)]
pub(super) struct Told {
    decided: Option<Because>,
    unread: Option<Class>,
    unwritten: Option<Class>,
    unwatched: bool,
    unmade: bool,
    targets: Vec<Option<State>>,
}

/// How a target stands, in the words of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ours,
    Elsewhere,
    Absent,
    Unknown,
}

impl State {
    const ALL: [Self; 4] = [Self::Ours, Self::Elsewhere, Self::Absent, Self::Unknown];

    const fn of(sight: &Sight) -> Self {
        match sight {
            Sight::Found { .. } => Self::Ours,
            Sight::Elsewhere => Self::Elsewhere,
            Sight::Absent => Self::Absent,
            Sight::Unknown(_) => Self::Unknown,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Elsewhere => "elsewhere",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

impl Told {
    pub(super) fn unmade(&mut self, error: &Unmade) {
        if !std::mem::replace(&mut self.unmade, true) {
            tracing::error!(error = chain(error), "failed to make a webhook authority");
        }
    }

    /// Without the watch everything still works, only later. One that breaks begins again.
    pub(super) fn watched(&mut self, change: Option<Change>) {
        if let Some(Err(Class::Refused)) = change
            && !std::mem::replace(&mut self.unwatched, true)
        {
            tracing::warn!(
                "the Kubernetes API refuses a watch of the webhook authorities or of what trusts \
                 them; looking every minute instead"
            );
        }
    }
}

impl Rotate {
    pub(super) fn tell_plan(&self, run: &mut Run, plan: Plan, reading: &Reading) {
        let because = plan.because.name();
        if run.told.decided.replace(plan.because) == Some(plan.because) {
            return;
        }
        match plan.because {
            Because::CurrentLost | Because::Damaged | Because::Empty => {
                self.tell_damage(plan, reading);
            }
            Because::CurrentInvalid | Because::NextInvalid => tracing::warn!(
                because,
                step = ?plan.step,
                "a webhook authority is not valid at this time; is the clock of this node right?"
            ),
            Because::Undone => tracing::warn!(
                because,
                "a write about the webhook authorities was undone or refused; who else writes there?"
            ),
            Because::Unreadable
            | Because::ReadRefused
            | Because::Absent
            | Because::CurrentOld
            | Because::Untrusted
            | Because::TargetUnknown
            | Because::Settling
            | Because::PreviousInUse
            | Because::Settled
            | Because::Unstamped
            | Because::PreviousUnused
            | Because::Well => {
                tracing::info!(because, step = ?plan.step, "webhook authorities decision");
            }
        }
    }

    /// Loudly: somebody or something has broken the Secret.
    fn tell_damage(&self, plan: Plan, reading: &Reading) {
        let (because, secret) = (plan.because.name(), self.secret());
        let Reading::Found { ring: _, damage } = reading else { return };
        for damage in damage {
            let (place, why) = (damage.place, damage.why.to_string());
            tracing::error!(
                secret,
                place,
                why,
                "the secret with the webhook authorities is damaged"
            );
        }
        tracing::error!(
            because,
            secret,
            step = ?plan.step,
            "mending the webhook authorities; what can still be read of them stays trusted"
        );
    }

    pub(super) fn tell_looked(&self, run: &mut Run, look: &Look) {
        let Look { ring, targets: looked } = look;
        let class = ring.failed.as_ref().map(CallError::class);
        let before = std::mem::replace(&mut run.told.unread, class);
        if let Some(error) = ring.failed.as_ref().filter(|_| before != class) {
            tracing::warn!(error = chain(error), "the leader cannot read the webhook authorities");
        }
        run.told.targets.resize(looked.len(), None);
        let targets = self.outlook.targets.iter().zip(looked).zip(&mut run.told.targets);
        for ((target, looked), told) in targets {
            let state = State::of(&looked.sight);
            if told.replace(state) != Some(state) {
                self.tell_target(target, looked, state);
            }
        }
        for state in State::ALL {
            let count = run.told.targets.iter().filter(|it| **it == Some(state)).count();
            self.metrics.certificates.targets(state.name(), count);
        }
    }

    fn tell_target(&self, target: &Target, looked: &Looked, state: State) {
        let (kind, name) = (target.kind(), target.name());
        let service = format!("{}/{}", self.outlook.namespace(), names::WEBHOOK_SERVICE);
        match state {
            State::Ours => tracing::info!(kind, name, "the webhook authorities are cared for here"),
            State::Elsewhere => tracing::warn!(
                kind,
                name,
                service,
                "this object does not call our service; its caBundle is left alone"
            ),
            State::Absent => tracing::warn!(
                kind,
                name,
                "this object is not there; nobody is made to trust the webhook authorities for it"
            ),
            State::Unknown => {
                let error = looked.failed.as_ref().map(|error| chain(error)).unwrap_or_default();
                tracing::warn!(
                    kind,
                    name,
                    error,
                    "cannot see what this object trusts; does the ClusterRole allow to get it?"
                );
            }
        }
    }

    /// Counts and tells a write; answers how it ended.
    pub(super) fn tell_written(&self, run: &mut Run, plan: Plan, written: Written) -> Outcome {
        let because = plan.because.name();
        let error = match written {
            Ok(Ok(())) => {
                run.told.unwritten = None;
                run.told.unmade = false;
                self.tell_done(plan);
                return Outcome::Written;
            }
            Ok(Err(error)) => error,
            Err(Unled::NotLeading) => return Outcome::Late,
            Err(Unled::OutOfTime(_)) => {
                tracing::warn!(because, "it is not known whether the leader's write was done");
                return Outcome::Unknown;
            }
        };
        let class = error.class();
        if run.told.unwritten.replace(class) != Some(class) {
            unwritten(plan, class, &chain(&error));
        }
        outcome(class)
    }

    fn tell_done(&self, plan: Plan) {
        let because = plan.because.name();
        self.metrics.certificates.stepped(because);
        if let Step::Inject(place) = plan.step
            && let Some(target) = self.outlook.targets.get(place)
        {
            let (kind, name) = (target.kind(), target.name());
            self.metrics.certificates.injected(kind);
            tracing::info!(kind, name, "bundle of webhook authorities written");
        } else {
            tracing::info!(because, step = ?plan.step, "webhook authorities written");
        }
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.outlook.namespace(), names::WEBHOOK_CA_SECRET)
    }
}

fn unwritten(plan: Plan, class: Class, error: &str) {
    let because = plan.because.name();
    match class {
        Class::NotFound | Class::Conflict => {
            tracing::debug!(because, error, "what was to be written had changed");
        }
        Class::Refused => tracing::warn!(
            because,
            error,
            "the Kubernetes API refuses a write about the webhook authorities; does the Role \
             allow to update the secret, and the ClusterRole to patch definitions and webhook \
             configurations?"
        ),
        Class::Unwell | Class::Unreachable => tracing::warn!(
            because,
            error,
            "it is not known whether the webhook authorities were written; will look again"
        ),
    }
}
