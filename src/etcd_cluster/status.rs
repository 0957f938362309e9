//! What a pass has to tell: the status of a cluster and of each of its members.
//! Comes in: the look, the plan, what went wrong, and what was told before. Goes out: the status.
//! May touch: `api`; pure. Figures that always move change in coarse steps, so that a busy cluster at rest
//! costs no write.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod certificates;
mod conditions;
mod doors;
mod member;
mod sources;
mod steps;
mod upkeep;
mod words;

use std::collections::BTreeMap;

use conditions::was_changing;
pub(crate) use conditions::{blind, invalid, is_not_granted, reason_before};
pub(crate) use member::member;
pub(crate) use steps::words as step_words;
pub(crate) use words::{reason as why_it_waits, story};

use super::compose::Look;
use super::identity::tidings::Tidings;
use super::log::Written;
use super::plan::{Because, Plan};
use super::seen::upkeep::Space;
use super::seen::{
    Course, Etcd, Lowering, Made, Member, Name, Pod, Reading, Registered, Seen, WayBack,
};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::{
    ClientLine, EtcdClusterStatus, MemberRole, MemberStatus, PlanStatus, UpkeepStatus,
};
use crate::api::etcd_says::Standing;
use crate::api::etcd_version::{Minor, Release};
use crate::api::field::Field;
use crate::api::names;
use crate::api::pod::LocalRef;
use crate::etcd_cluster::render::tune;
use crate::etcd_cluster::undo;
use crate::etcd_cluster::upkeep::Told;

/// The first minor version that says which form its data has.
const FORMS: Minor = Minor { major: 3, minor: 6 };

/// What one pass knows in the end.
pub(crate) struct Tale<'a> {
    pub(crate) look: &'a Look<'a>,
    pub(crate) seen: &'a Seen,
    pub(crate) plan: &'a Plan,
    /// What went wrong in this pass, in a sentence.
    pub(crate) trouble: Option<String>,
    /// What is to be told of certificates.
    pub(crate) tidings: Tidings,
    /// Whose pods the API server has refused in this pass, and why.
    pub(crate) refused: BTreeMap<Name, String>,
}

/// A plan as it is told: whoever comes back last from a change is a part of that change, and nobody is about to replace it.
pub(crate) fn as_told(cluster: &EtcdCluster, seen: &Seen, plan: Plan) -> Plan {
    let starts = |it: &Registered| {
        let member = seen.member(&it.name);
        member.is_some_and(|it| it.made == Made::AsWanted && !it.given_up && !it.fails)
    };
    let mut unwell =
        seen.etcd.known().into_iter().flat_map(Etcd::voters).filter(|it| !it.is_well());
    if plan.because == Because::MemberUnwell && was_changing(cluster) && unwell.all(starts) {
        return Plan { because: Because::Rolling, ..plan };
    }
    plan
}

