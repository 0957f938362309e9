//! What the wing says: in the log each thing once until something else is true, and in Events on the definition.
//! Comes in: plans, and how they ended. Goes out: log lines and Events. May touch: `clients`, the log.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};

use super::decide::{Because, Plan};
use super::record::{Phase, Record};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;
use crate::clients::leader_guard::LeaderGuard;
use crate::telemetry::error_chain;

/// An Event that does not get through is not waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// What was said last.
#[derive(Default)]
pub(super) struct Said {
    because: Option<Because>,
    unwell: bool,
}

/// An Event on a definition.
pub(super) struct Word {
    trouble: bool,
    reason: &'static str,
    note: String,
}

impl Said {
    /// Tells why nothing is done, if that is news.
    pub(super) fn plan(&mut self, kind: &Kind, plan: &Plan, definition: Option<&StoredCrd>) {
        let because = plan.because;
        if self.because.replace(because) == Some(because) {
            return;
        }
        let (definition, stored) =
            (kind.crd_name(), definition.map(|it| it.stored.join(", ")).unwrap_or_default());
        let because_of = because.name();
        if let Some(words) = words(because) {
            tracing::warn!(definition, stored, because = because_of, "{words}");
        } else {
            tracing::debug!(definition, stored, because = because_of, "stored objects");
        }
    }

    /// Tells of a step that was made; answers with what the definition should say of it, if anything.
    pub(super) fn well(
        &mut self,
        kind: &Kind,
        plan: &Plan,
        before: Option<&Record>,
        after: &Record,
    ) -> Option<Word> {
        self.unwell = false;
        let definition = kind.crd_name();
        tracing::info!(
            definition,
            because = plan.because.name(),
            phase = after.phase.name(),
            total = after.total,
            looked = after.tally.looked,
            written = after.tally.written,
            fresh = after.tally.fresh,
            gone = after.tally.gone,
            failed = after.tally.failed,
            "stored objects are carried to {}",
            after.storage
        );
        let before = before.map(|it| it.phase);
        (before != Some(after.phase)).then(|| word(before, after)).flatten()
    }

    /// Tells that a step was not made, once.
    pub(super) fn unwell(&mut self, kind: &Kind, plan: &Plan, why: &str) {
        let (definition, because) = (kind.crd_name(), plan.because.name());
        if std::mem::replace(&mut self.unwell, true) {
            tracing::debug!(definition, because, why, "still not done");
        } else {
            tracing::warn!(definition, because, why, "not done; it is tried again");
        }
    }
}

/// What a person should know of a plan that waits.
const fn words(because: Because) -> Option<&'static str> {
    Some(match because {
        Because::Stranded => {
            "objects may be stored in a version that this release does not know; nothing is carried anywhere"
        }
        Because::NotServed => "the definition is not served yet; stored objects wait",
        Because::NotConverted => {
            "the definition has several versions and no conversion by webhook; apply the definitions of this release"
        }
        Because::Paused => "an administrator has paused the carrying of stored objects",
        Because::OtherReleases => {
            "replicas of another release still run; stored objects wait for them to go"
        }
        Because::Unread => "what is stored cannot be read; it is looked at again",
        Because::ObjectsRefused => {
            "some objects could not be written, and old versions stay; the ConfigMap says which, and they are tried again"
        }
        Because::ErrandFailed => "Kubernetes' own migrator has failed",
        Because::ErrandUnserved => {
            "this Kubernetes has no migrator of its own; the operator writes itself"
        }
        Because::SwitchedOff
        | Because::NotInstalled
        | Because::NothingStale
        | Because::BackedOff
        | Because::Settling
        | Because::VersionsStale
        | Because::OwnersStale
        | Because::PagesLeft
        | Because::TriedAgain
        | Because::Proven
        | Because::TrimmedElsewhere
        | Because::ErrandUnderWay
        | Because::ErrandDone => return None,
    })
}

fn word(before: Option<Phase>, after: &Record) -> Option<Word> {
    let (storage, total, tally) = (&after.storage, after.total, after.tally);
    let calm = |reason, note| Some(Word { trouble: false, reason, note });
    match (before, after.phase) {
        (None | Some(Phase::Done), Phase::Writing | Phase::Delegated) => calm(
            "StorageMigrationStarted",
            format!("{total} objects are carried to {storage}, and change in nothing else"),
        ),
        (_, Phase::Held) => {
            Some(Word { trouble: true, reason: "StorageMigrationHeld", note: held(after) })
        }
        (Some(Phase::Proven), Phase::Owners | Phase::Done) => calm(
            "StorageMigrated",
            format!(
                "all objects are stored in {storage}: {} were written, and storedVersions is [{storage}]",
                tally.written
            ),
        ),
        (Some(Phase::Owners), Phase::Done) if tally.written > 0 => calm(
            "FieldOwnersMigrated",
            format!("the owners of {} objects speak {storage} now", tally.written),
        ),
        (
            _,
            Phase::Delegated
            | Phase::Writing
            | Phase::Verifying
            | Phase::Proven
            | Phase::Owners
            | Phase::Done,
        ) => None,
    }
}

fn held(after: &Record) -> String {
    let first: Vec<String> =
        after.failures.iter().take(3).map(|it| format!("{}: {}", it.object, it.why)).collect();
    let note = format!(
        "{} objects could not be written, and old versions stay in storedVersions; they are tried again. {}",
        after.tally.failed,
        first.join("; ")
    );
    // Kubernetes takes no more.
    note.chars().take(1000).collect()
}

impl Word {
    /// Puts the Event on the definition of a kind.
    pub(super) async fn publish(
        self,
        recorder: &Recorder,
        mandate: &LeaderGuard,
        kind: &Kind,
        uid: &str,
    ) {
        let event = Event {
            type_: if self.trouble { EventType::Warning } else { EventType::Normal },
            reason: self.reason.to_owned(),
            note: Some(self.note),
            action: "MigrateStorage".to_owned(),
            secondary: None,
        };
        publish(recorder, mandate, &event, &definition(kind, uid)).await;
    }
}

/// A definition, as Events name it.
pub(super) fn definition(kind: &Kind, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("apiextensions.k8s.io/v1".to_owned()),
        kind: Some("CustomResourceDefinition".to_owned()),
        name: Some(kind.crd_name()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Writes an Event, if this replica leads.
pub(super) async fn publish(
    recorder: &Recorder,
    mandate: &LeaderGuard,
    event: &Event,
    about: &ObjectReference,
) {
    if let Ok(Err(error)) = mandate.run(LIMIT, recorder.publish(event, about)).await {
        tracing::debug!(
            error = error_chain(&error),
            manager = names::OPERATOR,
            "an Event was not written"
        );
    }
}
