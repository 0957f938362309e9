//! Validation of an EtcdRestore beyond its schema.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdRestoreSpec, EtcdRestoreStatus};
use crate::api::field::Field;
use crate::api::validation::features::Feature;
use crate::api::validation::rules::{HubObject, backup, require_kind_feature};
use crate::api::validation::{Findings, ValidationContext};

type Restore = HubObject<EtcdRestoreSpec, EtcdRestoreStatus>;

/// Validates a restore, against its previous state on an update.
pub(crate) fn validate(
    old: Option<&Value>,
    new: &Value,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let (old, new) = (old.map(Restore::read), Restore::read(new));
    if old.is_none() {
        require_kind_feature(Feature::Restore, context, findings);
    }
    match (new.spec.from.is_set(), new.spec.recover_quorum.is_set()) {
        (false, false) => findings
            .required("spec.from", "set `from` (a backup) or `recoverQuorum` (a surviving member)"),
        (true, true) => {
            findings.invalid("spec.from", "must not be set together with `recoverQuorum`")
        }
        (true, false) | (false, true) => {}
    }
    backup::backup_source(&new.spec.from, "spec.from", &new.namespace, findings);
    let Some(old) = old else { return };
    let approved = |spec: &EtcdRestoreSpec| spec.approve.known() == Some(&true);
    if approved(&old.spec) && !approved(&new.spec) {
        findings.forbidden("spec.approve", "may not be unset: the restore may have started");
    }
    let without_approval =
        |spec: EtcdRestoreSpec| EtcdRestoreSpec { approve: Field::Absent, ..spec };
    if without_approval(old.spec) != without_approval(new.spec) {
        findings.forbidden(
            "spec",
            "may not be changed except for `approve`, because the plan depends on it; create another EtcdRestore",
        );
    }
}
