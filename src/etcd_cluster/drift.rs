//! What stands around the members and differs from what it should be: Services, the budget, volumes that
//! should be larger, labels, owners.
//! Comes in: `ClusterObjects`, `Seen`, the blueprint. Goes out: what to apply. May touch: `api`, Kubernetes' own types;
//! pure. An object is applied only if something of it differs, so a cluster at rest costs no write.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::observe::objects::{ClusterObjects, name_of};
use super::render::Blueprint;
use super::state::build::uid;
use super::state::{EtcdState, MemberName, ObservedState, Reading};
use crate::api::bytes;
use crate::api::names;

/// Something that differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drift {
    /// There is no such Service of ours.
    ServiceMissing(Box<Service>),
    /// A Service of ours differs: what to change in it.
    Service(String, Value),
    /// There is no budget of ours.
    PdbMissing(Box<PodDisruptionBudget>),
    /// The budget differs: what to change in it.
    Pdb(String, Value),
    /// A volume is smaller than it should be, or has another owner.
    Pvc(MemberName, Value),
    /// The pod of a voter does not say that it is one.
    VoterLabel(MemberName),
    /// An EtcdMember has another owner than it should have.
    Owner(MemberName, Value),
    /// An EtcdMember says another URL for clients than they are told.
    ClientUrl(MemberName, Value),
}

impl Drift {
    /// Whether it is about what goes with the cluster in the end. That is put right even while everything else is left
    /// alone: whoever changes his mind about it means it.
    pub(crate) fn affects_ownership(&self) -> bool {
        match self {
            Self::Owner(..) => true,
            Self::Pvc(_, patch) => patch.get("metadata").is_some(),
            Self::ServiceMissing(_)
            | Self::Service(..)
            | Self::PdbMissing(_)
            | Self::Pdb(..)
            | Self::VoterLabel(_)
            | Self::ClientUrl(..) => false,
        }
    }

    /// Whether nobody could find a member without it.
    pub(crate) const fn blocks_members(&self) -> bool {
        matches!(self, Self::ServiceMissing(_))
    }
}

/// Everything that differs.
pub(crate) fn detect(
    blueprint: &Blueprint<'_>,
    stock: &ClusterObjects,
    state: &ObservedState,
) -> Vec<Drift> {
    let mut found = Vec::new();
    let there = stock.members.iter().filter(|it| it.metadata.deletion_timestamp.is_none());
    let own = there.map(|it| blueprint.member_service(&name_of(it), &uid(it)));
    for service in own.chain([blueprint.members_service(), blueprint.client_service()]) {
        match compare(&stock.services, &service) {
            Comparison::Same => {}
            Comparison::Missing => found.push(Drift::ServiceMissing(Box::new(service))),
            Comparison::Differs(patch) => found.push(Drift::Service(service.name_any(), patch)),
        }
    }
    let voters = state.etcd.known().map_or(0, |etcd| etcd.voters().count());
    let budget = blueprint.pdb(voters);
    // Without a word from etcd nobody knows how many vote: what was right before may still be.
    let is_known = state.etcd != Reading::Unknown || stock.pdbs.is_empty();
    if is_known {
        match compare(&stock.pdbs, &budget) {
            Comparison::Same => {}
            Comparison::Missing => found.push(Drift::PdbMissing(Box::new(budget))),
            Comparison::Differs(patch) => found.push(Drift::Pdb(budget.name_any(), patch)),
        }
    }
    found.extend(stock.pvcs.iter().filter_map(|claim| pvc(blueprint, stock, claim)));
    found.extend(state.etcd.known().into_iter().flat_map(|etcd| voter_labels(stock, etcd)));
    found.extend(stock.members.iter().filter_map(|member| member_owner(blueprint, member)));
    found.extend(stock.members.iter().filter_map(|member| member_client_url(blueprint, member)));
    found
}

/// Where an object says whom it is about.
const SELECTORS: [&str; 2] = ["/spec/selector", "/spec/selector/matchLabels"];

/// Strikes what a selector has and should not have; answers whether there is anything.
fn clear_extra_selectors(patch: &mut Value, found: &Value, at: &str) -> bool {
    let (Some(Value::Object(found)), Some(Value::Object(wanted))) =
        (found.pointer(at), patch.pointer_mut(at))
    else {
        return false;
    };
    let others: Vec<&String> = found.keys().filter(|key| !wanted.contains_key(*key)).collect();
    for key in &others {
        wanted.insert((*key).clone(), Value::Null);
    }
    !others.is_empty()
}

