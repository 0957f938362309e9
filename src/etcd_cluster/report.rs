//! Tells: writes the status of a cluster and of its members, and only what differs.
//! Comes in: a status. Goes out: writes. May touch: `ports`. The whole status is applied each time, so nothing that
//! was once said stays by itself.

use serde_json::{Value, json};

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_member::{EtcdMember, EtcdMemberStatus};
use crate::ports::objects::{Kept, ObjectError, Objects};
use kube::ResourceExt;

/// The status of a cluster with something written down in it that is never decided twice. It lands on the
/// object that was looked at, or nowhere.
pub(super) fn with_record(cluster: &EtcdCluster, change: &Value) -> Value {
    let mut status = json!(cluster.status.clone().unwrap_or_default());
    if let (Value::Object(status), Value::Object(change)) = (&mut status, change) {
        status.extend(change.clone());
    }
    body(cluster, &status)
}

/// What is applied.
fn body<K: Kept>(object: &K, status: &Value) -> Value {
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

/// Reports on a cluster, if there is anything new.
pub(super) async fn cluster(
    objects: &Objects,
    cluster: &EtcdCluster,
    status: &EtcdClusterStatus,
) -> Result<bool, ObjectError> {
    write(objects, cluster, &json!(cluster.status.clone().unwrap_or_default()), &json!(status))
        .await
}

/// Reports on a member, if there is anything new.
pub(super) async fn member(
    objects: &Objects,
    member: &EtcdMember,
    status: &EtcdMemberStatus,
) -> Result<bool, ObjectError> {
    write(objects, member, &json!(member.status.clone().unwrap_or_default()), &json!(status)).await
}

async fn write<K: Kept>(
    objects: &Objects,
    object: &K,
    before: &Value,
    now: &Value,
) -> Result<bool, ObjectError> {
    if before == now {
        return Ok(false);
    }
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    objects.apply_status::<K>(&namespace, &name, &body(object, now)).await.map(|_| true)
}
