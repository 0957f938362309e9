//! The conditions of a cluster: what is the case, in words that tools and people read.
//! Comes in: the tale, and what was told before. Goes out: conditions. May touch: `api`; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::{Tale, certificates, doors, sources, words};
use crate::api::check::Verdict;
use crate::api::condition::{
    AVAILABLE, CERTIFICATES_VALID, Condition, ConditionStatus, NAMESPACE_NOT_GRANTED, PAUSED,
    QUORUM_LOST, READY, RECONCILING, RECOVERING, SCALING, STALLED, UPGRADING,
};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::field::Field;
use crate::etcd_cluster::compose::pod::restarts;
use crate::etcd_cluster::identity::tidings::Tidings;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Auth, Course, Etcd, Made, Member, Reading, Wanted, WayBack};

/// A quorum that is away for less is on its way back: members that start need an election.
const PATIENCE: Duration = Duration::from_secs(20);

/// One thing that is or is not the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    name: &'static str,
    status: ConditionStatus,
    reason: String,
    message: String,
}

impl Fact {
    pub(crate) fn yes(name: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::of(name, true, reason, message)
    }

    pub(crate) fn no(name: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::of(name, false, reason, message)
    }

    fn of(name: &'static str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False };
        Self { name, status, reason: reason.to_owned(), message: words::short(&message.into()) }
    }
}

/// A condition, with the time at which it became so.
pub(crate) fn changed(
    before: &[Condition],
    fact: &Fact,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let named = |it: &&Condition| it.kind.known().is_some_and(|kind| kind.as_str() == fact.name);
    let same = before.iter().find(named).filter(|it| it.status.known() == Some(&fact.status));
    let since = same.and_then(|it| it.last_transition_time.known().cloned());
    Condition {
        kind: Field::Known(fact.name.into()),
        status: Field::Known(fact.status),
        observed_generation: generation.into(),
        last_transition_time: Field::Known(since.unwrap_or_else(|| now.to_string().into())),
        reason: Field::Known(fact.reason.as_str().into()),
        message: Field::Known(fact.message.as_str().into()),
    }
}

/// All of them.
pub(super) fn all(tale: &Tale<'_>, before: &EtcdClusterStatus) -> Vec<Condition> {
    let said = before.conditions.known().map(Vec::as_slice).unwrap_or_default();
    let now = tale.look.now;
    let generation = tale.look.stock.cluster.metadata.generation;
    facts(tale, said).iter().map(|fact| changed(said, fact, generation, now)).collect()
}

fn facts(tale: &Tale<'_>, said: &[Condition]) -> Vec<Fact> {
    let because = tale.plan.because;
    let reason = because.word();
    let (story, not_ready) = (words::story(tale), not_ready(tale));
    let waits = tale.plan.step == Step::Wait && tale.plan.chores.is_empty();
    let behind = behind(tale);
    let to_mend = sources::to_mend(&tale.tidings).or_else(|| behind.clone());
    let needs_a_person = needs_a_person(tale) || to_mend.is_some();
    let busy = tale.trouble.is_some()
        || !because.is_as_wanted() && !needs_a_person && because != Because::Paused
        || !waits;
    let as_wanted = because.is_as_wanted() || is_tended(tale);
    let answers = matches!(tale.seen.etcd, Reading::Known(_));
    let formed = tale.seen.record.formed.is_some();
    let available = if answers && formed {
        Fact::yes(AVAILABLE, "QuorumAnswers", "A quorum of voters answers.")
    } else {
        Fact::no(AVAILABLE, if formed { reason } else { "NotFormed" }, story.clone())
    };
    let is_lost = formed && !answers && because == Because::QuorumLost && has_been_away(tale, said);
    let (stalled_reason, stalled_words) = to_mend.unwrap_or_else(|| (reason, story.clone()));
    vec![
        match not_ready.filter(|_| as_wanted).or(behind) {
            Some((why, words)) => Fact::no(READY, why, words),
            None => Fact::of(READY, as_wanted, reason, story.clone()),
        },
        available,
        if busy {
            Fact::yes(RECONCILING, reason, story.clone())
        } else {
            Fact::no(RECONCILING, reason, "Nothing is to be done.")
        },
        if needs_a_person {
            Fact::yes(STALLED, stalled_reason, stalled_words)
        } else {
            Fact::no(STALLED, "NotStalled", "Nobody is needed.")
        },
        if is_lost {
            Fact::yes(QUORUM_LOST, reason, story)
        } else {
            Fact::no(QUORUM_LOST, "NotLost", "No quorum was lost.")
        },
        paused(because),
        upgrading(tale, said),
        scaling(tale),
        recovering(tale),
        certificates(tale),
    ]
}

