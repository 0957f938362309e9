//! CEL rules of ExampleApp, in every version that has the fields: the API server runs only the
//! rules of the version in the request. They hold while the webhook is unavailable; `validation`
//! has the same rules with longer messages.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::api::cel::{has_path, immutable, name_rule, rule, size_not_removed};
use crate::api::names;

/// Rules over the spec of v1.
pub(super) fn v1() -> Value {
    let mut rules = vec![
        requires("backup.schedule", "backup.destination"),
        data_source_immutable("data.etcd.clusterRef"),
        rule(
            "!(has(self.replicas) && has(self.autoscaling))",
            "must not have both `replicas` and `autoscaling`: remove one of them",
        ),
        rule(
            "!has(self.restore) || (has(oldSelf.restore) && self.restore == oldSelf.restore)",
            "`restore` may only be set when the application is created",
        ),
        rule(
            format!("!has(self.restore) || !({})", has_path("self", "data.etcd.clusterRef")),
            "`restore` cannot be combined with `data.etcd.clusterRef`, which has its own data",
        ),
        rule(
            format!(
                "!({}) || !self.upgrade.snapshotFirst || ({})",
                has_path("self", "upgrade.snapshotFirst"),
                has_path("self", "backup.destination"),
            ),
            "`upgrade.snapshotFirst` requires `backup.destination`",
        ),
    ];
    rules.extend(volumes_immutable());
    Value::Array(rules)
}

/// Rules over the spec of v1beta1.
pub(super) fn v1beta1() -> Value {
    // An empty object is not a destination and does not exist in the hub.
    json!([requires("schedule", "destination.storageType"), data_source_immutable("etcdCluster")])
}

/// Rules over the whole object: derived object names must fit their length limits.
pub(crate) fn object_rules() -> Value {
    let reason = "its EtcdCluster and its other objects are named after it";
    json!([name_rule(names::MAX_APP_NAME_LENGTH, reason)])
}

/// At most one of `clusterRef` and `managed`.
pub(super) fn single_data_source() -> Value {
    json!([rule(
        "!(has(self.clusterRef) && has(self.managed))",
        "must not have both `clusterRef` and `managed`",
    )])
}

/// The minimum is not greater than the maximum.
pub(super) fn autoscaling() -> Value {
    json!([rule(
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        "`minReplicas` must not be more than `maxReplicas`",
    )])
}

/// TLS requires a host.
pub(super) fn exposure() -> Value {
    json!([rule("!has(self.tls) || has(self.host)", "`tls` requires `host`")])
}

/// Backup fields of v1alpha1 and v1beta1 must be valid for the hub's schema as well.
pub(super) fn backup_store() -> Value {
    let is = |kind: &str| format!("(has(self.storageType) && self.storageType == '{kind}')");
    json!([
        rule(
            "has(self.storageType) == has(self.bucketName)",
            "must have both `storageType` and `bucketName`, or neither",
        ),
        rule(
            format!("!has(self.host) || {} || {}", is("s3"), is("azure")),
            "`host` requires `storageType` 's3', where it is the server, or 'azure', where it is the \
             storage account",
        ),
        rule(
            format!(
                "!{} || (has(self.host) && self.host.matches('^[a-z0-9]{{3,24}}$'))",
                is("azure")
            ),
            "`storageType` 'azure' requires the storage account as `host`: 3 to 24 lower case letters \
             and digits",
        ),
        rule(
            format!(
                "!has(self.bucketName) || {} || (self.bucketName.size() >= 3 && \
                 self.bucketName.size() <= 63)",
                is("volume"),
            ),
            "`bucketName` must have 3 to 63 characters",
        ),
        rule(
            format!(
                "!has(self.bucketName) || !{} || self.bucketName.matches(\
                 '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
                is("volume"),
            ),
            "`bucketName` must be the name of a PersistentVolumeClaim for `storageType` 'volume'",
        ),
    ])
}

/// The same with `prefix`, which requires a storage type.
pub(super) fn backup_store_with_prefix() -> Value {
    let mut rules = backup_store();
    if let Some(rules) = rules.as_array_mut() {
        rules.push(rule(
            "!has(self.prefix) || has(self.storageType)",
            "`prefix` requires `storageType`",
        ));
    }
    rules
}

fn requires(path: &str, other: &str) -> Value {
    rule(
        format!("!({}) || ({})", has_path("self", path), has_path("self", other)),
        format!("`{path}` requires `{other}`"),
    )
}

/// The reference to the EtcdCluster is immutable.
fn data_source_immutable(path: &str) -> Value {
    immutable(path, "the data would not be moved; create a new application instead")
}

/// The immutable volume fields of EtcdCluster, rejected where the user sets them.
fn volumes_immutable() -> [Value; 2] {
    let (size, class) = ("data.etcd.managed.storage.size", "data.etcd.managed.storage.className");
    [size_not_removed(size), immutable(class, "volumes keep their StorageClass")]
}
