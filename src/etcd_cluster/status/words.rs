//! The sentences: what is the case, what is waited for, what comes next, what a person can do.
//! Comes in: the tale. Goes out: sentences. May touch: `api`, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Pod;

use super::{Tale, doors, upkeep};
use crate::api::etcd_cluster::v1::status::TakenBack;
use crate::api::etcd_version::{self, path::path};
use crate::etcd_cluster::compose::pod::{etcd, state};
use crate::etcd_cluster::heard::Voice;
use crate::etcd_cluster::plan::Because;
use crate::etcd_cluster::seen::{self, Name, Reading, quorum};
use crate::etcd_cluster::undo;

/// What members say whose data differs.
const CORRUPT: &str = "corrupt cluster";
/// The longest sentence that a status holds.
const MOST: usize = 1000;

/// Cuts what is longer than a status holds.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST.saturating_sub(3)).chain("...".chars()).collect()
}

/// The rule that asks for the next step.
pub(super) const fn because(because: Because) -> &'static str {
    match because {
        Because::Paused => "the cluster is paused",
        Because::Founding => "the founders are being made",
        Because::Forming => "the founders have yet to find each other",
        Because::FoundersLost => "the founders cannot become a cluster any more",
        Because::VolumesRetained => "there are volumes of an earlier cluster of this name",
        Because::PredecessorThere => "another cluster that had this name is not gone yet",
        Because::Asleep => "no members are wanted",
        Because::QuorumLost => "etcd does not answer with a quorum",
        Because::ForeignCluster => "another cluster answers than was founded",
        Because::ForeignMember => "etcd lists a member that is none of ours",
        Because::Leaving => "a member goes",
        Because::LeavingBlocked => "a member shall go, and the others cannot do without it",
        Because::Joining => "a member comes",
        Because::JoinFailed => "a member has not come for too long",
        Because::MemberLost => "a member has lost its data, or was unwell for too long",
        Because::MemberLostBlocked => "a member is lost, and the others cannot do without it",
        Because::Rolling => "members should be different, and are made anew one by one",
        Because::RollingBlocked => "members should be different, and it is not safe to go on",
        Because::ChangeFails => {
            "members should be different, and the first that was made so does not start"
        }
        Because::TakenBack => {
            "what the spec asks for was taken back, because a member did not start with it"
        }
        Because::Switching => "how members are called is changed",
        Because::ChangingAuth => "whether etcd asks for users is changed",
        Because::AuthBlocked => "etcd shall ask for users, and there is no password for root",
        Because::Settling => "data and log are not ready for the next release yet",
        Because::Unreachable => {
            "there is no way from the release that runs to the one that is asked for"
        }
        Because::TooFew => "there are fewer members than are wanted",
        Because::TooMany => "there are more members than are wanted",
        Because::Defragmenting => "members rewrite their files, one by one",
        Because::NoSpace => "a file has reached its quota, and room is being made",
        Because::NoSpaceStays => "a file has reached its quota, and there is no room to be made",
        Because::DataDiffers => "members have different data, and most have the same",
        Because::DataDiffersBlocked => {
            "members have different data, and nobody knows which is right"
        }
        Because::MemberUnwell => "a voter is unwell, and has time to come back",
        Because::Well => "everything is as it is wanted",
    }
}

/// How the cluster is, in a sentence or two.
pub(crate) fn story(tale: &Tale<'_>) -> String {
    let mut words = main_words(tale);
    let held_up = held_up(tale);
    if !held_up.is_empty() && !matches!(tale.plan.because, Because::Well | Because::Asleep) {
        words = format!("{words} {}", held_up.join(" "));
    }
    if let Some(trouble) = &tale.trouble {
        words = format!("{words} The last try failed: {trouble}; it is repeated.");
    }
    short(&words)
}

