//! What to do about the stored objects of one definition: a ladder of rules, the first that speaks wins.
//! Comes in: `Seen`. Goes out: one step, and which rule said so. May touch: nothing; pure.
//!
//! Nothing is trimmed that was not proven under the definition as it is, and nothing is written while it is not sure
//! that everybody writes the same version and somebody converts.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::record::{Phase, Record};
use super::seen::{End, Errand, Reading, Seen, Way};
use crate::api::crd::stored::StoredCrd;
use crate::api::monotonic::MonotonicTime;

/// After a definition has changed, each API server learns of it at its own pace, and stores in the old version until
/// then.
pub(crate) const SETTLE: Duration = Duration::from_secs(10);
/// What is waited for is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How an errand stands is asked this often.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// A pass that left objects behind is repeated after this time; after each, the pause is twice as long.
const FIRST_REPEAT: Duration = Duration::from_secs(30);
const MOST_REPEAT: Duration = Duration::from_mins(10);
/// After so many failed errands this operator writes itself.
const MOST_ERRANDS: u32 = 3;

/// One step, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) step: Step,
    pub(crate) because: Because,
    /// When to look again, if nothing happens before; never, if there is nothing to wait for.
    pub(crate) wake: Option<MonotonicTime>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Wait,
    /// Find out the present revision, try whether objects can be converted, and write down that a run begins.
    Begin(Goal),
    /// Work through the next page of the list.
    Page(Phase),
    /// Write down another phase.
    Note(Phase),
    /// Take the versions that are gone out of the definition.
    Trim,
    /// Ask Kubernetes' own migrator.
    Send,
    /// Take back what was asked, and count it as failed if it has.
    Clear {
        /// The uid of what was asked.
        uid: String,
        /// Whether it has failed.
        failed: bool,
    },
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Every object stored in the storage version.
    Storage,
    /// Every owner speaking a version that is served.
    Owners,
}

/// Which rule spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Because {
    Unread,
    SwitchedOff,
    NotInstalled,
    NothingStale,
    Stranded,
    NotServed,
    NotConverted,
    Paused,
    OtherReleases,
    BackedOff,
    Settling,
    VersionsStale,
    OwnersStale,
    PagesLeft,
    ObjectsRefused,
    TriedAgain,
    Proven,
    TrimmedElsewhere,
    ErrandUnderWay,
    ErrandDone,
    ErrandFailed,
    ErrandUnserved,
}

impl Because {
    /// One word, for logs, metrics and Events.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unread => "Unread",
            Self::SwitchedOff => "SwitchedOff",
            Self::NotInstalled => "NotInstalled",
            Self::NothingStale => "NothingStale",
            Self::Stranded => "Stranded",
            Self::NotServed => "NotServed",
            Self::NotConverted => "NotConverted",
            Self::Paused => "Paused",
            Self::OtherReleases => "OtherReleases",
            Self::BackedOff => "BackedOff",
            Self::Settling => "Settling",
            Self::VersionsStale => "VersionsStale",
            Self::OwnersStale => "OwnersStale",
            Self::PagesLeft => "PagesLeft",
            Self::ObjectsRefused => "ObjectsRefused",
            Self::TriedAgain => "TriedAgain",
            Self::Proven => "Proven",
            Self::TrimmedElsewhere => "TrimmedElsewhere",
            Self::ErrandUnderWay => "ErrandUnderWay",
            Self::ErrandDone => "ErrandDone",
            Self::ErrandFailed => "ErrandFailed",
            Self::ErrandUnserved => "ErrandUnserved",
        }
    }
}

fn plan(step: Step, because: Because) -> Plan {
    Plan { step, because, wake: None }
}

fn wait(because: Because, wake: Option<MonotonicTime>) -> Plan {
    Plan { step: Step::Wait, because, wake }
}

/// What to do now.
pub(crate) fn decide(seen: &Seen<'_>) -> Plan {
    let soon = Some(seen.now.plus(LOOK_AGAIN));
    if seen.way == Way::Off {
        return wait(Because::SwitchedOff, None);
    }
    let (Reading::Known(definition), Reading::Known(record)) = (&seen.definition, &seen.record)
    else {
        return wait(Because::Unread, soon);
    };
    let Some(definition) = definition else { return wait(Because::NotInstalled, None) };
    let run = record.as_ref().filter(|record| record.is_of(definition));
    if !is_work(definition, record.as_ref()) {
        return match run {
            // Somebody else said that nothing is stored in an old version any more.
            Some(run) if run.phase != Phase::Done => {
                plan(Step::Note(Phase::Done), Because::TrimmedElsewhere)
            }
            Some(_) | None => wait(Because::NothingStale, None),
        };
    }
    if let Some(because) = obstacle(seen, definition) {
        return wait(because, soon);
    }
    if let Some(again) = seen.memory.again(seen.now) {
        return wait(Because::BackedOff, Some(again));
    }
    match run {
        Some(run) if run.phase != Phase::Done => go_on(seen, definition, run),
        Some(_) | None => begin(seen, definition),
    }
}

