//! What a pass has to tell about one member.
//! Comes in: the tale, and the member's object. Goes out: its status. May touch: `api`; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Tale;
use super::conditions::{Fact, changed};
use crate::api::condition::{ANSWERS, HEALTHY, LEFT_OUT, POD_REFUSED};
use crate::api::etcd_cluster::v1::status::MemberRole;
use crate::api::etcd_member::{EtcdMember, EtcdMemberStatus, MemberPhase};
use crate::api::field::Field;
use crate::etcd_cluster::seen::{Intent, Name, Pod, Reading, Seen};
use crate::etcd_cluster::stock::name_of;

/// What a member is to the others.
pub(super) fn role(seen: &Seen, name: &Name) -> MemberRole {
    let Reading::Known(etcd) = &seen.etcd else { return MemberRole::Unknown };
    match etcd.entry(name) {
        None => MemberRole::Unknown,
        Some(entry) if etcd.leads(entry.id) => MemberRole::Leader,
        Some(entry) if entry.learner => MemberRole::Learner,
        Some(_) => MemberRole::Voter,
    }
}

/// The status of a member.
pub(crate) fn member(tale: &Tale<'_>, object: &EtcdMember) -> EtcdMemberStatus {
    let (look, seen) = (tale.look, tale.seen);
    let name = name_of(object);
    let before = object.status.clone().unwrap_or_default();
    let standing = look.heard.standing(&name);
    let entry = seen.etcd.known().and_then(|etcd| etcd.entry(&name));
    let phase = phase(seen, &name);
    let since = match (&before.phase, &before.since) {
        (Field::Known(was), Field::Known(since)) if *was == phase => since.clone(),
        _ => look.now.to_string().into(),
    };
    let said = before.conditions.known().map(Vec::as_slice).unwrap_or_default();
    let facts = facts(tale, &name);
    let conditions = facts.iter().map(|it| changed(said, it, object.metadata.generation, look.now));
    let hex = |id: u64| format!("{id:x}").into();
    let id = entry.map(|it| it.id.0).or(standing.map(|it| it.member)).map(hex);
    EtcdMemberStatus {
        member_id: id.map_or_else(|| before.member_id.clone(), Field::Known),
        cluster_id: standing
            .map(|it| hex(it.cluster))
            .map_or_else(|| before.cluster_id.clone(), Field::Known),
        role: Field::Known(role(seen, &name)),
        phase: Field::Known(phase),
        version: standing
            .map(|it| it.version.as_str().into())
            .map_or_else(|| before.version.clone(), Field::Known),
        pod: look.stock.pod(&name).map(|_| name.0.as_str().into()).into(),
        volume: look.stock.claim(&name).map(|_| name.0.as_str().into()).into(),
        since: Field::Known(since),
        conditions: Field::Known(conditions.collect()),
    }
}

fn phase(seen: &Seen, name: &Name) -> MemberPhase {
    let Some(member) = seen.member(name) else { return MemberPhase::Gone };
    let entry = seen.etcd.known().map(|etcd| etcd.entry(name));
    match (member.intent, entry, member.pod) {
        (Intent::Leave | Intent::Left, Some(None), _) | (Intent::Left, None, _) => {
            MemberPhase::Gone
        }
        (Intent::Leave | Intent::Left, _, _) => MemberPhase::Leaving,
        (_, Some(Some(entry)), _) if entry.learner && entry.is_well() => MemberPhase::Learner,
        (_, Some(Some(entry)), _) if !entry.learner => MemberPhase::Voter,
        (_, _, Reading::Known(Pod::None | Pod::Gated)) => MemberPhase::Pending,
        (_, _, _) => MemberPhase::Starting,
    }
}

/// How it is. Each of these has its own time: who was away, was left out, or had no pod is not given up for the time of another.
fn facts(tale: &Tale<'_>, name: &Name) -> Vec<Fact> {
    let voice = tale.look.heard.voices.get(name);
    let is_heard = voice.is_some_and(|it| it.standing.is_some());
    let (silent, why_silent) = super::words::silence(tale, name);
    let answers = if is_heard {
        Fact::yes(ANSWERS, ANSWERS, "It answers.")
    } else {
        Fact::no(ANSWERS, silent, why_silent.clone())
    };
    let left_out = tale.look.is_left_out(name).then(|| {
        let why = voice.and_then(|it| it.silence.clone()).unwrap_or_else(|| "no answer".to_owned());
        format!("It answers for itself, and does not agree with the others, who agree: {why}.")
    });
    let refused =
        tale.refused.get(name).map(|why| format!("The API server refuses its pod: {why}."));
    // A learner answers without the others, and a voter needs them to agree; but one that lacks only the others is not to blame.
    let healthy = match (&left_out, &refused) {
        (Some(words), _) => Fact::no(HEALTHY, LEFT_OUT, words.clone()),
        (None, Some(words)) => Fact::no(HEALTHY, POD_REFUSED, words.clone()),
        (None, None) if is_heard => Fact::yes(HEALTHY, ANSWERS, "It answers."),
        (None, None) => Fact::no(HEALTHY, silent, why_silent),
    };
    let now_and_then = [(LEFT_OUT, left_out), (POD_REFUSED, refused)];
    let now_and_then =
        now_and_then.into_iter().filter_map(|(it, words)| Some(Fact::yes(it, it, words?)));
    [healthy, answers].into_iter().chain(now_and_then).collect()
}