fn main_words(tale: &Tale<'_>) -> String {
    let seen = tale.seen;
    let wanted = seen.wanted.replicas;
    let founders = seen.record.founders.len();
    match tale.plan.because {
        Because::Paused => "The operator leaves the cluster alone because `spec.paused` is true; set it to false to go on.".to_owned(),
        Because::Founding => format!("{wanted} members are being made that found the cluster."),
        Because::Forming => format!(
            "{} of {founders} founding members answer; they become a cluster when {} do.",
            heard(tale), quorum(founders),
        ),
        Because::FoundersLost => "The founding members cannot become a cluster any more. Nothing was written to them: they are cleared away, and others take their place.".to_owned(),
        Because::VolumesRetained => retained(tale),
        Because::PredecessorThere => predecessors(tale),
        Because::Asleep => "`spec.replicas` is 0: nothing runs, and the volumes stay. Set it to a number of members to wake the cluster.".to_owned(),
        Because::QuorumLost => quorum_lost(tale),
        Because::ForeignCluster => "Another etcd cluster answers at the members' addresses than the one that was founded. Nothing is touched. Find out who started it, and remove it.".to_owned(),
        Because::ForeignMember => format!(
            "etcd lists members that the operator does not know: {}. Nothing is touched. Remove them with `etcdctl member remove`, or say whose they are.",
            list(&strangers(tale)),
        ),
        Because::Leaving => format!("{} goes: first from etcd's members, then its pod and its volume.", list(&leaving(tale))),
        Because::LeavingBlocked => format!("{} shall go, and waits: without it too few voters are left that are well.", list(&leaving(tale))),
        Because::Joining => format!("{} joins: it listens until it knows everything, then it votes.", list(&joining(tale))),
        Because::JoinFailed => format!("{} did not manage to join, and is taken back; another comes in its place.", list(&joining(tale))),
        Because::MemberLost => format!("{} is lost, and is replaced. The others answer.", list(&unwell(tale))),
        Because::MemberLostBlocked => format!(
            "{} is lost, and cannot be replaced: without it too few voters would be left that are well. Bring another one back first.",
            list(&unwell(tale)),
        ),
        Because::Rolling | Because::RollingBlocked | Because::Settling => changing(tale),
        Because::Switching | Because::ChangingAuth | Because::AuthBlocked => doors::words(tale),
        Because::Defragmenting => upkeep::rewriting(tale),
        Because::NoSpace => upkeep::no_space(tale),
        Because::NoSpaceStays => upkeep::no_space_stays(tale),
        Because::DataDiffers => upkeep::differs(tale),
        Because::DataDiffersBlocked => upkeep::asks(tale),
        Because::ChangeFails => format!(
            "{} {} does not start as it is made now. The change is taken back; no other member is touched, and nothing is lost.",
            rolled(tale), list(&failing(tale)),
        ),
        Because::TakenBack => taken_back(tale),
        Because::Unreachable => unreachable(tale),
        Because::TooFew => format!("There are {} members, and {wanted} are wanted; one after the other joins.", seen.staying().count()),
        Because::TooMany => format!("There are {} members, and {wanted} are wanted; one after the other goes.", seen.staying().count()),
        Because::MemberUnwell => format!("{} is unwell; the others answer. It is replaced if it does not come back.", list(&unwell(tale))),
        Because::Well => format!("All {wanted} members are well."),
    }
}

/// Who is still there of an earlier cluster.
fn predecessors(tale: &Tale<'_>) -> String {
    let names: Vec<String> = tale.seen.predecessors.iter().map(ToString::to_string).collect();
    format!(
        "Members of an earlier cluster called {} are still here: {}. They are waited for. If that cluster was disconnected, delete its \
         EtcdMembers first, or give this one another name.",
        tale.look.blueprint.name,
        list(&names),
    )
}

/// How a change of the members goes.
fn changing(tale: &Tale<'_>) -> String {
    if tale.plan.because == Because::Settling {
        return settling(tale);
    }
    if tale.plan.because == Because::RollingBlocked {
        return format!(
            "{} It has stopped, and no other member is touched: {}. To take the change back, put the spec back as it was.",
            rolled(tale),
            stopped(tale),
        );
    }
    let unwell = unwell(tale);
    if unwell.is_empty() {
        return format!("{} One after the other is made anew, the leader last.", rolled(tale));
    }
    format!(
        "{} {} is being made anew and has yet to answer; the others serve. Nobody else is touched before it does.",
        rolled(tale),
        list(&unwell),
    )
}

/// What is waited for before the next release comes in.
fn settling(tale: &Tale<'_>) -> String {
    let now = tale.look.blueprint.spec.version;
    let next = tale.look.way.after().unwrap_or(tale.look.way.asked);
    let run = format!("All members run etcd {now}. Before the next step, to {next},");
    if tale.seen.etcd.known().is_some_and(|it| it.lowering == seen::Lowering::Unwanted) {
        return format!(
            "etcd was told to go down a minor version, and {now} is asked for again: it is told to stay."
        );
    }
    if tale.seen.wanted.course == seen::Course::Down {
        return format!(
            "{run} etcd brings its data down to the form of {}; it does that within seconds.",
            next.minor()
        );
    }
    if super::is_settled(tale) && !super::is_readable(tale) {
        let lacks = tale.look.need().map_or(0, |it| it.lacks(tale.look.heard));
        return format!(
            "{run} each of them makes a snapshot beyond what an older release has written to its log, because {} cannot read that. The \
             operator writes entries there that change nothing: {lacks} more. A smaller `options.snapshotCount` makes it fewer.",
            next.minor(),
        );
    }
    format!(
        "{run} their data takes the form of {}; etcd does that by itself within seconds.",
        now.minor()
    )
}

