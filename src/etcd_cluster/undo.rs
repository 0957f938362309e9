//! Taking a change back by itself: what members are made of when the spec asks for what does not start.
//! Comes in: the cluster, its pods, and what was written down. Goes out: the spec that holds, and what is to be written down.
//! May touch: `api`, Kubernetes' own types; pure. Each pod carries the part of the spec that it was made from, so the members
//! that were not touched say what worked. Once it is written down it holds until that part of the spec is changed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::compose::pod::{self, digest};
use super::heard::Heard;
use super::render::Blueprint;
use super::seen::Name;
use super::stock::{Stock, name_of, stays};
use crate::api::etcd_cluster::checked;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::TakenBack;
use crate::api::etcd_version::Release;
use crate::api::names;

/// The blocks of a spec that decide how a pod is made, and that can be taken back without anything else.
const PARTS: [&str; 6] = ["version", "image", "options", "resources", "placement", "podMetadata"];
/// The longest text that is kept.
const MOST: usize = 32_768;

/// What members are made of that run otherwise than is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    /// As their pods tell it.
    pub(crate) text: String,
    /// The same, with what is not made anew with pods.
    pub(crate) spec: checked::EtcdCluster,
}

/// What was written down, if it is about what the spec asks for now.
pub(crate) fn stands(cluster: &EtcdCluster) -> Option<&TakenBack> {
    let told = cluster.status.as_ref()?.taken_back.known()?;
    (told.refused.known()?.as_str() == digest(&asked(cluster).to_string())).then_some(told)
}

/// The cluster as it was before the change that was taken back; nothing if none was.
pub(crate) fn instead(cluster: &EtcdCluster) -> Option<Value> {
    with_parts(cluster, stands(cluster)?.instead.known()?.as_str())
}

/// The cluster with the parts that members were made of.
pub(crate) fn with_parts(cluster: &EtcdCluster, text: &str) -> Option<Value> {
    let parts: Map<String, Value> = serde_json::from_str(text).ok()?;
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

/// What members were made of that run otherwise than is wanted. Whoever agrees with a quorum is believed first; but there may be none.
pub(crate) fn worked(blueprint: &Blueprint<'_>, stock: &Stock, heard: &Heard) -> Option<String> {
    let asked = asked(&stock.cluster).to_string();
    let members = stock.oldest_first().into_iter().filter(|it| stays(it));
    let pods = members.filter_map(|it| stock.pod(&name_of(it)));
    let old = pods.filter(|pod| pod::differs(blueprint, &name_of(*pod), pod));
    let rank = |pod: &Pod| {
        let voice = heard.voices.get(&name_of(pod));
        match voice {
            Some(voice) if voice.agrees => Some(0),
            Some(voice) if voice.standing.is_some() => Some(1),
            Some(_) | None => pod::is_ready(pod).then_some(2),
        }
    };
    let told = old.filter_map(|pod| Some((rank(pod)?, told(pod).filter(|it| **it != asked)?)));
    told.min_by_key(|(rank, _)| *rank).map(|(_, text)| text.clone())
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

fn asked(cluster: &EtcdCluster) -> Value {
    Value::Object(parts(&json!(cluster)))
}

fn parts(object: &Value) -> Map<String, Value> {
    let spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    spec.into_iter().filter(|(name, _)| PARTS.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests;
