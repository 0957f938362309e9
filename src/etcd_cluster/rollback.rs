//! Automatic rollback: the template that pods are created from if members do not start with the
//! spec.
//!
//! Each pod has the template fields of the spec that it was created from in an annotation, so the
//! pods that were not updated show which template works. A recorded rollback holds until these
//! fields change.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::observe::etcd::EtcdProbe;
use super::observe::objects::{ClusterObjects, is_remaining, name_of};
use super::render::Blueprint;
use super::state::MemberName;
use super::state::pod::{self, fnv1a_hex};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::RollbackStatus;
use crate::api::etcd_cluster::validated;
use crate::api::etcd_version::Release;
use crate::api::names;

/// The fields of the spec that form the pod template and can be rolled back independently of
/// others.
const TEMPLATE_FIELDS: [&str; 6] =
    ["version", "image", "options", "resources", "placement", "podMetadata"];
/// The longest template that is recorded.
const MAX_TEMPLATE_BYTES: usize = 32_768;

/// The template of members that run with another one than the desired one.
#[derive(Clone, Debug)]
pub(crate) struct PreviousSpec {
    /// As recorded in the annotation of their pods.
    pub(crate) template: String,
    /// The spec with these template fields.
    pub(crate) spec: validated::EtcdCluster,
}

/// The recorded rollback, if it is of the current spec.
pub(crate) fn active(cluster: &EtcdCluster) -> Option<&RollbackStatus> {
    let recorded = cluster.status.as_ref()?.rollback.known()?;
    (recorded.spec_hash.known()?.as_str() == fnv1a_hex(&requested_template(cluster).to_string()))
        .then_some(recorded)
}

/// The cluster with the template fields of the active rollback, if any.
pub(crate) fn effective_object(cluster: &EtcdCluster) -> Option<Value> {
    with_template_fields(cluster, active(cluster)?.previous_template.known()?.as_str())
}

/// The cluster with these template fields.
pub(crate) fn with_template_fields(cluster: &EtcdCluster, template: &str) -> Option<Value> {
    let fields: Map<String, Value> = serde_json::from_str(template).ok()?;
    let mut object = json!(cluster);
    let spec = object.get_mut("spec")?.as_object_mut()?;
    spec.retain(|name, _| !TEMPLATE_FIELDS.contains(&name.as_str()));
    spec.extend(fields.into_iter().filter(|(name, _)| TEMPLATE_FIELDS.contains(&name.as_str())));
    Some(object)
}

/// The template fields that a pod of this version is created from.
pub(crate) fn template_source(cluster: &EtcdCluster, release: Release) -> Option<String> {
    let object = effective_object(cluster).unwrap_or_else(|| json!(cluster));
    let mut fields = fields(&object);
    fields.insert("version".to_owned(), json!(release.to_string()));
    let template = Value::Object(fields).to_string();
    (template.len() <= MAX_TEMPLATE_BYTES).then_some(template)
}

/// The template of members that run with another one than the desired one. A member with quorum is
/// preferred, then any reachable one, then any ready pod.
pub(crate) fn last_working_template(
    blueprint: &Blueprint<'_>,
    objects: &ClusterObjects,
    probe: &EtcdProbe,
) -> Option<String> {
    let requested = requested_template(&objects.cluster).to_string();
    let members = objects.oldest_first().into_iter().filter(|member| is_remaining(member));
    let pods = members.filter_map(|member| objects.pod(&name_of(member)));
    let outdated = pods.filter(|pod| pod::template_differs(blueprint, &name_of(*pod), pod));
    let rank = |pod: &Pod| {
        let member = probe.members.get(&name_of(pod));
        match member {
            Some(member) if member.linearizable_read_ok => Some(0),
            Some(member) if member.status.is_some() => Some(1),
            Some(_) | None => pod::is_ready(pod).then_some(2),
        }
    };
    let recorded = outdated.filter_map(|pod| {
        Some((rank(pod)?, recorded_template(pod).filter(|template| **template != requested)?))
    });
    recorded.min_by_key(|(rank, _)| *rank).map(|(_, template)| template.clone())
}

/// The status change that records a rollback.
pub(crate) fn record(
    cluster: &EtcdCluster,
    previous: &str,
    member: &MemberName,
    reason: &str,
) -> Value {
    json!({ "rollback": {
        "specHash": fnv1a_hex(&requested_template(cluster).to_string()),
        "previousTemplate": previous,
        "member": member,
        "reason": reason,
        "observedGeneration": cluster.metadata.generation,
    } })
}

fn recorded_template(pod: &Pod) -> Option<&String> {
    pod.annotations().get(names::POD_TEMPLATE_ANNOTATION)
}

fn requested_template(cluster: &EtcdCluster) -> Value {
    Value::Object(fields(&json!(cluster)))
}

fn fields(object: &Value) -> Map<String, Value> {
    let spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    spec.into_iter().filter(|(name, _)| TEMPLATE_FIELDS.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests;
