//! What an ExampleApp means where it says nothing.
//! Comes in: a spec in v1, and the one before it. Goes out: the spec with its silence filled in.
//! May touch: the types of this kind. Idempotent, and never changes what the user gave.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::v1::{
    DeletionPolicy, Etcd, ExampleAppSpec, Exposure, ManagedEtcd, ManagedStorage, ServiceType,
    Upgrade,
};
use crate::api::field::Field;

const REPLICAS: i32 = 2;
const MEMBERS: i32 = 3;
const ETCD: &str = "3.6.16";
const DISK: &str = "10Gi";
/// Every night, when few people work.
const SCHEDULE: &str = "0 3 * * *";
const FAILED_STARTS: i32 = 3;
/// How many replicas a range has at least, if it does not say so. It is not written into the object,
/// like all of a range: who reads one means this.
pub(super) const LEAST_REPLICAS: u16 = 1;
/// How busy the replicas of a range should be, if it does not say so: what Kubernetes' own autoscaler
/// takes without a word.
pub(super) const TARGET_PERCENT: u16 = 80;

/// Fills in what is not said. What the application's own cluster was given once, it keeps.
pub fn defaults(spec: &mut ExampleAppSpec, old: Option<&ExampleAppSpec>) {
    if !spec.autoscaling.is_said() {
        spec.replicas.fill(REPLICAS);
    }
    if let Some(data) = spec.data.block()
        && let Some(Etcd { cluster_ref, managed }) = data.etcd.block()
        && matches!(cluster_ref, Field::Absent | Field::Null)
        && let Some(managed) = managed.block()
    {
        managed_defaults(managed, old.and_then(managed_of));
    }
    if let Some(Exposure { service_type, host: _, tls: _ }) = spec.exposure.block() {
        service_type.fill(ServiceType::ClusterIp);
    }
    // Who says where backups go wants backups.
    if let Field::Known(backup) = &mut spec.backup
        && backup.destination.known().is_some()
    {
        backup.schedule.fill(SCHEDULE.into());
    }
    if let Some(Upgrade { snapshot_first: _, rollback_after_failed_starts }) = spec.upgrade.block()
    {
        rollback_after_failed_starts.fill(FAILED_STARTS);
    }
    spec.deletion_policy.fill(DeletionPolicy::Delete);
}

fn managed_of(old: &ExampleAppSpec) -> Option<&ManagedEtcd> {
    old.data.known()?.etcd.known()?.managed.known()
}

fn managed_defaults(managed: &mut ManagedEtcd, old: Option<&ManagedEtcd>) {
    let ManagedEtcd { replicas, version, storage } = managed;
    let members = old.and_then(|old| old.replicas.known().copied());
    replicas.fill(members.unwrap_or(MEMBERS));
    let ran = old.and_then(|old| old.version.known().cloned());
    version.fill(ran.unwrap_or_else(|| ETCD.into()));
    let had = old.and_then(|old| old.storage.known()).and_then(|it| it.size.known().cloned());
    if let Some(ManagedStorage { size, class_name: _ }) = storage.block() {
        size.fill(had.unwrap_or_else(|| DISK.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::field::Wire;
    use serde_json::json;

    fn filled(given: &serde_json::Value, old: Option<&serde_json::Value>) -> serde_json::Value {
        let mut spec = ExampleAppSpec::read(given).unwrap();
        let old = old.map(|old| ExampleAppSpec::read(old).unwrap());
        defaults(&mut spec, old.as_ref());
        serde_json::to_value(spec).unwrap()
    }

    #[test]
    fn an_application_gets_a_cluster_of_its_own() {
        let whole = json!({
            "version": "0.0.1",
            "replicas": 2,
            "data": {"etcd": {"managed": {
                "replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi"},
            }}},
            "exposure": {"serviceType": "ClusterIP"},
            "upgrade": {"rollbackAfterFailedStarts": 3},
            "deletionPolicy": "Delete",
        });
        assert_eq!(filled(&json!({"version": "0.0.1"}), None), whole);
    }

    #[test]
    fn an_application_that_names_a_cluster_gets_no_other() {
        let given = json!({"data": {"etcd": {"clusterRef": {"name": "main"}}}});
        assert_eq!(filled(&given, None)["data"], given["data"]);
    }

    #[test]
    fn what_a_cluster_runs_is_not_changed_by_leaving_it_out() {
        let old = json!({"data": {"etcd": {"managed": {"version": "3.5.35", "storage": {"size": "20Gi"}}}}});
        let new = filled(&json!({}), Some(&old));
        assert_eq!(new["data"]["etcd"]["managed"]["version"], "3.5.35");
        assert_eq!(new["data"]["etcd"]["managed"]["storage"]["size"], "20Gi");
    }

    #[test]
    fn a_place_for_backups_means_a_backup_every_night() {
        let given = json!({"backup": {"destination": {"s3": {"bucket": "bbb"}}}});
        assert_eq!(filled(&given, None)["backup"]["schedule"], "0 3 * * *");
        assert_eq!(
            filled(&json!({"backup": {"suspend": true}}), None)["backup"],
            json!({"suspend": true})
        );
    }
}
