//! Writes the status of a cluster and of its members by server-side apply, and only if it changed.
//! The whole status is applied each time, so that a field that is no longer reported disappears.

use kube::ResourceExt;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_member::{EtcdMember, EtcdMemberStatus};
use crate::clients::objects::{NamespacedResource, ObjectError, Objects};

/// The apply body that records fields in the status which are never decided twice. It carries uid
/// and resourceVersion: it changes the object that was observed, or nothing.
pub(crate) fn with_recorded_fields(cluster: &EtcdCluster, fields: &Value) -> Value {
    let mut status = json!(cluster.status.clone().unwrap_or_default());
    if let (Value::Object(status), Value::Object(fields)) = (&mut status, fields) {
        status.extend(fields.clone());
    }
    apply_body(cluster, &status)
}

fn apply_body<K: NamespacedResource>(object: &K, status: &Value) -> Value {
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {
            "name": object.name_any(),
            "namespace": object.namespace(),
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
        },
        "status": status,
    })
}

/// Writes the status of a cluster if it changed; returns whether it was written.
pub(super) async fn write_cluster_status(
    objects: &Objects,
    cluster: &EtcdCluster,
    status: &EtcdClusterStatus,
) -> Result<bool, ObjectError> {
    apply_if_changed(objects, cluster, cluster.status.as_ref(), status).await
}

/// Writes the status of a member if it changed; returns whether it was written.
pub(super) async fn write_member_status(
    objects: &Objects,
    member: &EtcdMember,
    status: &EtcdMemberStatus,
) -> Result<bool, ObjectError> {
    apply_if_changed(objects, member, member.status.as_ref(), status).await
}

/// Compares values first, and JSON only where values differ: two values may have the same JSON.
async fn apply_if_changed<K: NamespacedResource, S: Serialize + PartialEq>(
    objects: &Objects,
    object: &K,
    recorded: Option<&S>,
    status: &S,
) -> Result<bool, ObjectError> {
    if recorded == Some(status) {
        return Ok(false);
    }
    let body = json!(status);
    if recorded.map_or_else(|| json!({}), |recorded| json!(recorded)) == body {
        return Ok(false);
    }
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    objects.apply_status::<K>(&namespace, &name, &apply_body(object, &body)).await.map(|_| true)
}
