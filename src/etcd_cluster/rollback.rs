//! Taking a change back by itself: what members are made of when the spec asks for what does not start.
//! Comes in: the cluster, its pods, and what was written down. Goes out: the spec that holds, and what is to be written down.
//! May touch: `api`, Kubernetes' own types; pure. Each pod carries the part of the spec that it was made from, so the members
//! that were not touched say what worked. Once it is written down it holds until that part of the spec is changed.
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

/// The blocks of a spec that decide how a pod is made, and that can be taken back without anything else.
const TEMPLATE_FIELDS: [&str; 6] =
    ["version", "image", "options", "resources", "placement", "podMetadata"];
/// The longest text that is kept.
const MAX_TEMPLATE_BYTES: usize = 32_768;

/// What members are made of that run otherwise than is wanted.
#[derive(Clone, Debug)]
pub(crate) struct PreviousSpec {
    /// As their pods tell it.
    pub(crate) template: String,
    /// The same, with what is not made anew with pods.
    pub(crate) spec: validated::EtcdCluster,
}

/// What was written down, if it is about what the spec asks for now.
pub(crate) fn active(cluster: &EtcdCluster) -> Option<&RollbackStatus> {
    let recorded = cluster.status.as_ref()?.rollback.known()?;
    (recorded.spec_hash.known()?.as_str() == fnv1a_hex(&requested_template(cluster).to_string()))
        .then_some(recorded)
}

/// The cluster as it was before the change that was taken back; nothing if none was.
pub(crate) fn effective_object(cluster: &EtcdCluster) -> Option<Value> {
    with_template_fields(cluster, active(cluster)?.previous_template.known()?.as_str())
}

/// The cluster with the parts that members were made of.
pub(crate) fn with_template_fields(cluster: &EtcdCluster, text: &str) -> Option<Value> {
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut object = json!(cluster);
    let spec = object.get_mut("spec")?.as_object_mut()?;
    spec.retain(|name, _| !TEMPLATE_FIELDS.contains(&name.as_str()));
    spec.extend(fields.into_iter().filter(|(name, _)| TEMPLATE_FIELDS.contains(&name.as_str())));
    Some(object)
}

/// What a pod is made from that is made now, with this release.
pub(crate) fn template_source(cluster: &EtcdCluster, release: Release) -> Option<String> {
    let object = effective_object(cluster).unwrap_or_else(|| json!(cluster));
    let mut fields = fields(&object);
    fields.insert("version".to_owned(), json!(release.to_string()));
    let text = Value::Object(fields).to_string();
    (text.len() <= MAX_TEMPLATE_BYTES).then_some(text)
}

/// What members were made of that run otherwise than is wanted. Whoever agrees with a quorum is believed first; but there may be none.
pub(crate) fn last_working_template(
    blueprint: &Blueprint<'_>,
    objects: &ClusterObjects,
    probe: &EtcdProbe,
) -> Option<String> {
    let requested = requested_template(&objects.cluster).to_string();
    let members = objects.oldest_first().into_iter().filter(|it| is_remaining(it));
    let pods = members.filter_map(|it| objects.pod(&name_of(it)));
    let old = pods.filter(|pod| pod::template_differs(blueprint, &name_of(*pod), pod));
    let rank = |pod: &Pod| {
        let member = probe.members.get(&name_of(pod));
        match member {
            Some(member) if member.linearizable_read_ok => Some(0),
            Some(member) if member.status.is_some() => Some(1),
            Some(_) | None => pod::is_ready(pod).then_some(2),
        }
    };
    let recorded = old.filter_map(|pod| {
        Some((rank(pod)?, recorded_template(pod).filter(|it| **it != requested)?))
    });
    recorded.min_by_key(|(rank, _)| *rank).map(|(_, text)| text.clone())
}

/// What is written down about a change that is taken back.
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
