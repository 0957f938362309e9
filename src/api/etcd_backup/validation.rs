//! Validation of an EtcdBackup beyond its schema.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdBackupSpec, EtcdBackupStatus};
use crate::api::validation::features::Feature;
use crate::api::validation::rules::{HubObject, backup, require_kind_feature};
use crate::api::validation::{Findings, ValidationContext};

type Backup = HubObject<EtcdBackupSpec, EtcdBackupStatus>;

/// Validates a backup, against its previous state on an update.
pub(crate) fn validate(
    old: Option<&Value>,
    new: &Value,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let (old, new) = (old.map(Backup::read), Backup::read(new));
    if old.is_none() {
        require_kind_feature(Feature::Backup, context, findings);
    }
    backup::destination(&new.spec.destination, "spec.destination", findings);
    let Some(old) = old else { return };
    if old.status.start_time.known().is_some() && old.spec != new.spec {
        findings.forbidden(
            "spec",
            "may not be changed once the backup has started; create another EtcdBackup instead",
        );
    }
}