/// Whether there is anything to do at all.
pub(crate) fn is_work(definition: &StoredCrd, record: Option<&Record>) -> bool {
    definition.is_stale() || owners_are_stale(definition, record)
}

/// Whether somebody may speak a version that is not served. Nobody looks again as long as the same ones are.
fn owners_are_stale(definition: &StoredCrd, record: Option<&Record>) -> bool {
    let known = record.filter(|record| record.uid == definition.uid);
    known.is_none_or(|record| record.owners_speak != definition.served())
}

/// What keeps a run from beginning, or from going on.
fn obstacle(seen: &Seen<'_>, definition: &StoredCrd) -> Option<Because> {
    let serves = |name: &str| definition.versions.iter().any(|(it, served)| it == name && *served);
    if !definition.unknown_versions(seen.kind).is_empty() {
        return Some(Because::Stranded);
    }
    if !definition.established || !serves(seen.kind.hub().name) {
        return Some(Because::NotServed);
    }
    if definition.versions.len() > 1 && !definition.converted {
        return Some(Because::NotConverted);
    }
    if definition.paused {
        return Some(Because::Paused);
    }
    match seen.others {
        Reading::Known(false) => None,
        Reading::Known(true) => Some(Because::OtherReleases),
        Reading::Unknown => Some(Because::Unread),
    }
}

fn begin(seen: &Seen<'_>, definition: &StoredCrd) -> Plan {
    if !definition.is_stale() {
        return plan(Step::Begin(Goal::Owners), Because::OwnersStale);
    }
    let settled = seen.memory.known_since().unwrap_or(seen.now).plus(SETTLE);
    if settled > seen.now {
        return wait(Because::Settling, Some(settled));
    }
    plan(Step::Begin(Goal::Storage), Because::VersionsStale)
}

fn go_on(seen: &Seen<'_>, definition: &StoredCrd, run: &Record) -> Plan {
    match run.phase {
        Phase::Delegated => delegated(seen, run),
        Phase::Writing | Phase::Verifying | Phase::Proven if !definition.is_stale() => {
            plan(Step::Note(Phase::Owners), Because::TrimmedElsewhere)
        }
        Phase::Writing | Phase::Verifying | Phase::Owners => {
            plan(Step::Page(run.phase), Because::PagesLeft)
        }
        Phase::Proven => plan(Step::Trim, Because::Proven),
        Phase::Held => {
            let repeat = seen.memory.held_since().unwrap_or(seen.now).plus(repeat_after(run.pass));
            if repeat > seen.now && !seen.memory.is_news(seen.asked.as_ref()) {
                return wait(Because::ObjectsRefused, Some(repeat.min(seen.now.plus(LOOK_AGAIN))));
            }
            let goal = if definition.is_stale() { Phase::Writing } else { Phase::Owners };
            plan(Step::Note(goal), Because::TriedAgain)
        }
        Phase::Done => wait(Because::NothingStale, None),
    }
}

fn delegated(seen: &Seen<'_>, run: &Record) -> Plan {
    let asked = run.errand.clone().unwrap_or_default();
    let errand = match &seen.errand {
        Reading::Known(errand) => errand,
        Reading::Unknown => return wait(Because::Unread, Some(seen.now.plus(LOOK_AGAIN))),
    };
    match errand {
        _ if seen.way != Way::Kubernetes || asked.failed >= MOST_ERRANDS => {
            plan(Step::Note(Phase::Writing), Because::ErrandFailed)
        }
        Errand::Unserved => plan(Step::Note(Phase::Writing), Because::ErrandUnserved),
        Errand::Absent => plan(Step::Send, Because::VersionsStale),
        Errand::There { uid, end } if *uid == asked.uid => match end {
            None => wait(Because::ErrandUnderWay, Some(seen.now.plus(ASK_AGAIN))),
            // It says so even if it left the definition as it was, and whatever somebody else wrote meanwhile.
            Some(End::Succeeded) => plan(Step::Note(Phase::Verifying), Because::ErrandDone),
            Some(End::Failed) => {
                plan(Step::Clear { uid: uid.clone(), failed: true }, Because::ErrandFailed)
            }
        },
        // What was asked before this run says nothing about it.
        Errand::There { uid, end: _ } => {
            plan(Step::Clear { uid: uid.clone(), failed: false }, Because::VersionsStale)
        }
    }
}

fn repeat_after(pass: u32) -> Duration {
    FIRST_REPEAT.saturating_mul(2_u32.saturating_pow(pass.saturating_sub(1))).min(MOST_REPEAT)
}

#[cfg(test)]
mod tests;
