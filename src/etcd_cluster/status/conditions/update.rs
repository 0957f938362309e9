//! One condition, its transition time, and the conditions that a cluster has recorded.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use crate::api::condition::{Condition, ConditionStatus, ConditionType};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::field::Field;
use crate::etcd_cluster::status::messages;

/// The desired state of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionUpdate {
    name: &'static str,
    status: ConditionStatus,
    reason: String,
    message: String,
}

impl ConditionUpdate {
    pub(crate) fn r#true(name: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(name, true, reason, message)
    }

    pub(crate) fn r#false(name: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(name, false, reason, message)
    }

    pub(super) fn new(
        name: &'static str,
        holds: bool,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False };
        Self {
            name,
            status,
            reason: reason.to_owned(),
            message: messages::truncate(&message.into()),
        }
    }
}

/// A condition with its transition time: the recorded one if the status is the same, or now.
pub(crate) fn with_transition_time(
    previous: &[Condition],
    update: &ConditionUpdate,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let same = find(previous, update.name)
        .filter(|condition| condition.status.known() == Some(&update.status));
    let since = same.and_then(|condition| condition.last_transition_time.known().cloned());
    Condition {
        kind: Field::Known(update.name.into()),
        status: Field::Known(update.status),
        observed_generation: generation.into(),
        last_transition_time: Field::Known(since.unwrap_or_else(|| now.to_string().into())),
        reason: Field::Known(update.reason.as_str().into()),
        message: Field::Known(update.message.as_str().into()),
    }
}

/// The recorded conditions of a cluster.
pub(super) fn recorded(cluster: &EtcdCluster) -> &[Condition] {
    let status = cluster.status.as_ref();
    status.and_then(|status| status.conditions.known()).map(Vec::as_slice).unwrap_or_default()
}

/// The condition of a type.
pub(super) fn find<'a>(conditions: &'a [Condition], name: &str) -> Option<&'a Condition> {
    let has_name = |kind: &ConditionType| kind.as_str() == name;
    conditions.iter().find(|condition| condition.kind.known().is_some_and(has_name))
}

/// The recorded status with these conditions replaced.
pub(super) fn with_updates(
    cluster: &EtcdCluster,
    updates: &[ConditionUpdate],
    now: Timestamp,
) -> EtcdClusterStatus {
    let status = cluster.status.clone().unwrap_or_default();
    let previous = recorded(cluster);
    let generation = cluster.metadata.generation;
    let names: Vec<&str> = updates.iter().map(|update| update.name).collect();
    let is_kept = |condition: &&Condition| {
        condition.kind.known().is_some_and(|kind| !names.contains(&kind.as_str()))
    };
    let kept = previous.iter().filter(is_kept).cloned();
    let replaced = updates.iter();
    let replaced = replaced.map(|update| with_transition_time(previous, update, generation, now));
    EtcdClusterStatus {
        observed_generation: generation.into(),
        conditions: Field::Known(replaced.chain(kept).collect()),
        ..status
    }
}