/// The status of the cluster.
pub(crate) fn cluster(tale: &Tale<'_>) -> EtcdClusterStatus {
    let Tale { look, seen, plan, .. } = tale;
    let (stock, blueprint, way) = (look.stock, look.blueprint, look.way);
    let before = stock.cluster.status.clone().unwrap_or_default();
    let members = members(tale);
    let well = members.iter().filter(|it| {
        it.healthy.known() == Some(&true) && it.role.known() != Some(&MemberRole::Learner)
    });
    let count = |it: usize| Field::Known(i32::try_from(it).unwrap_or(i32::MAX));
    let is_ready = match way.course() {
        Course::Down => is_lowered(tale),
        Course::Reached | Course::Further | Course::NoWay => is_settled(tale) && is_readable(tale),
    };
    let next = way.next(is_ready && is_calm(seen));
    // Before a step begins nobody has taken it, and nobody is as a spec wants it that was taken back.
    let is_under_way = next == blueprint.spec.version && seen.wanted.way_back != WayBack::Taken;
    let updated = if is_under_way { updated(seen).count() } else { 0 };
    let urls = seen.members.iter().map(|it| blueprint.client_url(&it.name).into());
    let formed = seen.record.formed.is_some();
    EtcdClusterStatus {
        observed_generation: stock.cluster.metadata.generation.into(),
        cluster_id: before.cluster_id.clone(),
        founding: before.founding.clone(),
        current_version: way.runs.map_or_else(
            || before.current_version.clone(),
            |it| Field::Known(it.to_string().into()),
        ),
        target_version: Field::Known(next.to_string().into()),
        log: Written::now(&before, look.heard).map(Written::status).into(),
        replicas: count(seen.members.len()),
        ready_replicas: count(well.count()),
        updated_members: count(updated),
        selector: Field::Known(format!("{}={}", names::CLUSTER_LABEL, blueprint.name).into()),
        leader: leader(tale).into(),
        endpoints: Field::Known(urls.collect()),
        service_name: Field::Known(names::client_service(blueprint.name).into()),
        binding: if formed { binding(blueprint.name) } else { Field::Absent },
        highest_revision: highest(tale, &before).into(),
        members: Field::Known(members),
        taken_back: undo::stands(&stock.cluster).cloned().into(),
        plan: Field::Known(PlanStatus {
            step: Field::Known(steps::words(plan, seen).into()),
            because: Field::Known(why(tale).into()),
            blocked_by: tale.trouble.clone().map(|it| words::short(&it).into()).into(),
        }),
        upkeep: looked_after(tale, &before),
        progress: upkeep::progress(tale),
        backup: before.backup.clone(),
        tuning: Field::Known(tune::tuning(blueprint.spec, blueprint.found)),
        clients: clients(tale, &before),
        conditions: Field::Known(conditions::all(tale, &before)),
    }
}

/// Which rule was heard, and what is still to come.
fn why(tale: &Tale<'_>) -> String {
    let because = words::because(tale.plan.because);
    let ahead = words::ahead(tale).filter(|_| tale.seen.record.formed.is_some());
    ahead.map_or_else(|| because.to_owned(), |it| format!("{because}; {it}"))
}

/// Whether no alarm is raised: with one no step to another minor version begins.
fn is_calm(seen: &Seen) -> bool {
    seen.etcd.known().is_some_and(|it| it.space == Space::Enough && !it.corrupt && !it.alarmed)
}

/// Whether the data of all who run the oldest release has its form. Before 3.6 there was nothing to tell forms apart.
pub(super) fn is_settled(tale: &Tale<'_>) -> bool {
    let standings = tale.look.heard.voices.values().filter_map(|it| it.standing.as_ref());
    let releases =
        |it: &Standing| (Release::parse(&it.version), Release::parse(&it.storage_version));
    let all: Vec<_> = standings.map(releases).collect();
    let Some(oldest) = all.iter().filter_map(|(runs, _)| *runs).min() else { return false };
    let has_form = |(runs, form): &(Option<Release>, Option<Release>)| match (runs, form) {
        (Some(runs), _) if runs.minor() != oldest.minor() || runs.minor() < FORMS => true,
        (Some(runs), Some(form)) => runs.minor() == form.minor(),
        (Some(_) | None, None) | (None, Some(_)) => false,
    };
    all.iter().all(has_form)
}

/// Whether all data has the form of the minor version before, and members of it may come in.
pub(super) fn is_lowered(tale: &Tale<'_>) -> bool {
    let Some(etcd) = tale.seen.etcd.known() else { return false };
    let form = |name| Release::parse(&tale.look.heard.standing(name)?.storage_version);
    let asked = tale.look.way.asked.minor();
    let is_down = |name| form(name).is_some_and(|it| it.minor() == asked);
    etcd.lowering == Lowering::AsWanted && etcd.list.iter().all(|it| is_down(&it.name))
}

/// Whether the next release can read the log of every member.
pub(super) fn is_readable(tale: &Tale<'_>) -> bool {
    tale.look.need().is_none_or(|it| it.is_met(tale.look.heard))
}

/// What applications are told from now on.
fn clients(tale: &Tale<'_>, before: &EtcdClusterStatus) -> Field<ClientLine> {
    let Look { blueprint, stock, now, .. } = tale.look;
    match blueprint.doors {
        Some(doors) => doors.line(tale.seen, stock, *now),
        None => before.clients.clone(),
    }
}

