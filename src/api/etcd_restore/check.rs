//! What may be wrong with an EtcdRestore, beyond what its schema says.
//! Comes in: the object as it was and as it shall be. Goes out: findings.
//! May touch: the shared rules.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdRestoreSpec, EtcdRestoreStatus};
use crate::api::check::release::Ability;
use crate::api::check::rules::{Said, backup, kind_needs};
use crate::api::check::{Facts, Findings};
use crate::api::field::Field;

type Restore = Said<EtcdRestoreSpec, EtcdRestoreStatus>;

/// Finds what is wrong.
pub(crate) fn check(old: Option<&Value>, new: &Value, facts: &Facts<'_>, findings: &mut Findings) {
    let (old, new) = (old.map(Restore::read), Restore::read(new));
    if old.is_none() {
        kind_needs(Ability::Restore, facts, findings);
    }
    match (new.spec.from.is_said(), new.spec.recover_quorum.is_said()) {
        (false, false) => findings.required(
            "spec.from",
            "say `from` (a backup), or `recoverQuorum` (a member that survived)",
        ),
        (true, true) => findings
            .invalid("spec.from", "must be left out with `recoverQuorum`: say one of the two"),
        (true, false) | (false, true) => {}
    }
    backup::origin(&new.spec.from, "spec.from", &new.namespace, findings);
    let Some(old) = old else { return };
    let approved = |spec: &EtcdRestoreSpec| spec.approve.known() == Some(&true);
    if approved(&old.spec) && !approved(&new.spec) {
        findings.forbidden(
            "spec.approve",
            "may not be taken back, because the restore may have begun; leave it true",
        );
    }
    let but_for_approval =
        |spec: EtcdRestoreSpec| EtcdRestoreSpec { approve: Field::Absent, ..spec };
    if but_for_approval(old.spec) != but_for_approval(new.spec) {
        findings.forbidden(
            "spec",
            "may not be changed, but for `approve`: the plan was made for it; make another EtcdRestore",
        );
    }
}