/// What is still to come after the step that is being taken.
pub(super) fn ahead(tale: &Tale<'_>) -> Option<String> {
    let (asked, now) = (tale.look.way.asked, tale.look.blueprint.spec.version);
    let hops = path(now, asked).ok().filter(|it| !it.is_empty())?;
    Some(format!("after {now} come {}", etcd_version::words(&hops)))
}

/// What was taken back, and what a person can do.
pub(super) fn taken_back(tale: &Tale<'_>) -> String {
    let TakenBack { member, reason, .. } =
        undo::stands(&tale.look.stock.cluster).cloned().unwrap_or_default();
    let member = member.known().map_or("A member", |it| it.as_str()).to_owned();
    let why = reason.known().map_or("it did not answer", |it| it.as_str()).to_owned();
    format!(
        "What the spec asks for was taken back: {member} did not start with it ({why}). It runs again as the others do, which were not touched, \
         with etcd {}; nothing was lost. Nothing more happens until the spec is changed: correct it, or put it back as it was.",
        tale.look.blueprint.spec.version,
    )
}

/// Why a release cannot be reached.
pub(super) fn unreachable(tale: &Tale<'_>) -> String {
    let (asked, runs) = (tale.look.way.asked, tale.look.blueprint.spec.version);
    let why = path(runs, asked).err().map_or_else(String::new, |why| why.to_string());
    format!(
        "The members run etcd {runs} and go on with it: {why}. Put {runs} back into `spec.version`, which says {asked}."
    )
}

/// How far a change has come.
pub(super) fn rolled(tale: &Tale<'_>) -> String {
    let now = tale.look.blueprint.spec.version;
    let staying = tale.seen.staying().count();
    let done = super::updated(tale.seen).count();
    let further = ahead(tale).map(|it| format!("; {it}")).unwrap_or_default();
    format!("{done} of {staying} members are as the spec wants them, with etcd {now}{further}.")
}

/// Why no other member is touched.
fn stopped(tale: &Tale<'_>) -> String {
    let unwell = unwell(tale);
    if tale.seen.etcd.known().is_some_and(|etcd| etcd.alarmed) {
        return "an alarm is raised, and it goes on when that is over".to_owned();
    }
    if unwell.is_empty() {
        return "its data is in memory and would end with the only member that has it; ask for three members first".to_owned();
    }
    format!(
        "{} does not answer as it is made now. The others serve as before, nothing is lost, and it goes on by itself if that member answers",
        list(&unwell)
    )
}

fn retained(tale: &Tale<'_>) -> String {
    let names: Vec<String> = tale.seen.retained.iter().map(ToString::to_string).collect();
    let (cluster, namespace) = (tale.look.blueprint.name, tale.look.blueprint.namespace);
    format!(
        "Volumes of an earlier cluster called {cluster} are still here: {}. They are not touched, and not mixed with new data. To begin \
         empty, delete them: kubectl -n {namespace} delete pvc {}. To keep them, give this cluster another name.",
        list(&names),
        names.join(" "),
    )
}

fn quorum_lost(tale: &Tale<'_>) -> String {
    let refuses = |it: &Voice| it.silence.as_deref().is_some_and(|it| it.contains(CORRUPT));
    if tale.look.heard.voices.values().any(|it| it.standing.is_some() && refuses(it)) {
        return "etcd has raised the alarm CORRUPT: members have different data, and nobody is answered until a person has decided which \
                copy is right. Nothing is touched. Keep all volumes, compare the members with `etcdctl endpoint hashkv`, and end the alarm \
                with `etcdctl alarm disarm`."
            .to_owned();
    }
    let voters = tale.seen.members.iter().filter(|it| !it.intent.goes()).count();
    format!(
        "{} of {voters} members answer, and {} must agree. Nothing is removed or replaced meanwhile. Members come back by themselves when \
         their pods can run and their volumes are there: look at `kubectl describe pod`; if volumes are lost for good, restore a backup.",
        heard(tale),
        quorum(voters),
    )
}

