//! Does what was decided, one write at a time, and never chooses.
//! Comes in: steps and words. Goes out: how each ended, noted in the memory and on the shelf.
//! May touch: `clients::rbac`. Nothing is taken away on the word of a watch alone: the namespace is
//! looked at once more.

use super::Run;
use crate::api::{kinds, names};
use crate::clients::clock;
use crate::clients::rbac::{RbacError, RbacErrorClass};
use crate::grants::complain::Word;
use crate::grants::decide::{Act, Step, Target};
use crate::grants::memory::{Outcome, Told, Who};
use crate::grants::render;
use crate::grants::seen::bond;

impl Run {
    /// Makes one step.
    pub(super) async fn step(&mut self, step: &Step) -> Outcome {
        let done = match &step.act {
            Act::Grant => self.grant(&step.namespace).await,
            Act::Repair(target) => self.repair(&step.namespace, target).await,
            Act::Withdraw(target) => self.withdraw(&step.namespace, target).await,
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(error) => {
                self.said.failed(&step.namespace, &error);
                outcome(error.class())
            }
        };
        if outcome == Outcome::Done {
            self.said.done(step);
            self.metrics.namespace_access.change(step.because.name());
        }
        let who = Who::Namespace(step.namespace.clone());
        self.memory.settle(who, outcome, self.clock.now());
        outcome
    }

    async fn grant(&mut self, namespace: &str) -> Result<Outcome, RbacError> {
        let binding = self.port.create(&render::binding(namespace, &self.operator)).await?;
        self.world.bindings.put(bond(&binding, &self.operator));
        Ok(Outcome::Done)
    }

    async fn repair(&mut self, namespace: &str, target: &Target) -> Result<Outcome, RbacError> {
        let patch = render::repair(target, &self.operator);
        let binding = self.port.patch(namespace, &patch).await?;
        self.world.bindings.put(bond(&binding, &self.operator));
        Ok(Outcome::Done)
    }

    /// An object that is made between the look and the deletion is seen by its watch, and the
    /// binding comes back.
    async fn withdraw(&mut self, namespace: &str, target: &Target) -> Result<Outcome, RbacError> {
        for kind in kinds::ALL {
            if self.port.has_any(kind, namespace).await? {
                tracing::debug!(namespace, kind = kind.name, "the namespace is in use after all");
                return Ok(Outcome::NotNow);
            }
        }
        let Target { uid, version } = target;
        self.port.delete(namespace, uid, version).await?;
        self.world.bindings.remove(namespace, names::NAMESPACE_ROLE_BINDING, uid);
        Ok(Outcome::Done)
    }

    /// Makes one object say what it shall say.
    pub(super) async fn speak(&mut self, word: &Word) -> Outcome {
        let outcome = match self.say(word).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.said.failed(&word.namespace, &error);
                outcome(error.class())
            }
        };
        self.memory.settle(Who::Object(word.uid.clone()), outcome, self.clock.now());
        outcome
    }

    async fn say(&mut self, word: &Word) -> Result<Outcome, RbacError> {
        let kind = word.which.0;
        let Some(object) = self.port.read(kind, &word.namespace, &word.name).await? else {
            return Ok(Outcome::NotNow);
        };
        if object.metadata.uid.as_ref() != Some(&word.uid) {
            return Ok(Outcome::NotNow);
        }
        let object = match render::status(&object, word, &self.operator, clock::wall()) {
            None => object,
            Some(status) => {
                let (namespace, name) = (&word.namespace, &word.name);
                let object = self.port.apply_status(kind, namespace, name, &status).await?;
                self.said.spoken(word);
                object
            }
        };
        let after = object.metadata.resource_version.unwrap_or_default();
        let told = Told { says: word.says, before: word.version.clone(), after };
        self.memory.tell(&word.uid, told);
        Ok(Outcome::Done)
    }
}

const fn outcome(class: RbacErrorClass) -> Outcome {
    match class {
        RbacErrorClass::NotFound | RbacErrorClass::Conflict | RbacErrorClass::Terminating => {
            Outcome::NotNow
        }
        RbacErrorClass::Forbidden | RbacErrorClass::Rejected => Outcome::Refused,
        RbacErrorClass::ServerError | RbacErrorClass::NotLeading => Outcome::Unknown,
    }
}
