//! Defaults of ExampleApp. They are idempotent and never change a value that the user set.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::v1::{
    DeletionPolicy, Etcd, ExampleAppSpec, Exposure, ManagedEtcd, ManagedStorage, ServiceType,
    Upgrade,
};
use crate::api::field::Field;

const REPLICAS: i32 = 2;
const ETCD_REPLICAS: i32 = 3;
const ETCD_VERSION: &str = "3.6.16";
const DISK_SIZE: &str = "10Gi";
/// Every night.
const SCHEDULE: &str = "0 3 * * *";
const ROLLBACK_AFTER_FAILED_STARTS: i32 = 3;
/// Minimum number of replicas with autoscaling. Not written into the object, like every default of
/// `autoscaling`; applied when the object is read.
pub(super) const MIN_REPLICAS: u16 = 1;
/// Target CPU utilization with autoscaling: the default of the `HorizontalPodAutoscaler`.
pub(super) const TARGET_CPU_PERCENT: u16 = 80;

/// Applies defaults to unset fields. The dedicated EtcdCluster keeps its previous values.
pub fn apply_defaults(spec: &mut ExampleAppSpec, old: Option<&ExampleAppSpec>) {
    if !spec.autoscaling.is_set() {
        spec.replicas.set_default(REPLICAS);
    }
    if let Some(data) = spec.data.get_or_default()
        && let Some(Etcd { cluster_ref, managed }) = data.etcd.get_or_default()
        && matches!(cluster_ref, Field::Absent | Field::Null)
        && let Some(managed) = managed.get_or_default()
    {
        managed_defaults(managed, old.and_then(managed_of));
    }
    if let Some(Exposure { service_type, host: _, tls: _ }) = spec.exposure.get_or_default() {
        service_type.set_default(ServiceType::ClusterIp);
    }
    // A destination without a schedule means backups on the default schedule.
    if let Field::Known(backup) = &mut spec.backup
        && backup.destination.known().is_some()
    {
        backup.schedule.set_default(SCHEDULE.into());
    }
    if let Some(Upgrade { snapshot_first: _, rollback_after_failed_starts }) =
        spec.upgrade.get_or_default()
    {
        rollback_after_failed_starts.set_default(ROLLBACK_AFTER_FAILED_STARTS);
    }
    spec.deletion_policy.set_default(DeletionPolicy::Delete);
}

fn managed_of(old: &ExampleAppSpec) -> Option<&ManagedEtcd> {
    old.data.known()?.etcd.known()?.managed.known()
}

fn managed_defaults(managed: &mut ManagedEtcd, old: Option<&ManagedEtcd>) {
    let ManagedEtcd { replicas, version, storage } = managed;
    let members = old.and_then(|old| old.replicas.known().copied());
    replicas.set_default(members.unwrap_or(ETCD_REPLICAS));
    let previous = old.and_then(|old| old.version.known().cloned());
    version.set_default(previous.unwrap_or_else(|| ETCD_VERSION.into()));
    let previous =
        old.and_then(|old| old.storage.known()).and_then(|storage| storage.size.known().cloned());
    if let Some(ManagedStorage { size, class_name: _ }) = storage.get_or_default() {
        size.set_default(previous.unwrap_or_else(|| DISK_SIZE.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::field::FromJson;
    use serde_json::json;

    fn with_defaults(
        given: &serde_json::Value,
        old: Option<&serde_json::Value>,
    ) -> serde_json::Value {
        let mut spec = ExampleAppSpec::read(given).unwrap();
        let old = old.map(|old| ExampleAppSpec::read(old).unwrap());
        apply_defaults(&mut spec, old.as_ref());
        serde_json::to_value(spec).unwrap()
    }

    #[test]
    fn dedicated_cluster_is_the_default() {
        let expected = json!({
            "version": "0.0.1",
            "replicas": 2,
            "data": {"etcd": {"managed": {
                "replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi"},
            }}},
            "exposure": {"serviceType": "ClusterIP"},
            "upgrade": {"rollbackAfterFailedStarts": 3},
            "deletionPolicy": "Delete",
        });
        assert_eq!(with_defaults(&json!({"version": "0.0.1"}), None), expected);
    }

    #[test]
    fn cluster_ref_disables_the_dedicated_cluster() {
        let given = json!({"data": {"etcd": {"clusterRef": {"name": "main"}}}});
        assert_eq!(with_defaults(&given, None)["data"], given["data"]);
    }

    #[test]
    fn dedicated_cluster_keeps_its_version_and_size_when_unset() {
        let old = json!({"data": {"etcd": {"managed": {"version": "3.5.35", "storage": {"size": "20Gi"}}}}});
        let new = with_defaults(&json!({}), Some(&old));
        assert_eq!(new["data"]["etcd"]["managed"]["version"], "3.5.35");
        assert_eq!(new["data"]["etcd"]["managed"]["storage"]["size"], "20Gi");
    }

    #[test]
    fn destination_sets_the_default_schedule() {
        let given = json!({"backup": {"destination": {"s3": {"bucket": "bbb"}}}});
        assert_eq!(with_defaults(&given, None)["backup"]["schedule"], "0 3 * * *");
        assert_eq!(
            with_defaults(&json!({"backup": {"suspend": true}}), None)["backup"],
            json!({"suspend": true})
        );
    }
}