fn paused(because: Because) -> Fact {
    if because == Because::Paused {
        Fact::yes(PAUSED, because.word(), "`spec.paused` is true: nothing is changed.")
    } else {
        Fact::no(PAUSED, "NotPaused", "`spec.paused` is not set.")
    }
}

/// Whether nothing goes on until a person does something.
fn needs_a_person(tale: &Tale<'_>) -> bool {
    let because = tale.plan.because;
    let is_alarmed = tale.seen.etcd.known().is_some_and(|it| it.alarmed);
    // If there were a way back it would have been taken. An alarm ends by itself, or says so itself.
    let cannot_go_on = because == Because::RollingBlocked && !is_alarmed;
    // Who only lacks the others comes back with them. One that crashes runs again and again for a moment, and is no better for it.
    let attempts = tale.look.blueprint.spec.repair.recreate_attempts;
    let pod = |it: &Member| tale.look.stock.pod(&it.name);
    let fails = |it: &Member| it.fails || pod(it).is_some_and(|it| restarts(it) >= attempts);
    let is_silent = |it: &Member| tale.look.heard.standing(&it.name).is_none();
    let is_lost =
        because == Because::QuorumLost && tale.seen.staying().any(|it| is_silent(it) && fails(it));
    because.needs_a_person() || cannot_go_on || is_lost
}

/// What the spec asks for and does not get, where files are looked after meanwhile.
fn behind(tale: &Tale<'_>) -> Option<(&'static str, String)> {
    if tale.plan.because != Because::Defragmenting {
        return None;
    }
    let Wanted { way_back, course, .. } = tale.seen.wanted;
    let auth = tale.seen.etcd.known().map(|it| it.auth);
    if auth == Some(Auth::NoPassword) {
        return Some((Because::AuthBlocked.word(), doors::words(tale)));
    }
    match (way_back, course) {
        (WayBack::Taken, _) => Some((Because::TakenBack.word(), words::taken_back(tale))),
        (_, Course::NoWay) => Some((Because::Unreachable.word(), words::unreachable(tale))),
        (_, Course::Reached | Course::Further | Course::Down) => None,
    }
}

/// While files are rewritten a cluster is ready, as long as nobody is missing.
fn is_tended(tale: &Tale<'_>) -> bool {
    let is_well = |it: &Etcd| it.all_voters_are_well() && it.auth != Auth::Unnamed;
    tale.plan.because == Because::Defragmenting && tale.seen.etcd.known().is_some_and(is_well)
}

fn certificates(tale: &Tale<'_>) -> Fact {
    let Tidings { stuck, turning, changing, flaw, is_given } = &tale.tidings;
    let (holds, reason, words) = match (stuck, flaw, changing, turning) {
        (Some(stuck), ..) => (false, "CertificatesStuck", stuck.to_string()),
        (None, Some(flaw), ..) => (false, sources::flawed(flaw), sources::flaw(flaw)),
        (None, None, Some(it), _) => (true, sources::reason(it), sources::words(it)),
        (None, None, None, Some(it)) => (true, certificates::reason(it), certificates::words(it)),
        (None, None, None, None) if *is_given => (
            true,
            "Valid",
            "Certificates are valid. Others are taken up when they are there.".into(),
        ),
        (None, None, None, None) => (true, "Valid", "Certificates are renewed in time.".into()),
    };
    Fact::of(CERTIFICATES_VALID, holds, reason, words)
}

