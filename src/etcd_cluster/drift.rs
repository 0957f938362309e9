//! Detects drift of the objects around the members: Services, the PDB, size of volumes,
//! labels and owners. Only objects that differ are patched, so an idle cluster causes no writes.
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

/// An object that differs from its desired state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drift {
    /// A Service does not exist.
    ServiceMissing(Box<Service>),
    /// A Service differs: its patch.
    Service(String, Value),
    /// The PDB does not exist.
    PdbMissing(Box<PodDisruptionBudget>),
    /// The PDB differs: its patch.
    Pdb(String, Value),
    /// A volume is too small, or has the wrong owner.
    Pvc(MemberName, Value),
    /// The pod of a voter lacks the label of voters.
    VoterLabel(MemberName),
    /// An EtcdMember has the wrong owner.
    Owner(MemberName, Value),
    /// An EtcdMember has another client URL than the advertised one.
    ClientUrl(MemberName, Value),
}

impl Drift {
    /// Whether the owners of an object differ. These are fixed even while reconciliation is paused:
    /// a changed deletion policy must take effect.
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

    /// Whether members cannot be resolved until this is fixed.
    pub(crate) const fn blocks_members(&self) -> bool {
        matches!(self, Self::ServiceMissing(_))
    }
}

/// All drift of a cluster.
pub(crate) fn detect(
    blueprint: &Blueprint<'_>,
    objects: &ClusterObjects,
    state: &ObservedState,
) -> Vec<Drift> {
    let mut found = Vec::new();
    let existing =
        objects.members.iter().filter(|member| member.metadata.deletion_timestamp.is_none());
    let per_member =
        existing.map(|member| blueprint.member_service(&name_of(member), &uid(member)));
    for service in per_member.chain([blueprint.members_service(), blueprint.client_service()]) {
        match compare(&objects.services, &service) {
            Comparison::Same => {}
            Comparison::Missing => found.push(Drift::ServiceMissing(Box::new(service))),
            Comparison::Differs(patch) => found.push(Drift::Service(service.name_any(), patch)),
        }
    }
    let voters = state.etcd.known().map_or(0, |etcd| etcd.voters().count());
    let budget = blueprint.pdb(voters);
    // Without quorum the number of voters is unknown, and the current budget may still be right.
    let is_known = state.etcd != Reading::Unknown || objects.pdbs.is_empty();
    if is_known {
        match compare(&objects.pdbs, &budget) {
            Comparison::Same => {}
            Comparison::Missing => found.push(Drift::PdbMissing(Box::new(budget))),
            Comparison::Differs(patch) => found.push(Drift::Pdb(budget.name_any(), patch)),
        }
    }
    found.extend(objects.pvcs.iter().filter_map(|claim| pvc(blueprint, objects, claim)));
    found.extend(state.etcd.known().into_iter().flat_map(|etcd| voter_labels(objects, etcd)));
    found.extend(objects.members.iter().filter_map(|member| member_owner(blueprint, member)));
    found.extend(objects.members.iter().filter_map(|member| member_client_url(blueprint, member)));
    found
}

/// The selectors of an object.
const SELECTORS: [&str; 2] = ["/spec/selector", "/spec/selector/matchLabels"];

/// Adds a null for each superfluous key of a selector to the patch; returns whether there is any.
fn clear_extra_selectors(patch: &mut Value, found: &Value, at: &str) -> bool {
    let (Some(Value::Object(found)), Some(Value::Object(desired))) =
        (found.pointer(at), patch.pointer_mut(at))
    else {
        return false;
    };
    let superfluous: Vec<&String> =
        found.keys().filter(|key| !desired.contains_key(*key)).collect();
    for key in &superfluous {
        desired.insert((*key).clone(), Value::Null);
    }
    !superfluous.is_empty()
}

/// How an object compares with its desired state.
enum Comparison {
    Same,
    Missing,
    /// The patch.
    Differs(Value),
}

