//! Rules in CEL for EtcdCluster, the same in every version: the apiserver runs only those of the
//! version in the request, so a rule that stood in one alone could be walked around.
//! Comes in: where each version keeps a value. Goes out: `x-kubernetes-validations`.
//! May touch: `cel`, `sizes`. They hold when the webhook is down; `check` says the same with more words.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use crate::api::cel::{given, name_within, rule, size_stays, stays};
use crate::api::{names, sizes};

/// Where one version of the spec keeps what the rules are about. A rule over two fields of which a
/// version has one can still be broken through it; `check` judges those in v1, whoever wrote.
pub(super) struct Where {
    size: &'static str,
    class: &'static str,
    quota: &'static str,
    schedule: &'static str,
    destination: &'static str,
}

/// In v1.
pub(super) const V1: Where = Where {
    size: "storage.size",
    class: "storage.className",
    quota: "options.quota",
    schedule: "backup.schedule",
    destination: "backup.destination",
};
/// In v1beta1.
pub(super) const V1BETA1: Where = Where {
    size: "storageSize",
    class: "storageClass",
    quota: "quota",
    schedule: "backupSchedule",
    destination: "backupDestination",
};
/// In v1alpha1, which cannot speak of quotas and backups.
pub(super) const V1ALPHA1: Where = Where {
    size: "pod.persistentVolumeClaimSpec.resources.requests.storage",
    class: "pod.persistentVolumeClaimSpec.storageClassName",
    quota: "",
    schedule: "",
    destination: "",
};

impl Where {
    /// The rules over the whole spec.
    pub(super) fn rules(&self) -> Value {
        let Self { size, class, quota, schedule, destination } = self;
        let mut rules = vec![
            size_stays(size),
            stays(
                class,
                "a volume stays in its class; restore a backup into a new cluster instead",
            ),
        ];
        if !quota.is_empty() {
            rules.push(sizes::quota_fits(quota, size));
        }
        if !schedule.is_empty() {
            rules.push(rule(
                format!("!({}) || ({})", given("self", schedule), given("self", destination)),
                format!("`{schedule}` needs `{destination}`: say where the backups go"),
            ));
        }
        if self.size == V1.size {
            rules.extend(only_in_v1());
            rules.extend(need_a_destination());
        }
        Value::Array(rules)
    }
}

/// Rules about what only v1 can say.
fn only_in_v1() -> Vec<Value> {
    let medium =
        |it: &str| format!("({} ? {it}.storage.medium : 'Disk')", given(it, "storage.medium"));
    vec![
        rule(
            format!("{} == {}", medium("self"), medium("oldSelf")),
            "`storage.medium` may not be changed: restore a backup into a new cluster instead",
        ),
        rule(
            format!("!has(self.replicas) || self.replicas > 0 || {} == 'Disk'", medium("self")),
            "`replicas` may not be 0 with `storage.medium` 'Memory': the data would be gone; \
             delete the cluster instead",
        ),
        rule(
            "!has(self.restore) || (has(oldSelf.restore) && self.restore == oldSelf.restore)",
            "`restore` may only be given when the cluster is made; use an EtcdRestore for a \
             cluster that exists",
        ),
        rule(
            format!(
                "!({}) || !self.auth.enabled || !({}) || self.tls.client.source != 'Disabled'",
                given("self", "auth.enabled"),
                given("self", "tls.client.source"),
            ),
            "`auth.enabled` does not go with `tls.client` 'Disabled': passwords would travel in \
             the clear",
        ),
        rule(
            format!(
                "!({}) || !self.auth.enabled || !({}) || self.tls.client.source != 'Secret'",
                given("self", "auth.enabled"),
                given("self", "tls.client.source"),
            ),
            "`auth.enabled` does not go with `tls.client` 'Secret': etcd knows the operator by the \
             name in its certificate",
        ),
        rule(
            format!(
                "!({}) || !({}) || self.options.electionMilliseconds >= 5 * \
                 self.options.heartbeatMilliseconds",
                given("self", "options.electionMilliseconds"),
                given("self", "options.heartbeatMilliseconds"),
            ),
            "`options.electionMilliseconds` must be at least five times \
             `options.heartbeatMilliseconds`",
        ),
    ]
}

/// Backups need a place to go to, whoever asks for them.
fn need_a_destination() -> Vec<Value> {
    vec![
        rule(
            format!(
                "!({}) || !self.upgrade.snapshotFirst || ({})",
                given("self", "upgrade.snapshotFirst"),
                given("self", "backup.destination"),
            ),
            "`upgrade.snapshotFirst` needs `backup.destination`: say where the backup goes",
        ),
        rule(
            format!(
                "!has(self.deletionPolicy) || self.deletionPolicy != 'SnapshotThenDelete' || ({})",
                given("self", "backup.destination"),
            ),
            "`deletionPolicy` 'SnapshotThenDelete' needs `backup.destination`: say where the \
             backup goes",
        ),
        rule(
            format!(
                "!({}) || ({})",
                given("self", "backup.verifySchedule"),
                given("self", "backup.destination"),
            ),
            "`backup.verifySchedule` needs `backup.destination`: there is nothing to verify",
        ),
    ]
}

/// Each way of compacting has its own measure.
pub(super) fn compaction() -> Value {
    let mode = "(has(self.mode) ? self.mode : 'Periodic')";
    json!([
        rule(
            format!("!has(self.retentionRevisions) || {mode} == 'Revision'"),
            "`retentionRevisions` goes with `mode` 'Revision'; say `retentionSeconds` for 'Periodic'",
        ),
        rule(
            format!("!has(self.retentionSeconds) || {mode} == 'Periodic'"),
            "`retentionSeconds` goes with `mode` 'Periodic'; say `retentionRevisions` for 'Revision'",
        ),
    ])
}

/// Each source of certificates has its own reference, and no other.
pub(super) fn tls_side() -> Value {
    let source = "(has(self.source) ? self.source : 'Managed')";
    json!([
        rule(
            format!("has(self.issuerRef) == ({source} == 'CertManager')"),
            "`issuerRef` goes with `source` 'CertManager', which needs it",
        ),
        rule(
            format!("has(self.secretRef) == ({source} == 'Secret')"),
            "`secretRef` goes with `source` 'Secret', which needs it",
        ),
    ])
}

/// The name must leave room for what is named after it.
pub(crate) fn name_fits() -> Value {
    json!([name_within(names::MOST_NAME, "Services and Pods are named after it")])
}
