//! What stands around the members and differs from what it should be: Services, the budget, volumes that
//! should be larger, labels, owners.
//! Comes in: `Stock`, `Seen`, the blueprint. Goes out: what to apply. May touch: `api`, Kubernetes' own types;
//! pure. An object is applied only if something of it differs, so a cluster at rest costs no write.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::compose::uid;
use super::render::Blueprint;
use super::seen::{Etcd, Name, Reading, Seen};
use super::stock::{Stock, name_of};
use crate::api::bytes;
use crate::api::names;

/// Something that differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Difference {
    /// There is no such Service of ours.
    NoService(Box<Service>),
    /// A Service of ours differs: what to change in it.
    Service(String, Value),
    /// There is no budget of ours.
    NoBudget(Box<PodDisruptionBudget>),
    /// The budget differs: what to change in it.
    Budget(String, Value),
    /// A volume is smaller than it should be, or has another owner.
    Claim(Name, Value),
    /// The pod of a voter does not say that it is one.
    Voter(Name),
    /// An EtcdMember has another owner than it should have.
    Owner(Name, Value),
    /// An EtcdMember says another URL for clients than they are told.
    Address(Name, Value),
}

impl Difference {
    /// Whether it is about what goes with the cluster in the end. That is put right even while everything else is left
    /// alone: whoever changes his mind about it means it.
    pub(crate) fn is_about_owners(&self) -> bool {
        match self {
            Self::Owner(..) => true,
            Self::Claim(_, patch) => patch.get("metadata").is_some(),
            Self::NoService(_)
            | Self::Service(..)
            | Self::NoBudget(_)
            | Self::Budget(..)
            | Self::Voter(_)
            | Self::Address(..) => false,
        }
    }

    /// Whether nobody could find a member without it.
    pub(crate) const fn is_needed_first(&self) -> bool {
        matches!(self, Self::NoService(_))
    }
}

/// Everything that differs.
pub(crate) fn differences(
    blueprint: &Blueprint<'_>,
    stock: &Stock,
    seen: &Seen,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let there = stock.members.iter().filter(|it| it.metadata.deletion_timestamp.is_none());
    let own = there.map(|it| blueprint.member_service(&name_of(it), &uid(it)));
    for service in own.chain([blueprint.members_service(), blueprint.client_service()]) {
        match compared(&stock.services, &service) {
            Compared::Same => {}
            Compared::Missing => found.push(Difference::NoService(Box::new(service))),
            Compared::Differs(patch) => found.push(Difference::Service(service.name_any(), patch)),
        }
    }
    let voters = seen.etcd.known().map_or(0, |etcd| etcd.voters().count());
    let budget = blueprint.budget(voters);
    // Without a word from etcd nobody knows how many vote: what was right before may still be.
    let is_known = seen.etcd != Reading::Unknown || stock.budgets.is_empty();
    if is_known {
        match compared(&stock.budgets, &budget) {
            Compared::Same => {}
            Compared::Missing => found.push(Difference::NoBudget(Box::new(budget))),
            Compared::Differs(patch) => found.push(Difference::Budget(budget.name_any(), patch)),
        }
    }
    found.extend(stock.claims.iter().filter_map(|claim| grown(blueprint, stock, claim)));
    found.extend(seen.etcd.known().into_iter().flat_map(|etcd| unmarked(stock, etcd)));
    found.extend(stock.members.iter().filter_map(|member| disowned(blueprint, member)));
    found.extend(stock.members.iter().filter_map(|member| moved(blueprint, member)));
    found
}

/// Where an object says whom it is about.
const SELECTORS: [&str; 2] = ["/spec/selector", "/spec/selector/matchLabels"];