/// Why a cluster is not ready whose members are as they should be.
fn not_ready(tale: &Tale<'_>) -> Option<(&'static str, String)> {
    if let Some(stuck) = &tale.tidings.stuck {
        return Some(("CertificatesStuck", stuck.to_string()));
    }
    if let Reading::Known(council) = &tale.look.heard.council
        && let Some(alarm) = council.alarms.first()
    {
        let entry = council.list.iter().find(|it| it.id == alarm.member);
        let who = entry.and_then(|it| it.peer_urls.first()).map_or("a member", String::as_str);
        let words = format!(
            "{who} has raised the alarm {}: etcd takes no writes, or cannot be trusted.",
            alarm.word
        );
        return Some(("AlarmRaised", words));
    }
    tale.trouble.as_ref().map(|_| ("NotDone", words::story(tale)))
}

fn has_been_away(tale: &Tale<'_>, said: &[Condition]) -> bool {
    let named = |it: &&Condition| it.kind.known().is_some_and(|kind| kind.as_str() == AVAILABLE);
    let Some(was) = said.iter().find(named) else { return false };
    if was.status.known() != Some(&ConditionStatus::False) {
        return false;
    }
    let since: Option<Timestamp> =
        was.last_transition_time.known().and_then(|it| it.as_str().parse().ok());
    since.is_some_and(|since| {
        Duration::try_from(tale.look.now.duration_since(since)).unwrap_or_default() >= PATIENCE
    })
}

/// It is over when all are well that were made anew.
fn upgrading(tale: &Tale<'_>, said: &[Condition]) -> Fact {
    let because = tale.plan.because;
    let is_about_it = matches!(
        because,
        Because::Rolling
            | Because::RollingBlocked
            | Because::ChangeFails
            | Because::Settling
            | Because::Switching
    );
    if because == Because::TakenBack {
        return Fact::no(UPGRADING, because.word(), words::story(tale));
    }
    if let Some((why, words)) = behind(tale) {
        return Fact::no(UPGRADING, why, words);
    }
    let was = was_upgrading(said);
    let is_well = tale.seen.etcd.known().is_some_and(Etcd::all_voters_are_well);
    let differ = tale.seen.staying().any(|it| it.made != Made::AsWanted);
    if tale.seen.record.formed.is_none() || !(is_about_it || differ || was && !is_well) {
        return Fact::no(UPGRADING, "AsWanted", "All members are as the spec wants them.");
    }
    let story = words::story(tale);
    let words = if is_about_it { story } else { format!("{} {story}", words::rolled(tale)) };
    Fact::yes(UPGRADING, because.word(), words)
}

fn was_upgrading(said: &[Condition]) -> bool {
    said.iter().any(|it| {
        it.kind.known().is_some_and(|kind| kind.as_str() == UPGRADING)
            && it.status.known() == Some(&ConditionStatus::True)
    })
}

/// Whether it was told that members are being changed.
pub(super) fn was_changing(cluster: &EtcdCluster) -> bool {
    let said = cluster.status.as_ref().and_then(|it| it.conditions.known());
    said.is_some_and(|said| was_upgrading(said))
}

fn scaling(tale: &Tale<'_>) -> Fact {
    let (has, wants) = (tale.seen.staying().count(), tale.seen.wanted.replicas);
    let formed = tale.seen.record.formed.is_some();
    let leaves = tale.plan.because == Because::Leaving;
    if formed && wants > 0 && (has != wants || leaves) {
        Fact::yes(
            SCALING,
            tale.plan.because.word(),
            format!("{has} members stay or come, and {wants} are wanted."),
        )
    } else {
        Fact::no(SCALING, "AsWanted", "There are as many members as are wanted.")
    }
}

