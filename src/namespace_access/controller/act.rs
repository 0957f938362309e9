//! Executes the decided steps, one write at a time.
//!
//! Guarantees: no binding is deleted because of watch events alone; the namespace is listed live
//! before.

use super::Reconciler;
use crate::api::{kinds, names};
use crate::clients::clock;
use crate::clients::rbac::{RbacError, RbacErrorClass};
use crate::namespace_access::backoff::{AppliedCondition, BackoffKey, Outcome};
use crate::namespace_access::conditions::ConditionUpdate;
use crate::namespace_access::decide::{Action, Step, Target};
use crate::namespace_access::render;
use crate::namespace_access::state::binding_entry;

impl Reconciler {
    /// Executes one step.
    pub(super) async fn execute(&mut self, step: &Step) -> Outcome {
        let done = match &step.action {
            Action::Create => self.create(&step.namespace).await,
            Action::Repair(target) => self.repair(&step.namespace, target).await,
            Action::Delete(target) => self.delete(&step.namespace, target).await,
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(error) => {
                self.reporter.failed(&step.namespace, &error);
                outcome(error.class())
            }
        };
        if outcome == Outcome::Done {
            self.reporter.done(step);
            self.metrics.namespace_access.change(step.reason.name());
        }
        let key = BackoffKey::Namespace(step.namespace.clone());
        self.backoff.record(key, outcome, self.clock.now());
        outcome
    }

    async fn create(&mut self, namespace: &str) -> Result<Outcome, RbacError> {
        let binding = self.rbac.create(&render::binding(namespace, &self.operator)).await?;
        self.watches.bindings.insert(binding_entry(&binding, &self.operator));
        Ok(Outcome::Done)
    }

    async fn repair(&mut self, namespace: &str, target: &Target) -> Result<Outcome, RbacError> {
        let patch = render::repair(target, &self.operator);
        let binding = self.rbac.patch(namespace, &patch).await?;
        self.watches.bindings.insert(binding_entry(&binding, &self.operator));
        Ok(Outcome::Done)
    }

    /// If an object is created between the list and the deletion, its watch event causes the
    /// binding to be created again.
    async fn delete(&mut self, namespace: &str, target: &Target) -> Result<Outcome, RbacError> {
        for kind in kinds::ALL {
            if self.rbac.has_any(kind, namespace).await? {
                tracing::debug!(namespace, kind = kind.name, "namespace is still in use");
                return Ok(Outcome::NotNow);
            }
        }
        let Target { uid, resource_version } = target;
        self.rbac.delete(namespace, uid, resource_version).await?;
        self.watches.bindings.remove(namespace, names::NAMESPACE_ROLE_BINDING, uid);
        Ok(Outcome::Done)
    }

    /// Updates the conditions of one object.
    pub(super) async fn update_condition(&mut self, update: &ConditionUpdate) -> Outcome {
        let outcome = match self.apply_condition(update).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.reporter.failed(&update.namespace, &error);
                outcome(error.class())
            }
        };
        let key = BackoffKey::Object(update.uid.clone());
        self.backoff.record(key, outcome, self.clock.now());
        outcome
    }

    async fn apply_condition(&mut self, update: &ConditionUpdate) -> Result<Outcome, RbacError> {
        let kind = update.kind.0;
        let Some(object) = self.rbac.read(kind, &update.namespace, &update.name).await? else {
            return Ok(Outcome::NotNow);
        };
        if object.metadata.uid.as_ref() != Some(&update.uid) {
            return Ok(Outcome::NotNow);
        }
        let object = match render::status(&object, update, &self.operator, clock::wall()) {
            None => object,
            Some(status) => {
                let (namespace, name) = (&update.namespace, &update.name);
                let object = self.rbac.apply_status(kind, namespace, name, &status).await?;
                self.reporter.updated(update);
                object
            }
        };
        let applied = AppliedCondition {
            condition: update.condition,
            before: update.resource_version.clone(),
            after: object.metadata.resource_version.unwrap_or_default(),
        };
        self.backoff.record_applied(&update.uid, applied);
        Ok(Outcome::Done)
    }
}

const fn outcome(class: RbacErrorClass) -> Outcome {
    match class {
        RbacErrorClass::NotFound | RbacErrorClass::Conflict | RbacErrorClass::Terminating => {
            Outcome::NotNow
        }
        RbacErrorClass::Forbidden | RbacErrorClass::Rejected => Outcome::Rejected,
        RbacErrorClass::ServerError | RbacErrorClass::NotLeading => Outcome::Unknown,
    }
}
