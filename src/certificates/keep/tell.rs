//! What a replica tells of its certificate: metrics, and one log line for each change.
//! Comes in: decisions and failures. Goes out: words, each said once until something else is true.
//! May touch: `telemetry`. No line holds a key, nor anything that was read beside dates.

use jiff::Timestamp;

use super::{Keep, Run};
use crate::api::names;
use crate::certificates::look::{Looked, Ring};
use crate::certificates::mint::Unmade;
use crate::certificates::renew::{Because, Leaf, Renewal};
use crate::ports::call::{CallError, Class};
use crate::ports::changes::Change;
use crate::telemetry::chain;

/// What was last said, so that each is said once.
#[derive(Default)]
pub(super) struct Told {
    decided: Option<Because>,
    unread: Option<Class>,
    uncreated: Option<Class>,
    unwatched: bool,
    unmade: bool,
    untrusted: Vec<Option<Class>>,
}

impl Told {
    pub(super) fn plan(&mut self, plan: Renewal, has_leaf: bool) {
        if self.decided.replace(plan.because) == Some(plan.because) {
            return;
        }
        let because = plan.because.name();
        match plan.because {
            Because::Stale if has_leaf => tracing::warn!(
                because,
                "the webhook authorities were not read for too long; the certificate is kept as it is"
            ),
            Because::NothingSigns => tracing::warn!(
                because,
                "no webhook authority can sign at present; waiting for the leader to make one"
            ),
            Because::Absent
            | Because::Stale
            | Because::First
            | Because::Promoted
            | Because::Invalid
            | Because::Old
            | Because::Well => tracing::debug!(because, "webhook certificate decision"),
        }
    }

    pub(super) fn signed(&mut self, plan: Renewal, leaf: &Leaf) {
        self.unmade = false;
        let because = plan.because.name();
        tracing::info!(because, until = %leaf.until, "webhook certificate signed");
    }

    pub(super) fn unmade(&mut self, error: &Unmade) {
        if !std::mem::replace(&mut self.unmade, true) {
            tracing::error!(error = chain(error), "failed to make a webhook certificate");
        }
    }
}

impl Keep {
    pub(super) fn tell_created(&self, run: &mut Run) {
        run.told.uncreated = None;
        tracing::info!(secret = self.secret(), "webhook authorities made");
    }

    pub(super) fn tell_looked(&self, run: &mut Run, looked: &Ring) {
        let Some(error) = &looked.failed else {
            run.told.unread = None;
            return;
        };
        let class = error.class();
        if run.told.unread.replace(class) != Some(class) {
            self.tell_failed(error, "get");
        }
    }

    pub(super) fn tell_uncreated(&self, run: &mut Run, error: &CallError) {
        let class = error.class();
        if run.told.uncreated.replace(class) != Some(class) {
            self.tell_failed(error, "create");
        }
        if matches!(class, Class::Refused | Class::NotFound) {
            self.gates.refused(crate::telemetry::Gate::Certificate);
        }
    }

    fn tell_failed(&self, error: &CallError, verb: &'static str) {
        let (secret, class, error) = (self.secret(), error.class(), chain(error));
        match class {
            Class::Refused | Class::NotFound => tracing::warn!(
                secret,
                verb,
                error,
                "the Kubernetes API refuses us the webhook authorities; does the Role allow this \
                 verb on this secret, and does its RoleBinding name our account?"
            ),
            Class::Conflict | Class::Unwell | Class::Unreachable => tracing::warn!(
                secret,
                verb,
                error,
                "the Kubernetes API does not answer about the webhook authorities; will try again"
            ),
        }
    }

    /// Without the watch everything still works, only later. One that breaks begins again.
    pub(super) fn tell_watched(&self, run: &mut Run, change: Change) {
        if change == Err(Class::Refused) && !std::mem::replace(&mut run.told.unwatched, true) {
            tracing::warn!(
                secret = self.secret(),
                "the Kubernetes API refuses to watch the webhook authorities; looking every \
                 minute instead"
            );
        }
    }

    pub(super) fn tell_targets(&self, run: &mut Run, looked: &[Looked]) {
        run.told.untrusted.resize(looked.len(), None);
        let targets = self.outlook.targets.iter().zip(looked).zip(&mut run.told.untrusted);
        for ((target, looked), told) in targets {
            let class = looked.failed.as_ref().map(CallError::class);
            let before = std::mem::replace(told, class);
            if let Some(error) = looked.failed.as_ref().filter(|_| before != class) {
                tracing::warn!(
                    kind = target.kind(),
                    name = target.name(),
                    error = chain(error),
                    "cannot see whether the API server trusts the webhook certificate; does the \
                     ClusterRole allow to get this object?"
                );
            }
        }
    }

    pub(super) fn tell_expiry(&self, run: &Run) {
        let told = &self.metrics.certificates;
        told.expires("leaf", run.held.leaf.as_ref().map(|leaf| leaf.until));
        let Some((ring, _)) = &run.held.ring else { return };
        let until = |it: &Option<crate::pki::authority::Authority>| -> Option<Timestamp> {
            it.as_ref().map(|authority| authority.certificate.until)
        };
        told.expires("current", until(&ring.current));
        told.expires("next", until(&ring.next));
        told.expires("previous", ring.previous.iter().map(|it| it.until).max());
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.outlook.namespace(), names::WEBHOOK_CA_SECRET)
    }
}
