//! Messages about defragmentation and the alarms NOSPACE and CORRUPT, and the progress of a run.
//! Sizes are rounded up to whole MiB, so that a busy cluster costs no status writes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use super::StatusInput;
use crate::api::bytes;
use crate::api::etcd_cluster::v1::status::Progress;
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::etcd_cluster::defragmentation::DefragStatus;
use crate::etcd_cluster::state::db_file::DbFile;
use crate::etcd_cluster::state::{EtcdState, ListedMember, MemberName, quorum};
use crate::etcd_cluster::version::UpgradePath;

const MEBI: u64 = 1 << 20;

/// The progress of the run that is in progress, if there is one.
pub(crate) fn progress(input: &StatusInput<'_>) -> Field<Progress> {
    let Some((done, total)) = completed(input) else { return Field::Absent };
    let percent = done.saturating_mul(100).checked_div(total).unwrap_or(0).min(100);
    Field::Known(Progress {
        operation: Field::Known("Defragment".into()),
        step: Field::Known(format!("{done}/{total}").into()),
        percent: Field::Known(i32::try_from(percent).unwrap_or(100)),
        bytes_done: Field::Absent,
        bytes_total: Field::Absent,
        message: Field::Known(defragmenting(input).into()),
    })
}

/// How many members the run has defragmented, and the number of members.
fn completed(input: &StatusInput<'_>) -> Option<(usize, usize)> {
    let recorded = recorded(input);
    let run = recorded.run()?;
    let voters = input.state.etcd.known().map(|etcd| etcd.voters().count());
    let total = voters.unwrap_or_else(|| input.state.remaining().count());
    let started: BTreeSet<&MemberName> = run.completed.iter().collect();
    let is_running = unavailable(input).is_some();
    Some((started.len().saturating_sub(usize::from(is_running)), total))
}

fn recorded(input: &StatusInput<'_>) -> DefragStatus {
    DefragStatus::parse(&input.inputs.objects.cluster.status.clone().unwrap_or_default())
}

/// The member that is defragmented now and therefore unavailable.
fn unavailable<'a>(input: &'a StatusInput<'_>) -> Option<&'a MemberName> {
    let is_healthy = |name: &MemberName| {
        let entry = input.state.etcd.known().and_then(|etcd| etcd.entry(name));
        entry.is_some_and(ListedMember::is_healthy)
    };
    input.state.defragmentation.in_progress.as_ref().filter(|name| !is_healthy(name))
}

/// How far a run is, and which member is unavailable.
pub(crate) fn defragmenting(input: &StatusInput<'_>) -> String {
    let done = completed(input).map_or_else(
        || "Defragmenting members one at a time, leader last".to_owned(),
        |(done, total)| format!("Defragmenting: {done}/{total} members done"),
    );
    match unavailable(input) {
        Some(name) if input.state.etcd.known().is_none() => format!(
            "{done}; {name} is unavailable while it is defragmented, and quorum is lost until the defragmentation finishes"
        ),
        Some(name) => format!("{done}; {name} is unavailable while it is defragmented"),
        None => format!("{done}; all members are healthy"),
    }
}

/// The database file with the largest size, with its member.
fn largest_file(input: &StatusInput<'_>) -> Option<(MemberName, DbFile)> {
    let etcd = input.state.etcd.known()?;
    let file = |voter: &ListedMember| {
        Some((voter.name.clone(), input.inputs.db_file(&voter.name, voter.id.0)?))
    };
    etcd.voters().filter_map(file).max_by_key(|(_, file)| file.size)
}

fn mebibytes(bytes: u64) -> String {
    bytes::format(bytes.div_ceil(MEBI).saturating_mul(MEBI))
}

