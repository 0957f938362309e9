//! Messages about rolling updates, version changes and rollbacks.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{StatusInput, list, unhealthy};
use crate::api::etcd_cluster::v1::status::RollbackStatus;
use crate::api::etcd_version::{self, path::path};
use crate::etcd_cluster::plan::Reason;
use crate::etcd_cluster::rollback;
use crate::etcd_cluster::state;
use crate::etcd_cluster::status::{
    raft_log_is_readable, storage_version_reached, up_to_date_members,
};

/// The progress of a rolling update, and what it waits for.
pub(super) fn rolling_update(input: &StatusInput<'_>) -> String {
    let progress = update_progress(input);
    if input.plan.reason == Reason::RollingUpdateBlocked {
        return format!("{progress}. {}", update_stopped(input));
    }
    let unhealthy = unhealthy(input);
    if unhealthy.is_empty() {
        return format!("{progress}, leader last");
    }
    format!(
        "{progress}. Waiting for member {} to become healthy before updating the next one",
        list(&unhealthy),
    )
}

/// What is waited for before the members are updated to the next version.
pub(super) fn version_change(input: &StatusInput<'_>) -> String {
    let now = input.inputs.blueprint.spec.version;
    let next = input.inputs.path.following().unwrap_or(input.inputs.path.spec);
    if input.state.etcd.known().is_some_and(|etcd| etcd.downgrade == state::Downgrade::Unwanted) {
        return format!("Cancelling the etcd downgrade: spec.version is {now} again");
    }
    if input.state.desired.version == state::VersionProgress::Downgrading {
        return format!(
            "Waiting for etcd to downgrade the storage version to {} on all members before updating them from {now} to {next}",
            next.minor()
        );
    }
    if storage_version_reached(input) && !raft_log_is_readable(input) {
        let requirement = input.inputs.raft_log_requirement();
        let missing =
            requirement.map_or(0, |requirement| requirement.missing_entries(input.inputs.probe));
        return format!(
            "Waiting for a snapshot on every member before upgrading from {now} to {next}: {} cannot read the older entries of the raft log. \
             Writing {missing} more no-op entries to force snapshots; a smaller spec.options.snapshotCount needs fewer",
            next.minor(),
        );
    }
    format!(
        "Waiting for storage version {} on all members before upgrading from {now} to {next}",
        now.minor()
    )
}

/// The versions that follow the one that is rolled out now.
pub(crate) fn next_versions(input: &StatusInput<'_>) -> Option<String> {
    let (target, now) = (input.inputs.path.spec, input.inputs.blueprint.spec.version);
    let steps = path(now, target).ok().filter(|steps| !steps.is_empty())?;
    Some(format!("after {now}: {}", etcd_version::join_releases(&steps)))
}

/// What was rolled back, why, and what the user can do.
pub(crate) fn rolled_back(input: &StatusInput<'_>) -> String {
    let RollbackStatus { member, reason, .. } =
        rollback::active(&input.inputs.objects.cluster).cloned().unwrap_or_default();
    let member = member.known().map_or("a member", |name| name.as_str()).to_owned();
    let cause = reason.known().map_or("unreachable", |cause| cause.as_str()).to_owned();
    format!(
        "Rolled back: {member} failed to start with the new spec ({cause}). All members run the previous template (etcd {}). Fix or revert \
         the spec",
        input.inputs.blueprint.spec.version,
    )
}

/// Why there is no upgrade path to the version in the spec.
pub(crate) fn no_upgrade_path(input: &StatusInput<'_>) -> String {
    let (target, runs) = (input.inputs.path.spec, input.inputs.blueprint.spec.version);
    let cause = path(runs, target).err().map_or_else(String::new, |error| error.to_string());
    format!(
        "No upgrade path from etcd {runs} to {target}: {cause}. Members keep running {runs}; set spec.version back to {runs}"
    )
}

/// The version that is rolled out, and the number of updated members.
pub(crate) fn update_progress(input: &StatusInput<'_>) -> String {
    let now = input.inputs.blueprint.spec.version;
    let remaining = input.state.remaining().count();
    let updated = up_to_date_members(input.state).count();
    let next = next_versions(input).map(|next| format!("; {next}")).unwrap_or_default();
    format!("Rolling update to etcd {now}: {updated}/{remaining} members updated{next}")
}

/// Why a rolling update is stopped.
fn update_stopped(input: &StatusInput<'_>) -> String {
    let unhealthy = unhealthy(input);
    if input.state.etcd.known().is_some_and(|etcd| etcd.blocking_alarm) {
        return "Rolling update stopped: an etcd alarm is active. The update resumes when the alarm is disarmed".to_owned();
    }
    if unhealthy.is_empty() {
        return "Rolling update stopped: the data is in memory and would be lost with the only member. Set spec.replicas to 3 first".to_owned();
    }
    format!(
        "Rolling update stopped: {} is unhealthy with the new template; other members are unchanged. The update resumes when the \
         member is healthy. Fix or revert the spec",
        list(&unhealthy)
    )
}