/// What was written down about the members' files, and when they are looked at next.
fn looked_after(tale: &Tale<'_>, before: &EtcdClusterStatus) -> Field<UpkeepStatus> {
    let told = Told::read(before);
    let next = told.next_look(tale.look.blueprint.spec.defragment.as_ref(), tale.look.now);
    Told { next, ..told }.status()
}

fn binding(cluster: &str) -> Field<LocalRef> {
    Field::Known(LocalRef { name: Field::Known(names::client_secret(cluster).into()) })
}

fn leader(tale: &Tale<'_>) -> Option<crate::api::texts::ObjectName> {
    let etcd = tale.seen.etcd.known()?;
    let leads = etcd.list.iter().find(|it| etcd.leads(it.id))?;
    Some(leads.name.0.as_str().into())
}

/// Those who run as they would be made now.
pub(super) fn updated(seen: &Seen) -> impl Iterator<Item = &Member> {
    let runs = |it: &&Member| it.made == Made::AsWanted && it.pod == Reading::Known(Pod::Started);
    seen.staying().filter(runs)
}

/// The revision beyond which a restore must go: rounded up, so that it changes seldom and is never too small.
fn highest(tale: &Tale<'_>, before: &EtcdClusterStatus) -> Option<i64> {
    const STEP: i64 = 100_000;
    let known = before.highest_revision.known().copied();
    let Reading::Known(council) = &tale.look.heard.council else { return known };
    let up = council.revision.div_euclid(STEP).saturating_add(1).saturating_mul(STEP);
    Some(known.unwrap_or(0).max(up))
}

/// Every member that there is an object of, or that etcd lists.
fn members(tale: &Tale<'_>) -> Vec<MemberStatus> {
    let Tale { look, seen, .. } = tale;
    let listed = seen.etcd.known().map(|etcd| etcd.list.as_slice()).unwrap_or_default();
    let strangers = listed.iter().filter(|it| seen.member(&it.name).is_none()).map(|it| &it.name);
    let names = seen.members.iter().map(|it| &it.name).chain(strangers);
    names
        .map(|name| {
            let entry = listed.iter().find(|it| it.name == *name);
            let standing = look.heard.standing(name);
            let id = entry.map(|it| it.id.0).or(standing.map(|it| it.member));
            let alarms = alarms(tale, id);
            MemberStatus {
                name: Field::Known(name.0.as_str().into()),
                id: id.map(|it| format!("{it:x}").into()).into(),
                role: Field::Known(member::role(seen, name)),
                version: standing.map(|it| it.version.as_str().into()).into(),
                db_size: standing.map(|it| coarse(it.db_size)).into(),
                db_in_use: standing.map(|it| coarse(it.db_in_use)).into(),
                raft_lag: standing.map(|it| lag(look.heard.furthest(), it.applied_index)).into(),
                healthy: Field::Known(entry.is_some_and(Registered::is_well)),
                alarms: if alarms.is_empty() { Field::Absent } else { Field::Known(alarms) },
            }
        })
        .take(16)
        .collect()
}

fn alarms(tale: &Tale<'_>, id: Option<u64>) -> Vec<crate::api::texts::Word> {
    let Reading::Known(council) = &tale.look.heard.council else { return Vec::new() };
    let raised = council.alarms.iter().filter(|it| Some(it.member) == id);
    raised.map(|it| it.word.into()).take(8).collect()
}

/// Bytes in steps of a quarter, and never finer than 16 MiB.
pub(super) fn coarse(bytes: i64) -> i64 {
    const LEAST: i64 = 16 << 20;
    let step = (bytes.max(1).ilog2())
        .checked_sub(2)
        .map_or(LEAST, |bits| LEAST.max(1_i64 << bits.min(60)));
    bytes.saturating_add(step.saturating_sub(1)).div_euclid(step).saturating_mul(step)
}

/// Entries behind, in steps that double; nothing below a thousand.
fn lag(furthest: u64, applied: u64) -> i64 {
    let behind = furthest.saturating_sub(applied);
    if behind < 1000 { 0 } else { i64::try_from(behind.next_power_of_two()).unwrap_or(i64::MAX) }
}

impl Because {
    /// Whether the cluster is as the spec says.
    pub(crate) const fn is_as_wanted(self) -> bool {
        matches!(self, Self::Well | Self::Asleep)
    }
}

#[cfg(test)]
mod tests;