/// The alarm, and how much of its quota the largest database file uses.
fn quota_exceeded(input: &StatusInput<'_>) -> String {
    let Some((name, DbFile { size, in_use, quota })) = largest_file(input) else {
        return "NOSPACE alarm: a member has reached its quota".to_owned();
    };
    let quota = quota.map_or_else(|| "unknown".to_owned(), bytes::format);
    format!(
        "NOSPACE alarm: {name} uses {} of its {quota} quota ({} in use)",
        mebibytes(size),
        mebibytes(in_use),
    )
}

/// How space is reclaimed.
pub(crate) fn no_space(input: &StatusInput<'_>) -> String {
    let revision = recorded(input).compacted_revision;
    let compacted = revision.map(|revision| format!(" (compacted to revision {})", revision.0));
    format!(
        "{}. Compacting and defragmenting{}; writes are rejected until 20% is free. {}",
        quota_exceeded(input),
        compacted.unwrap_or_default(),
        defragmenting(input),
    )
}

/// What the user can do if no space can be reclaimed.
pub(crate) fn no_space_unresolved(input: &StatusInput<'_>) -> String {
    let is_blocked = input.state.etcd.known().is_some_and(|etcd| etcd.blocking_alarm);
    let first = is_blocked.then(|| {
        let previous = previous_release(input)
            .map_or_else(|| "the previous release".to_owned(), |release| release.to_string());
        format!(". Set spec.version back to {previous} first: a version change in progress blocks pod recreation")
    });
    format!(
        "{}. Writes are rejected and no space can be reclaimed. Increase spec.options.quota (and spec.storage.size, if the volume cannot hold \
         twice the quota) or delete keys{}. The operator checks every 5m and disarms the alarm when 20% is free",
        quota_exceeded(input),
        first.unwrap_or_default(),
    )
}

/// The release that members ran before the version change in progress.
fn previous_release(input: &StatusInput<'_>) -> Option<Release> {
    let UpgradePath { lowest_running, downgrade_to, .. } = input.inputs.path;
    let statuses = input.inputs.probe.members.values().filter_map(|probe| probe.status.as_ref());
    let highest = statuses.filter_map(|status| Release::parse(&status.version)).max();
    if downgrade_to.is_some() { highest } else { lowest_running }
}

/// The members by the hash of their data.
fn data_hashes(etcd: &EtcdState) -> String {
    let mut by_hash: BTreeMap<Option<u64>, Vec<String>> = BTreeMap::new();
    for member in &etcd.members {
        by_hash.entry(member.data_hash).or_default().push(member.name.to_string());
    }
    let groups = by_hash.into_iter().map(|(hash, names)| {
        let names = names.join(", ");
        hash.map_or_else(|| format!("{names}: unknown"), |hash| format!("{names}: {hash:08x}"))
    });
    groups.collect::<Vec<_>>().join("; ")
}

/// Which members differ from the majority.
pub(crate) fn corrupt_member(input: &StatusInput<'_>) -> String {
    let Some(etcd) = input.state.etcd.known() else {
        return "CORRUPT alarm: members have different data".to_owned();
    };
    format!(
        "CORRUPT alarm: members that differ from the majority are replaced one at a time (data hashes: {}). Writes are rejected until all \
         members match",
        data_hashes(etcd),
    )
}

/// What the user must decide if no majority has the same data.
pub(crate) fn corruption_unresolved(input: &StatusInput<'_>) -> String {
    let Some(etcd) = input.state.etcd.known() else {
        return "CORRUPT alarm: members have different data".to_owned();
    };
    format!(
        "CORRUPT alarm: no {} of {} voters have the same data (hashes: {}). Writes are rejected and reconciliation stopped. Keep all PVCs. \
         Determine the member with the correct data, make it leader (`etcdctl move-leader`), disarm the alarm (`etcdctl alarm disarm`), and \
         remove the others one at a time: kubectl -n {} patch etcdmember NAME --type merge -p '{{\"spec\":{{\"intent\":\"Leave\"}}}}'. \
         Or restore a backup into a new cluster",
        quorum(etcd.voters().count()),
        etcd.voters().count(),
        data_hashes(etcd),
        input.inputs.blueprint.namespace,
    )
}
