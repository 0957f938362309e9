//! Validation of an EtcdMember beyond its schema.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdMemberSpec, EtcdMemberStatus, Intent};
use crate::api::extract::is_true;
use crate::api::names;
use crate::api::validation::rules::{self, HubObject, volume};
use crate::api::validation::{Findings, ValidationContext};

type Member = HubObject<EtcdMemberSpec, EtcdMemberStatus>;

/// Validates a member, against its previous state on an update.
pub(crate) fn validate(
    old: Option<&Value>,
    new: &Value,
    _: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let new = Member::read(new);
    let storage = new.spec.storage.clone().or_default();
    volume::minimum_size(&storage.size, "spec.storage.size", findings);
    let Some(old) = old.map(Member::read) else {
        return rules::name(&new.name, names::MAX_MEMBER_NAME_LENGTH, findings);
    };
    let immutable =
        "may not be changed: the identity of a member is fixed; the operator replaces members";
    if old.spec.cluster_name != new.spec.cluster_name {
        findings.forbidden("spec.clusterName", immutable);
    }
    if old.spec.name != new.spec.name {
        findings.forbidden("spec.name", immutable);
    }
    let (was, is) = (old.spec.intent.known().copied(), new.spec.intent.known().copied());
    if was != is && is != Some(Intent::Leave) {
        findings.forbidden(
            "spec.intent",
            "may only be changed to \"Leave\" and not back: a removed member cannot rejoin",
        );
    }
    if is_true(&old.spec.started) && !is_true(&new.spec.started) {
        findings.forbidden(
            "spec.started",
            "may not be unset: etcd may have run in a pod of this member",
        );
    }
}
