//! What an EtcdCluster says of itself, and where that differs from what its members say. No clock and no client.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::etcd::{Answer, Listed};

/// How long news may be on its way.
const SOON: Duration = Duration::from_secs(15);
/// A quorum that is away for twenty seconds may be on its way back, and is not called lost yet.
const IN_TIME: Duration = Duration::from_secs(40);

/// Differences in words, each with how long it may last.
pub(super) type Differences = BTreeMap<String, Duration>;

/// What the object says.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// How many members are wanted.
    pub(super) wanted: i64,
    /// Whether the object is on its way out: then it says nothing any more.
    pub(super) going: bool,
    pub(super) cluster: Option<u64>,
    leader: Option<String>,
    ready: Option<i64>,
    members: BTreeMap<String, Claimed>,
    conditions: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
struct Claimed {
    id: Option<u64>,
    role: Option<String>,
    version: Option<String>,
    healthy: Option<bool>,
}

/// What the members say, each for itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    pub(super) answers: BTreeMap<String, Option<Answer>>,
}

impl Claims {
    pub(super) fn read(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let id = |value: &Value| u64::from_str_radix(value.as_str()?, 16).ok();
        let at = |path: &str| object.pointer(path).cloned().unwrap_or_default();
        let list = |path: &str| at(path).as_array().cloned().unwrap_or_default();
        let field = |of: &Value, name: &str| of.get(name).cloned().unwrap_or_default();
        let member = |of: &Value| {
            let claimed = Claimed {
                id: id(&field(of, "id")),
                role: text(&field(of, "role")),
                version: text(&field(of, "version")),
                healthy: field(of, "healthy").as_bool(),
            };
            (text(&field(of, "name")).unwrap_or_default(), claimed)
        };
        let condition = |of: &Value| Some((text(&field(of, "type"))?, text(&field(of, "status"))?));
        Self {
            wanted: at("/spec/replicas").as_i64().unwrap_or(3),
            going: object.pointer("/metadata/deletionTimestamp").is_some(),
            cluster: id(&at("/status/clusterID")),
            leader: text(&at("/status/leader")),
            ready: at("/status/readyReplicas").as_i64(),
            members: list("/status/members").iter().map(member).collect(),
            conditions: list("/status/conditions").iter().filter_map(condition).collect(),
        }
    }

    fn says(&self, condition: &str) -> Option<bool> {
        match self.conditions.get(condition)?.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }
}

impl Truth {
    /// The list of whoever could read with a quorum.
    fn list(&self) -> Option<&Listed> {
        self.answers.values().flatten().find_map(|answer| answer.list.as_ref())
    }

    fn agrees(&self, member: &str) -> bool {
        self.answers.get(member).and_then(Option::as_ref).is_some_and(|answer| answer.agrees)
    }

    fn leader(&self) -> Option<&str> {
        let leads = |(_, answer): &(&String, &Option<Answer>)| {
            answer.as_ref().is_some_and(|answer| answer.agrees && answer.leader == answer.id)
        };
        self.answers.iter().find(leads).map(|(name, _)| name.as_str())
    }
}

/// Every difference, in words that stay the same while it lasts.
pub(super) fn differences(claims: &Claims, truth: &Truth) -> Differences {
    let mut found = Differences::new();
    // A cluster that sleeps or goes has nobody to ask, and one that was never there says nothing.
    if claims.wanted == 0 || claims.going || claims.cluster.is_none() {
        return found;
    }
    of_members(claims, truth, &mut found);
    of_whole(claims, truth, &mut found);
    found
}

fn of_members(claims: &Claims, truth: &Truth, found: &mut Differences) {
    for (name, claimed) in &claims.members {
        let answer = truth.answers.get(name).and_then(Option::as_ref);
        match (claimed.healthy, truth.agrees(name)) {
            (Some(true), false) if !answer.is_some_and(|answer| answer.learner) => {
                found.insert(
                    format!("it calls {name} healthy, which cannot read with a quorum"),
                    SOON,
                );
            }
            (Some(false), true) => {
                found.insert(format!("it blames {name}, which reads with a quorum"), SOON);
            }
            _ => {}
        }
        let Some(answer) = answer else { continue };
        if claimed.id.is_some_and(|id| id != answer.id) {
            found.insert(format!("it gives {name} another ID than it has"), SOON);
        }
        if claimed.version.as_ref().is_some_and(|version| *version != answer.version) {
            found.insert(format!("it gives {name} another version than it runs"), SOON);
        }
        let learner = claimed.role.as_deref().map(|role| role == "Learner");
        let known = claimed.role.as_deref() != Some("Unknown");
        if known && learner.is_some_and(|learner| learner != answer.learner) {
            found.insert(format!("it gives {name} another role than it has"), SOON);
        }
    }
    let Some(list) = truth.list() else { return };
    for member in &list.members {
        if !claims.members.contains_key(&member.name) {
            found.insert(format!("it does not know {}, which etcd lists", member.name), SOON);
        }
    }
    for (name, claimed) in &claims.members {
        if claimed.id.is_some() && list.id_of(name).is_none() {
            found.insert(format!("it knows {name}, which etcd does not list"), SOON);
        }
    }
}

fn of_whole(claims: &Claims, truth: &Truth, found: &mut Differences) {
    let list = truth.list();
    let voters = || list.into_iter().flat_map(|list| &list.members).filter(|it| !it.learner);
    let well = i64::try_from(voters().filter(|it| truth.agrees(&it.name)).count());
    let well = well.unwrap_or_default();
    let all_well = voters().all(|it| truth.agrees(&it.name));
    let full = i64::try_from(voters().count()) == Ok(claims.wanted);
    let mut wrong = |is: bool, words: &str| {
        if is {
            found.insert(words.to_owned(), SOON);
        }
    };
    wrong(
        claims.says("Ready") == Some(true) && !(list.is_some() && full && all_well),
        "it says that it is Ready, and not every wanted voter is well",
    );
    wrong(
        claims.says("Available") == Some(true) && list.is_none(),
        "it says that it is Available, and nobody reads with a quorum",
    );
    wrong(
        claims.says("Available") == Some(false) && list.is_some(),
        "it says that it is not Available, and somebody reads with a quorum",
    );
    wrong(
        claims.says("QuorumLost") == Some(true) && list.is_some(),
        "it says that its quorum is lost, and somebody reads with a quorum",
    );
    wrong(
        list.is_some() && claims.ready.is_some_and(|ready| ready != well),
        "it counts other healthy voters than there are",
    );
    wrong(
        list.is_some_and(|list| claims.cluster.is_some_and(|it| it != list.cluster)),
        "it gives another cluster ID than etcd does",
    );
    let leads = truth.leader();
    wrong(
        leads.is_some() && claims.leader.is_some() && claims.leader.as_deref() != leads,
        "it names another leader than etcd does",
    );
    if claims.says("QuorumLost") != Some(true) && list.is_none() {
        let words = "it does not say that its quorum is lost, and nobody reads with a quorum";
        found.insert(words.to_owned(), IN_TIME);
    }
}

#[cfg(test)]
mod tests;
