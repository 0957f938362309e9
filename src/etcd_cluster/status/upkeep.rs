//! The sentences about members' files, and about data that differs; and how far a round has come.
//! Comes in: the tale. Goes out: sentences. May touch: `api`; pure. Sizes are told in whole MiB, so that a busy cluster costs no writes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use super::Tale;
use crate::api::bytes;
use crate::api::etcd_cluster::v1::status::Progress;
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::etcd_cluster::compose::upkeep::File;
use crate::etcd_cluster::hop::Way;
use crate::etcd_cluster::seen::{Etcd, Name, Registered, quorum};
use crate::etcd_cluster::upkeep::Told;

const MEBI: u64 = 1 << 20;

/// How far a round has come, while one goes on.
pub(super) fn progress(tale: &Tale<'_>) -> Field<Progress> {
    let told = told(tale);
    let Some(round) = told.round() else { return Field::Absent };
    let all = tale.seen.etcd.known().map(|etcd| etcd.voters().count());
    let all = all.unwrap_or_else(|| tale.seen.staying().count());
    let had: BTreeSet<&Name> = round.turns.iter().collect();
    let is_away = tale.seen.upkeep.rewriting.as_ref().is_some_and(|it| !is_well(tale, it));
    let done = had.len().saturating_sub(usize::from(is_away));
    let percent = done.saturating_mul(100).checked_div(all).unwrap_or(0).min(100);
    Field::Known(Progress {
        operation: Field::Known("Defragment".into()),
        step: Field::Known(format!("{done}/{all}").into()),
        percent: Field::Known(i32::try_from(percent).unwrap_or(100)),
        bytes_done: Field::Absent,
        bytes_total: Field::Absent,
        message: Field::Known(rewriting(tale).into()),
    })
}

fn told(tale: &Tale<'_>) -> Told {
    Told::read(&tale.look.stock.cluster.status.clone().unwrap_or_default())
}

fn is_well(tale: &Tale<'_>, name: &Name) -> bool {
    let entry = tale.seen.etcd.known().and_then(|etcd| etcd.entry(name));
    entry.is_some_and(Registered::is_well)
}

/// Who rewrites its file.
pub(super) fn rewriting(tale: &Tale<'_>) -> String {
    let away = tale.seen.upkeep.rewriting.as_ref().filter(|it| !is_well(tale, it));
    let begun = "Members rewrite their files to give back what is free in them, one after the other, the leader last.";
    match away {
        Some(name) if tale.seen.etcd.known().is_none() => format!(
            "{begun} {name} does so now and answers nobody meanwhile; without it there is no quorum. It comes back by itself."
        ),
        Some(name) => format!(
            "{begun} {name} does so now and answers nobody meanwhile; the others serve. Nobody else is touched before it answers."
        ),
        None => format!("{begun} All members are well."),
    }
}

/// The file that is nearest to its quota, with its member.
fn fullest(tale: &Tale<'_>) -> Option<(Name, File)> {
    let etcd = tale.seen.etcd.known()?;
    let files =
        etcd.voters().filter_map(|it| Some((it.name.clone(), tale.look.file(&it.name, it.id.0)?)));
    files.max_by_key(|(_, it)| it.size)
}

fn size(bytes: u64) -> String {
    bytes::words(bytes.div_ceil(MEBI).saturating_mul(MEBI))
}

/// How full the fullest file is.
fn full(tale: &Tale<'_>) -> String {
    let Some((name, File { size: has, in_use, quota })) = fullest(tale) else {
        return "A member's file has reached its quota".to_owned();
    };
    let quota = quota.map_or_else(|| "unknown".to_owned(), bytes::words);
    format!(
        "A file has reached its quota: that of {name} has {}, of which {} are in use, and may have {quota}",
        size(has),
        size(in_use),
    )
}

/// How room is made.
pub(super) fn no_space(tale: &Tale<'_>) -> String {
    let given_up = told(tale).compacted.map(|it| {
        format!(" To make room, history before revision {} has been given up so far.", it.0)
    });
    format!(
        "{}. etcd takes no writes (NOSPACE). Room is being made: one member after the other rewrites its file, and the alarm is ended when a fifth \
         of the quota is free.{} {}",
        full(tale),
        given_up.unwrap_or_default(),
        rewriting(tale),
    )
}

/// What a person can do where there is no room to be made.
pub(super) fn no_space_stays(tale: &Tale<'_>) -> String {
    let is_stopped = tale.seen.etcd.known().is_some_and(|it| it.alarmed);
    let first = is_stopped.then(|| {
        let runs = before(tale).map_or_else(|| "the old one".to_owned(), |it| it.to_string());
        format!(
            " No member is made anew while another release is on its way: put {runs} back into `spec.version` before you raise the quota."
        )
    });
    format!(
        "{}. etcd takes no writes (NOSPACE), and there is nothing left that the operator could give back. Raise `spec.options.quota`, and \
         `spec.storage.size` with it if the disk has no room for two such files; or delete keys.{} Room is looked for every five minutes, and \
         the alarm is ended by itself when a fifth of the quota is free.",
        full(tale),
        first.unwrap_or_default(),
    )
}

/// The release that members ran before another one was on its way.
fn before(tale: &Tale<'_>) -> Option<Release> {
    let Way { runs, lowered, .. } = tale.look.way;
    let standings = tale.look.heard.voices.values().filter_map(|it| it.standing.as_ref());
    let newest = standings.filter_map(|it| Release::parse(&it.version)).max();
    if lowered.is_some() { newest } else { runs }
}

/// Who has which data.
fn copies(etcd: &Etcd) -> String {
    let mut all: BTreeMap<Option<u64>, Vec<String>> = BTreeMap::new();
    for it in &etcd.list {
        all.entry(it.copy).or_default().push(it.name.to_string());
    }
    let words = all.into_iter().map(|(copy, names)| {
        let names = names.join(", ");
        copy.map_or_else(|| format!("{names}: not known"), |it| format!("{names}: {it:08x}"))
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Who has other data than most.
pub(super) fn differs(tale: &Tale<'_>) -> String {
    let Some(etcd) = tale.seen.etcd.known() else {
        return "Members have different data.".to_owned();
    };
    format!(
        "etcd has raised CORRUPT: members have different data, and no writes are taken. What most of them have is right; whoever has something else \
         is replaced, one at a time, and nobody else is touched. The alarm is ended when all have the same. Hashes of the data: {}.",
        copies(etcd),
    )
}

/// What a person must decide.
pub(super) fn asks(tale: &Tale<'_>) -> String {
    let Some(etcd) = tale.seen.etcd.known() else {
        return "Members have different data.".to_owned();
    };
    format!(
        "etcd has raised CORRUPT: members have different data, no writes are taken, and the operator cannot tell which is right: {} of {} must have \
         the same. Hashes of the data: {}. Nothing is touched; keep all volumes. Find out which member is right, let it lead (`etcdctl \
         move-leader`), end the alarm (`etcdctl alarm disarm`), and let the others go one at a time: kubectl -n {} patch etcdmember NAME --type merge \
         -p '{{\"spec\":{{\"intent\":\"Leave\"}}}}'. Or restore a backup into a new cluster.",
        quorum(etcd.voters().count()),
        etcd.voters().count(),
        copies(etcd),
        tale.look.blueprint.namespace,
    )
}