/// How an object of ours is, beside what it should be.
enum Comparison {
    Same,
    Missing,
    /// What to change.
    Differs(Value),
}

/// An object that is not ours is not compared: it is missing, and cannot be made as long as another has its name.
fn compare<K: Resource + Serialize>(objects: &[K], wanted: &K) -> Comparison {
    let Some(found) = objects.iter().find(|it| it.meta().name == wanted.meta().name) else {
        return Comparison::Missing;
    };
    let (is, mut patch) = (json!(found), json!(wanted));
    let covered = is_owned(found) == is_owned(wanted) && is_superset(&is, &patch);
    // One word too many selects nobody.
    let more = SELECTORS.iter().filter(|at| clear_extra_selectors(&mut patch, &is, at)).count();
    if covered && more == 0 {
        return Comparison::Same;
    }
    // What is not said would stay.
    if let Some(Value::Object(metadata)) = patch.get_mut("metadata") {
        metadata.entry("ownerReferences").or_insert(Value::Null);
    }
    Comparison::Differs(patch)
}

/// Whether everything that is wanted is there. The API server adds much of its own.
pub(crate) fn is_superset(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| is_superset(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| is_superset(a, b))
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => found == wanted,
    }
}

/// A volume may grow, and never shrink. Its owner follows what shall become of it in the end.
fn pvc(
    blueprint: &Blueprint<'_>,
    stock: &ClusterObjects,
    claim: &PersistentVolumeClaim,
) -> Option<Drift> {
    let name = name_of(claim);
    if !stock.is_ours(claim) || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    stock.member(&name)?;
    let wanted = blueprint.pvc(&name)?;
    let has = requested_bytes(claim)?;
    let mut patch = Map::new();
    if is_owned(claim) != is_owned(&wanted) {
        let owners = json!({ "ownerReferences": wanted.metadata.owner_references });
        patch.insert("metadata".to_owned(), owners);
    }
    if has < blueprint.spec.storage.bytes {
        let requests = wanted.spec?.resources?.requests;
        patch.insert("spec".to_owned(), json!({ "resources": { "requests": requests } }));
    }
    (!patch.is_empty()).then_some(Drift::Pvc(name, Value::Object(patch)))
}

/// How much space a volume was asked for, in bytes.
pub(crate) fn requested_bytes(claim: &PersistentVolumeClaim) -> Option<u64> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    bytes::parse(&requests.get("storage")?.0)
}

fn is_owned<K: Resource>(object: &K) -> bool {
    object.meta().owner_references.as_ref().is_some_and(|it| !it.is_empty())
}

/// Voters whose pods do not say so.
fn voter_labels(stock: &ClusterObjects, etcd: &EtcdState) -> Vec<Drift> {
    let is_marked = |name: &&MemberName| {
        let role =
            stock.pod(name).map(|pod| pod.labels().get(names::ROLE_LABEL).map(String::as_str));
        role.is_none_or(|role| role == Some(names::VOTER))
    };
    let voters = etcd.voters().map(|it| &it.name);
    voters.filter(|name| !is_marked(name)).cloned().map(Drift::VoterLabel).collect()
}

/// An EtcdMember that would go with its cluster and shall not, or the other way round.
fn member_owner(
    blueprint: &Blueprint<'_>,
    member: &crate::api::etcd_member::EtcdMember,
) -> Option<Drift> {
    let owner = blueprint.owner();
    let should_own = owner.is_some();
    if is_owned(member) == should_own || member.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let owners = owner.map(|it| vec![it]);
    Some(Drift::Owner(name_of(member), json!({ "metadata": { "ownerReferences": owners } })))
}

/// An EtcdMember that says another URL for clients than they are told.
fn member_client_url(
    blueprint: &Blueprint<'_>,
    member: &crate::api::etcd_member::EtcdMember,
) -> Option<Drift> {
    let (name, is_there) = (name_of(member), member.metadata.deletion_timestamp.is_none());
    let url = blueprint.client_url(&name);
    let differs = member.spec.client_url.known().is_some_and(|it| it.as_str() != url);
    (is_there && differs).then(|| Drift::ClientUrl(name, json!({ "spec": { "clientURL": url } })))
}

#[cfg(test)]
mod tests;