/// Strikes what a selector has and should not have; answers whether there is anything.
fn strike_others(patch: &mut Value, found: &Value, at: &str) -> bool {
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
enum Compared {
    Same,
    Missing,
    /// What to change.
    Differs(Value),
}

/// An object that is not ours is not compared: it is missing, and cannot be made as long as another has its name.
fn compared<K: Resource + Serialize>(objects: &[K], wanted: &K) -> Compared {
    let Some(found) = objects.iter().find(|it| it.meta().name == wanted.meta().name) else {
        return Compared::Missing;
    };
    let (is, mut patch) = (json!(found), json!(wanted));
    let covered = is_owned(found) == is_owned(wanted) && covers(&is, &patch);
    // One word too many selects nobody.
    let more = SELECTORS.iter().filter(|at| strike_others(&mut patch, &is, at)).count();
    if covered && more == 0 {
        return Compared::Same;
    }
    // What is not said would stay.
    if let Some(Value::Object(metadata)) = patch.get_mut("metadata") {
        metadata.entry("ownerReferences").or_insert(Value::Null);
    }
    Compared::Differs(patch)
}

/// Whether everything that is wanted is there. The API server adds much of its own.
pub(crate) fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| covers(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| covers(a, b))
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
fn grown(
    blueprint: &Blueprint<'_>,
    stock: &Stock,
    claim: &PersistentVolumeClaim,
) -> Option<Difference> {
    let name = name_of(claim);
    if !stock.is_ours(claim) || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    stock.member(&name)?;
    let wanted = blueprint.volume(&name)?;
    let has = requested(claim)?;
    let mut patch = Map::new();
    if is_owned(claim) != is_owned(&wanted) {
        let owners = json!({ "ownerReferences": wanted.metadata.owner_references });
        patch.insert("metadata".to_owned(), owners);
    }
    if has < blueprint.spec.storage.bytes {
        let requests = wanted.spec?.resources?.requests;
        patch.insert("spec".to_owned(), json!({ "resources": { "requests": requests } }));
    }
    (!patch.is_empty()).then_some(Difference::Claim(name, Value::Object(patch)))
}

/// How much space a volume was asked for, in bytes.
pub(crate) fn requested(claim: &PersistentVolumeClaim) -> Option<u64> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    bytes::parse(&requests.get("storage")?.0)
}

fn is_owned<K: Resource>(object: &K) -> bool {
    object.meta().owner_references.as_ref().is_some_and(|it| !it.is_empty())
}

/// Voters whose pods do not say so.
fn unmarked(stock: &Stock, etcd: &Etcd) -> Vec<Difference> {
    let is_marked = |name: &&Name| {
        let role =
            stock.pod(name).map(|pod| pod.labels().get(names::ROLE_LABEL).map(String::as_str));
        role.is_none_or(|role| role == Some(names::VOTER))
    };
    let voters = etcd.voters().map(|it| &it.name);
    voters.filter(|name| !is_marked(name)).cloned().map(Difference::Voter).collect()
}

/// An EtcdMember that would go with its cluster and shall not, or the other way round.
fn disowned(
    blueprint: &Blueprint<'_>,
    member: &crate::api::etcd_member::EtcdMember,
) -> Option<Difference> {
    let owner = blueprint.owner();
    let shall = owner.is_some();
    if is_owned(member) == shall || member.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let owners = owner.map(|it| vec![it]);
    Some(Difference::Owner(name_of(member), json!({ "metadata": { "ownerReferences": owners } })))
}

/// An EtcdMember that says another URL for clients than they are told.
fn moved(
    blueprint: &Blueprint<'_>,
    member: &crate::api::etcd_member::EtcdMember,
) -> Option<Difference> {
    let (name, is_there) = (name_of(member), member.metadata.deletion_timestamp.is_none());
    let url = blueprint.client_url(&name);
    let differs = member.spec.client_url.known().is_some_and(|it| it.as_str() != url);
    (is_there && differs)
        .then(|| Difference::Address(name, json!({ "spec": { "clientURL": url } })))
}

#[cfg(test)]
mod tests;