/// Compares an object of this cluster. An object of another owner is not compared: ours counts as
/// missing, and cannot be created while the other has its name.
fn compare<K: Resource + Serialize>(objects: &[K], desired: &K) -> Comparison {
    let Some(found) = objects.iter().find(|object| object.meta().name == desired.meta().name)
    else {
        return Comparison::Missing;
    };
    let (actual, mut patch) = (json!(found), json!(desired));
    let covered = is_owned(found) == is_owned(desired) && is_superset(&actual, &patch);
    // A selector with a superfluous key selects no pod.
    let superfluous =
        SELECTORS.iter().filter(|at| clear_extra_selectors(&mut patch, &actual, at)).count();
    if covered && superfluous == 0 {
        return Comparison::Same;
    }
    // A merge patch keeps what it does not mention.
    if let Some(Value::Object(metadata)) = patch.get_mut("metadata") {
        metadata.entry("ownerReferences").or_insert(Value::Null);
    }
    Comparison::Differs(patch)
}

/// Whether all desired fields have their value. The API server adds more.
pub(crate) fn is_superset(found: &Value, desired: &Value) -> bool {
    match (found, desired) {
        (Value::Object(found), Value::Object(desired)) => desired
            .iter()
            .all(|(key, desired)| found.get(key).is_some_and(|found| is_superset(found, desired))),
        (Value::Array(found), Value::Array(desired)) => {
            found.len() == desired.len()
                && found.iter().zip(desired).all(|(a, b)| is_superset(a, b))
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => found == desired,
    }
}

/// A volume grows, and never shrinks. Its owner follows the deletion policy.
fn pvc(
    blueprint: &Blueprint<'_>,
    objects: &ClusterObjects,
    claim: &PersistentVolumeClaim,
) -> Option<Drift> {
    let name = name_of(claim);
    if !objects.is_ours(claim) || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    objects.member(&name)?;
    let desired = blueprint.pvc(&name)?;
    let has = requested_bytes(claim)?;
    let mut patch = Map::new();
    if is_owned(claim) != is_owned(&desired) {
        let owners = json!({ "ownerReferences": desired.metadata.owner_references });
        patch.insert("metadata".to_owned(), owners);
    }
    if has < blueprint.spec.storage.bytes {
        let requests = desired.spec?.resources?.requests;
        patch.insert("spec".to_owned(), json!({ "resources": { "requests": requests } }));
    }
    (!patch.is_empty()).then_some(Drift::Pvc(name, Value::Object(patch)))
}

/// The requested size of a volume, in bytes.
pub(crate) fn requested_bytes(claim: &PersistentVolumeClaim) -> Option<u64> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    bytes::parse(&requests.get("storage")?.0)
}

fn is_owned<K: Resource>(object: &K) -> bool {
    object.meta().owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
}

/// Voters with pods that lack the label.
fn voter_labels(objects: &ClusterObjects, etcd: &EtcdState) -> Vec<Drift> {
    let is_labeled = |name: &&MemberName| {
        let role =
            objects.pod(name).map(|pod| pod.labels().get(names::ROLE_LABEL).map(String::as_str));
        role.is_none_or(|role| role == Some(names::VOTER))
    };
    let voters = etcd.voters().map(|entry| &entry.name);
    voters.filter(|name| !is_labeled(name)).cloned().map(Drift::VoterLabel).collect()
}

/// An EtcdMember that would be deleted with its cluster and should not, or the other way round.
fn member_owner(
    blueprint: &Blueprint<'_>,
    member: &crate::api::etcd_member::EtcdMember,
) -> Option<Drift> {
    let owner = blueprint.owner();
    let should_own = owner.is_some();
    if is_owned(member) == should_own || member.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let owners = owner.map(|owner| vec![owner]);
    Some(Drift::Owner(name_of(member), json!({ "metadata": { "ownerReferences": owners } })))
}

/// An EtcdMember with another client URL than the advertised one.
fn member_client_url(
    blueprint: &Blueprint<'_>,
    member: &crate::api::etcd_member::EtcdMember,
) -> Option<Drift> {
    let (name, exists) = (name_of(member), member.metadata.deletion_timestamp.is_none());
    let url = blueprint.client_url(&name);
    let differs = member.spec.client_url.known().is_some_and(|known| known.as_str() != url);
    (exists && differs).then(|| Drift::ClientUrl(name, json!({ "spec": { "clientURL": url } })))
}

#[cfg(test)]
mod tests;
