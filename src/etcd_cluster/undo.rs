//! Taking a change back by itself: what members are made of when the spec asks for what does not start.
//! Comes in: the cluster, its pods, and what was written down. Goes out: the spec that holds, and what is to be written down.
//! May touch: `api`, Kubernetes' own types; pure. Each pod carries the part of the spec that it was made from, so the members
//! that were not touched say what worked. Once it is written down it holds until that part of the spec is changed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::compose::pod::digest;
use super::seen::{Etcd, Member, Name, Registered, Seen};
use super::stock::Stock;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::TakenBack;
use crate::api::etcd_version::Release;
use crate::api::names;

/// The blocks of a spec that decide how a pod is made, and that can be taken back without anything else.
const PARTS: [&str; 6] = ["version", "image", "options", "resources", "placement", "podMetadata"];
/// The longest text that is kept.
const MOST: usize = 32_768;

/// What was written down, if it is about what the spec asks for now.
pub(crate) fn stands(cluster: &EtcdCluster) -> Option<&TakenBack> {
    let told = cluster.status.as_ref()?.taken_back.known()?;
    (told.refused.known()?.as_str() == digest(&asked(cluster).to_string())).then_some(told)
}

/// The cluster as it was before the change that was taken back; nothing if none was.
pub(crate) fn instead(cluster: &EtcdCluster) -> Option<Value> {
    let parts: Map<String, Value> =
        serde_json::from_str(stands(cluster)?.instead.known()?.as_str()).ok()?;
    let mut object = json!(cluster);
    let spec = object.get_mut("spec")?.as_object_mut()?;
    spec.retain(|name, _| !PARTS.contains(&name.as_str()));
    spec.extend(parts.into_iter().filter(|(name, _)| PARTS.contains(&name.as_str())));
    Some(object)
}

/// What a pod is made from that is made now, with this release.
pub(crate) fn made_of(cluster: &EtcdCluster, release: Release) -> Option<String> {
    let object = instead(cluster).unwrap_or_else(|| json!(cluster));
    let mut parts = parts(&object);
    parts.insert("version".to_owned(), json!(release.to_string()));
    let text = Value::Object(parts).to_string();
    (text.len() <= MOST).then_some(text)
}

/// What worked: what a member was made from that is well, and was made before the change.
pub(crate) fn worked(seen: &Seen, stock: &Stock) -> Option<String> {
    let etcd = seen.etcd.known()?;
    let is_well = |it: &&Member| voter(etcd, it).is_some_and(Registered::is_well);
    let before = seen.staying().filter(|it| it.is_outdated()).filter(is_well);
    let mut made = before.filter_map(|it| stock.pod(&it.name)).filter_map(told);
    let asked = asked(&stock.cluster).to_string();
    made.next().filter(|it| **it != asked).cloned()
}

/// What is written down about a change that is taken back.
pub(crate) fn record(cluster: &EtcdCluster, instead: &str, member: &Name, why: &str) -> Value {
    json!({ "takenBack": {
        "refused": digest(&asked(cluster).to_string()),
        "instead": instead,
        "member": member,
        "reason": why,
        "generation": cluster.metadata.generation,
    } })
}

fn told(pod: &Pod) -> Option<&String> {
    pod.annotations().get(names::MADE_OF_ANNOTATION)
}

fn voter<'a>(etcd: &'a Etcd, member: &Member) -> Option<&'a Registered> {
    etcd.entry(&member.name).filter(|it| !it.learner)
}

fn asked(cluster: &EtcdCluster) -> Value {
    Value::Object(parts(&json!(cluster)))
}

fn parts(object: &Value) -> Map<String, Value> {
    let spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    spec.into_iter().filter(|(name, _)| PARTS.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests;