fn heard(tale: &Tale<'_>) -> usize {
    tale.look.heard.voices.values().filter(|it| it.standing.is_some()).count()
}

fn strangers(tale: &Tale<'_>) -> Vec<String> {
    let Reading::Known(etcd) = &tale.seen.etcd else { return Vec::new() };
    let unknown = etcd.list.iter().filter(|it| tale.seen.member(&it.name).is_none());
    unknown.map(|it| it.name.to_string()).collect()
}

fn leaving(tale: &Tale<'_>) -> Vec<String> {
    let going = tale.seen.members.iter().filter(|it| it.intent.goes());
    going.map(|it| it.name.to_string()).collect()
}

fn joining(tale: &Tale<'_>) -> Vec<String> {
    let votes = |name: &Name| {
        let etcd = tale.seen.etcd.known();
        etcd.and_then(|it| it.entry(name)).is_some_and(|it| !it.learner)
    };
    let coming =
        tale.seen.members.iter().filter(|it| it.intent == seen::Intent::Join && !votes(&it.name));
    coming.map(|it| it.name.to_string()).collect()
}

fn unwell(tale: &Tale<'_>) -> Vec<String> {
    let Reading::Known(etcd) = &tale.seen.etcd else { return Vec::new() };
    etcd.voters().filter(|it| !it.is_well()).map(|it| it.name.to_string()).collect()
}

/// Who fails as it is made now.
fn failing(tale: &Tale<'_>) -> Vec<String> {
    tale.seen.staying().filter(|it| it.fails).map(|it| it.name.to_string()).collect()
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "A member".to_owned() } else { names.join(", ") }
}

/// Why a member does not answer: one word, and a sentence.
pub(super) fn silence(tale: &Tale<'_>, name: &Name) -> (&'static str, String) {
    let Some(pod) = tale.look.stock.pod(name) else {
        return ("NoPod", "It has no pod.".to_owned());
    };
    match state(pod) {
        seen::Pod::None => ("NoPod", "It has no pod.".to_owned()),
        seen::Pod::Gated => ("Waits", "Its pod waits to be let go.".to_owned()),
        seen::Pod::Refuses => ("DataLost", "Its data is gone, so etcd does not start.".to_owned()),
        seen::Pod::Going => ("PodGoes", "Its pod is on its way out.".to_owned()),
        seen::Pod::Ended => ("PodEnded", "Its pod has ended.".to_owned()),
        seen::Pod::Started if tale.look.is_rewriting(name) => {
            ("RewritesFile", "It rewrites its file, and answers nobody meanwhile.".to_owned())
        }
        seen::Pod::Started => {
            let why = tale.look.heard.voices.get(name).and_then(|it| it.silence.clone());
            let words = reason(pod).or(why).unwrap_or_else(|| "It does not answer yet.".to_owned());
            ("Silent", words)
        }
    }
}

/// Pods that cannot run, and why.
fn held_up(tale: &Tale<'_>) -> Vec<String> {
    let pods = tale.look.stock.pods.iter();
    let words = pods.filter_map(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let why = match state(pod) {
            seen::Pod::Refuses => "its data is gone, so etcd does not start".to_owned(),
            seen::Pod::Started => reason(pod)?,
            seen::Pod::None | seen::Pod::Gated | seen::Pod::Going | seen::Pod::Ended => {
                return None;
            }
        };
        Some(format!("{name}: {why}."))
    });
    words.take(3).collect()
}

/// Why a pod does not run, in Kubernetes' words.
pub(crate) fn reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|it| it.type_ == "PodScheduled" && it.status == "False");
    if let Some(it) = unscheduled {
        return it.message.as_deref().or(it.reason.as_deref()).map(trimmed);
    }
    let init = status.init_container_statuses.iter().flatten();
    let waiting = init.chain(etcd(pod)).find_map(|it| it.state.as_ref()?.waiting.as_ref());
    let waiting = waiting.filter(|it| {
        !matches!(it.reason.as_deref(), Some("PodInitializing" | "ContainerCreating"))
    })?;
    let words = [waiting.reason.clone(), waiting.message.clone()];
    Some(trimmed(&words.into_iter().flatten().collect::<Vec<_>>().join(": ")))
}

fn trimmed(words: &str) -> String {
    words.trim_end_matches('.').chars().take(300).collect()
}
