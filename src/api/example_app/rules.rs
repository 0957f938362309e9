//! Rules in CEL for ExampleApp, in every version that can say what they are about: the apiserver
//! runs only those of the version in the request.
//! Comes in: nothing. Goes out: `x-kubernetes-validations`.
//! May touch: `cel`. They hold when the webhook is down; `check` says the same with more words.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::api::cel::{given, name_within, rule, size_stays, stays};
use crate::api::names;

/// The rules over the spec of v1.
pub(super) fn v1() -> Value {
    let mut rules = vec![
        needs("backup.schedule", "backup.destination"),
        source_stays("data.etcd.clusterRef"),
        rule(
            "!(has(self.replicas) && has(self.autoscaling))",
            "must not have both `replicas` and `autoscaling`: remove the one that shall not rule",
        ),
        rule(
            "!has(self.restore) || (has(oldSelf.restore) && self.restore == oldSelf.restore)",
            "`restore` may only be given when the application is made; use an EtcdRestore for a \
             cluster that exists",
        ),
        rule(
            format!("!has(self.restore) || !({})", given("self", "data.etcd.clusterRef")),
            "`restore` does not go with `data.etcd.clusterRef`: that cluster has its data; use an \
             EtcdRestore for it",
        ),
        rule(
            format!(
                "!({}) || !self.upgrade.snapshotFirst || ({})",
                given("self", "upgrade.snapshotFirst"),
                given("self", "backup.destination"),
            ),
            "`upgrade.snapshotFirst` needs `backup.destination`: say where the backup goes",
        ),
    ];
    rules.extend(volumes_stay());
    Value::Array(rules)
}

/// The rules over the spec of v1beta1.
pub(super) fn v1beta1() -> Value {
    // An empty block is no place, and has no words in the hub.
    json!([needs("schedule", "destination.storageType"), source_stays("etcdCluster")])
}

/// The name must leave room for what is named after it.
pub(crate) fn name_fits() -> Value {
    let because = "its EtcdCluster and its other objects are named after it";
    json!([name_within(names::MOST_APP_NAME, because)])
}

/// At most one source of the data.
pub(super) fn one_source() -> Value {
    json!([rule(
        "!(has(self.clusterRef) && has(self.managed))",
        "must not have both `clusterRef` and `managed`",
    )])
}

/// The least is not more than the most.
pub(super) fn autoscaling() -> Value {
    json!([rule(
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        "`minReplicas` must not be more than `maxReplicas`",
    )])
}

/// A certificate is for a host.
pub(super) fn exposure() -> Value {
    json!([rule("!has(self.tls) || has(self.host)", "`tls` needs `host`: say what it is for")])
}

/// A place, as v1alpha1 and v1beta1 say it, must be one that the hub's schema takes as well.
pub(super) fn place() -> Value {
    let is = |kind: &str| format!("(has(self.storageType) && self.storageType == '{kind}')");
    json!([
        rule(
            "has(self.storageType) == has(self.bucketName)",
            "must have both `storageType` and `bucketName`, or neither",
        ),
        rule(
            format!("!has(self.host) || {} || {}", is("s3"), is("azure")),
            "`host` goes with `storageType` 's3', where it is the server, and 'azure', where it is \
             the storage account",
        ),
        rule(
            format!(
                "!{} || (has(self.host) && self.host.matches('^[a-z0-9]{{3,24}}$'))",
                is("azure")
            ),
            "`storageType` 'azure' needs the storage account as `host`: 3 to 24 lower case letters \
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

/// A prefix is in a place.
pub(super) fn place_with_prefix() -> Value {
    let mut rules = place();
    if let Some(rules) = rules.as_array_mut() {
        rules.push(rule("!has(self.prefix) || has(self.storageType)", "`prefix` needs a place"));
    }
    rules
}

fn needs(path: &str, other: &str) -> Value {
    rule(
        format!("!({}) || ({})", given("self", path), given("self", other)),
        format!("`{path}` needs `{other}`: say where the backups go"),
    )
}

/// Where the data is stays where it is.
fn source_stays(path: &str) -> Value {
    stays(path, "the data would stay behind; make a new application instead")
}

/// What EtcdCluster refuses to change about its volumes, refused where it is said.
fn volumes_stay() -> [Value; 2] {
    let (size, class) = ("data.etcd.managed.storage.size", "data.etcd.managed.storage.className");
    [size_stays(size), stays(class, "a volume stays in its class")]
}
