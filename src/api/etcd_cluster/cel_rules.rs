//! CEL rules of EtcdCluster, the same in every version: the API server runs only the rules of the
//! version in the request, so a rule that one version lacks could be bypassed through it. They hold
//! while the webhook is unavailable; `validation` has the same rules with longer messages.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use crate::api::cel::{has_path, immutable, name_rule, rule, size_not_removed};
use crate::api::{names, storage_limits};

/// Paths of the fields that the rules use, in one version of the spec. A rule over two fields of
/// which a version has only one can still be violated through it; `validation` checks those in v1.
pub(super) struct FieldPaths {
    size: &'static str,
    class: &'static str,
    quota: &'static str,
    schedule: &'static str,
    destination: &'static str,
}

/// In v1.
pub(super) const V1: FieldPaths = FieldPaths {
    size: "storage.size",
    class: "storage.className",
    quota: "options.quota",
    schedule: "backup.schedule",
    destination: "backup.destination",
};
/// In v1beta1.
pub(super) const V1BETA1: FieldPaths = FieldPaths {
    size: "storageSize",
    class: "storageClass",
    quota: "quota",
    schedule: "backupSchedule",
    destination: "backupDestination",
};
/// In v1alpha1, which has no quota and no backup fields.
pub(super) const V1ALPHA1: FieldPaths = FieldPaths {
    size: "pod.persistentVolumeClaimSpec.resources.requests.storage",
    class: "pod.persistentVolumeClaimSpec.storageClassName",
    quota: "",
    schedule: "",
    destination: "",
};

impl FieldPaths {
    /// The rules over the whole spec.
    pub(super) fn rules(&self) -> Value {
        let Self { size, class, quota, schedule, destination } = self;
        let mut rules = vec![
            size_not_removed(size),
            immutable(
                class,
                "volumes keep their StorageClass; create a new cluster and copy the data",
            ),
        ];
        if !quota.is_empty() {
            rules.push(storage_limits::quota_fits_cel(quota, size));
        }
        if !schedule.is_empty() {
            rules.push(rule(
                format!("!({}) || ({})", has_path("self", schedule), has_path("self", destination)),
                format!("`{schedule}` requires `{destination}`"),
            ));
        }
        if self.size == V1.size {
            rules.extend(v1_rules());
            rules.extend(destination_rules());
        }
        Value::Array(rules)
    }
}

/// Rules over fields that only v1 has.
fn v1_rules() -> Vec<Value> {
    let medium = |root: &str| {
        format!("({} ? {root}.storage.medium : 'Disk')", has_path(root, "storage.medium"))
    };
    vec![
        rule(
            format!("{} == {}", medium("self"), medium("oldSelf")),
            "`storage.medium` may not be changed; create a new cluster and copy the data",
        ),
        rule(
            format!("!has(self.replicas) || self.replicas > 0 || {} == 'Disk'", medium("self")),
            "`replicas` may not be 0 with `storage.medium` 'Memory': the data would be lost; \
             delete the cluster instead",
        ),
        rule(
            "!has(self.restore) || (has(oldSelf.restore) && self.restore == oldSelf.restore)",
            "`restore` may only be set when the cluster is created",
        ),
        rule(
            format!(
                "!({}) || !self.auth.enabled || !({}) || self.tls.client.source != 'Disabled'",
                has_path("self", "auth.enabled"),
                has_path("self", "tls.client.source"),
            ),
            "`auth.enabled` cannot be combined with `tls.client` 'Disabled': passwords would be sent \
             in plaintext",
        ),
        rule(
            format!(
                "!({}) || !self.auth.enabled || !({}) || self.tls.client.source != 'Secret'",
                has_path("self", "auth.enabled"),
                has_path("self", "tls.client.source"),
            ),
            "`auth.enabled` cannot be combined with `tls.client` 'Secret': etcd identifies the \
             operator by the CN of its certificate",
        ),
        rule(
            format!(
                "!({}) || !({}) || self.options.electionMilliseconds >= 5 * \
                 self.options.heartbeatMilliseconds",
                has_path("self", "options.electionMilliseconds"),
                has_path("self", "options.heartbeatMilliseconds"),
            ),
            "`options.electionMilliseconds` must be at least five times \
             `options.heartbeatMilliseconds`",
        ),
    ]
}

/// Every setting that causes backups requires a destination.
fn destination_rules() -> Vec<Value> {
    vec![
        rule(
            format!(
                "!({}) || !self.upgrade.snapshotFirst || ({})",
                has_path("self", "upgrade.snapshotFirst"),
                has_path("self", "backup.destination"),
            ),
            "`upgrade.snapshotFirst` requires `backup.destination`",
        ),
        rule(
            format!(
                "!has(self.deletionPolicy) || self.deletionPolicy != 'SnapshotThenDelete' || ({})",
                has_path("self", "backup.destination"),
            ),
            "`deletionPolicy` 'SnapshotThenDelete' requires `backup.destination`",
        ),
        rule(
            format!(
                "!({}) || ({})",
                has_path("self", "backup.verifySchedule"),
                has_path("self", "backup.destination"),
            ),
            "`backup.verifySchedule` requires `backup.destination`",
        ),
    ]
}

/// Each compaction mode has its own retention field.
pub(super) fn compaction() -> Value {
    let mode = "(has(self.mode) ? self.mode : 'Periodic')";
    json!([
        rule(
            format!("!has(self.retentionRevisions) || {mode} == 'Revision'"),
            "`retentionRevisions` requires `mode` 'Revision'; use `retentionSeconds` for 'Periodic'",
        ),
        rule(
            format!("!has(self.retentionSeconds) || {mode} == 'Periodic'"),
            "`retentionSeconds` requires `mode` 'Periodic'; use `retentionRevisions` for 'Revision'",
        ),
    ])
}

/// Each certificate source has its own reference field.
pub(super) fn tls_side() -> Value {
    let source = "(has(self.source) ? self.source : 'Managed')";
    json!([
        rule(
            format!("has(self.issuerRef) == ({source} == 'CertManager')"),
            "`issuerRef` must be set if and only if `source` is 'CertManager'",
        ),
        rule(
            format!("has(self.secretRef) == ({source} == 'Secret')"),
            "`secretRef` must be set if and only if `source` is 'Secret'",
        ),
    ])
}

/// Rules over the whole object: derived object names must fit their length limits.
pub(crate) fn object_rules() -> Value {
    json!([name_rule(names::MAX_CLUSTER_NAME_LENGTH, "Services and Pods are named after it")])
}