fn recovering(tale: &Tale<'_>) -> Fact {
    match tale.plan.because {
        Because::MemberLost
        | Because::MemberLostBlocked
        | Because::MemberUnwell
        | Because::NoSpace
        | Because::DataDiffers
        | Because::JoinFailed => {
            Fact::yes(RECOVERING, tale.plan.because.word(), words::story(tale))
        }
        Because::QuorumLost
        | Because::Paused
        | Because::Founding
        | Because::Forming
        | Because::FoundersLost
        | Because::VolumesRetained
        | Because::PredecessorThere
        | Because::Asleep
        | Because::ForeignCluster
        | Because::ForeignMember
        | Because::Leaving
        | Because::LeavingBlocked
        | Because::Joining
        | Because::Rolling
        | Because::RollingBlocked
        | Because::ChangeFails
        | Because::TakenBack
        | Because::Switching
        | Because::ChangingAuth
        | Because::AuthBlocked
        | Because::Settling
        | Because::Unreachable
        | Because::Defragmenting
        | Because::NoSpaceStays
        | Because::DataDiffersBlocked
        | Because::TooFew
        | Because::TooMany
        | Because::Well => Fact::no(RECOVERING, "NothingLost", "No member is being brought back."),
    }
}

/// Whether another room has said that the operator has no rights in the object's namespace.
pub(crate) fn is_not_granted(cluster: &EtcdCluster) -> bool {
    let said = cluster.status.as_ref().and_then(|it| it.conditions.known());
    said.into_iter().flatten().any(|it| {
        it.kind.known().is_some_and(|kind| kind.as_str() == STALLED)
            && it.reason.known().is_some_and(|why| why.as_str() == NAMESPACE_NOT_GRANTED)
    })
}

/// The reason of the condition `Ready`, as it was told before.
pub(crate) fn reason_before(cluster: &EtcdCluster) -> Option<String> {
    let said = cluster.status.as_ref()?.conditions.known()?;
    let named = |it: &&Condition| it.kind.known().is_some_and(|kind| kind.as_str() == READY);
    Some(said.iter().find(named)?.reason.known()?.as_str().to_owned())
}

/// The status of a cluster whose members cannot be asked, because there is nothing to show to them. What was known of
/// it stays.
pub(crate) fn blind(
    cluster: &EtcdCluster,
    words: &str,
    needs_a_person: bool,
    now: Timestamp,
) -> EtcdClusterStatus {
    let why = if needs_a_person { "CertificatesStuck" } else { "CertificatesAwaited" };
    let stalled = if needs_a_person {
        Fact::yes(STALLED, why, words)
    } else {
        Fact::no(STALLED, "NotStalled", "Nobody is needed.")
    };
    let facts = [
        Fact::no(READY, why, words),
        Fact::of(RECONCILING, !needs_a_person, why, words),
        stalled,
        Fact::no(CERTIFICATES_VALID, why, words),
    ];
    with_facts(cluster, &facts, now)
}

/// The status of a cluster whose spec nobody may act on. What was known of it stays.
pub(crate) fn invalid(
    cluster: &EtcdCluster,
    verdict: &Verdict,
    now: Timestamp,
) -> EtcdClusterStatus {
    let wrong: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
    let words = format!("The spec is not valid, so nothing is changed: {}", wrong.join("; "));
    let facts = [
        Fact::no(READY, "InvalidSpec", words.clone()),
        Fact::no(RECONCILING, "InvalidSpec", "Nothing is done until the spec is mended."),
        Fact::yes(STALLED, "InvalidSpec", words),
    ];
    with_facts(cluster, &facts, now)
}

/// What was told before, but for these.
fn with_facts(cluster: &EtcdCluster, facts: &[Fact], now: Timestamp) -> EtcdClusterStatus {
    let before = cluster.status.clone().unwrap_or_default();
    let said = before.conditions.known().cloned().unwrap_or_default();
    let generation = cluster.metadata.generation;
    let names: Vec<&str> = facts.iter().map(|it| it.name).collect();
    let other =
        |it: &&Condition| it.kind.known().is_some_and(|kind| !names.contains(&kind.as_str()));
    let others = said.iter().filter(other).cloned();
    let told = facts.iter().map(|fact| changed(&said, fact, generation, now));
    EtcdClusterStatus {
        observed_generation: generation.into(),
        conditions: Field::Known(told.chain(others).collect()),
        ..before
    }
}
