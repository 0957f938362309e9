//! What may be wrong with an EtcdMember, beyond what its schema says.
//! Comes in: the object as it was and as it shall be. Goes out: findings.
//! May touch: the shared rules.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdMemberSpec, EtcdMemberStatus, Intent};
use crate::api::check::rules::{self, Said, volume};
use crate::api::check::{Facts, Findings};
use crate::api::names;
use crate::api::plain::is_true;

type Member = Said<EtcdMemberSpec, EtcdMemberStatus>;

/// Finds what is wrong.
pub(crate) fn check(old: Option<&Value>, new: &Value, _: &Facts<'_>, findings: &mut Findings) {
    let new = Member::read(new);
    let storage = new.spec.storage.clone().or_empty();
    volume::large_enough(&storage.size, "spec.storage.size", findings);
    let Some(old) = old.map(Member::read) else {
        return rules::name(&new.name, names::MOST_MEMBER_NAME, findings);
    };
    let stays = "may not be changed: a member keeps its identity; the operator replaces members, people do not";
    if old.spec.cluster_name != new.spec.cluster_name {
        findings.forbidden("spec.clusterName", stays);
    }
    if old.spec.name != new.spec.name {
        findings.forbidden("spec.name", stays);
    }
    let (was, is) = (old.spec.intent.known().copied(), new.spec.intent.known().copied());
    if was != is && is != Some(Intent::Leave) {
        findings.forbidden("spec.intent", "may only be changed to \"Leave\", and never back: a member that left is gone from etcd");
    }
    if is_true(&old.spec.started) && !is_true(&new.spec.started) {
        findings.forbidden(
            "spec.started",
            "may not be taken back: the member may have promised something to the others",
        );
    }
}
