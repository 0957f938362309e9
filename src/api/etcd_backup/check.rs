//! What may be wrong with an EtcdBackup, beyond what its schema says.
//! Comes in: the object as it was and as it shall be. Goes out: findings.
//! May touch: the shared rules.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdBackupSpec, EtcdBackupStatus};
use crate::api::check::release::Ability;
use crate::api::check::rules::{Said, backup, kind_needs};
use crate::api::check::{Facts, Findings};

type Backup = Said<EtcdBackupSpec, EtcdBackupStatus>;

/// Finds what is wrong.
pub(crate) fn check(old: Option<&Value>, new: &Value, facts: &Facts<'_>, findings: &mut Findings) {
    let (old, new) = (old.map(Backup::read), Backup::read(new));
    if old.is_none() {
        kind_needs(Ability::Backup, facts, findings);
    }
    backup::destination(&new.spec.destination, "spec.destination", findings);
    let Some(old) = old else { return };
    if old.status.started_at.known().is_some() && old.spec != new.spec {
        findings.forbidden(
            "spec",
            "may not be changed once the backup has begun; make another EtcdBackup instead",
        );
    }
}
