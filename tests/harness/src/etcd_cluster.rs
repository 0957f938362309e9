//! An EtcdCluster from the outside: its object, its pods and volumes, and how it comes to rest.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::etcd::{CLUSTER_LABEL, EtcdUser, Listed};
use crate::story::Story;

const GROUP: &str = "etcd.appdelivery.cncf.io";

/// One of them.
#[derive(Clone)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// The objects of its kind there.
    pub objects: Api<DynamicObject>,
    /// Somebody who uses it.
    pub user: EtcdUser,
    client: Client,
}

/// A spec for a small machine; `more` is laid over it.
#[must_use]
pub fn small(replicas: i32, more: &Value) -> Value {
    let mut spec = json!({
        "replicas": replicas,
        "version": "3.6.16",
        "storage": {"size": "400Mi"},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    });
    lay_over(&mut spec, more);
    spec
}

fn lay_over(spec: &mut Value, more: &Value) {
    match (spec, more) {
        (Value::Object(spec), Value::Object(more)) => {
            for (name, value) in more {
                lay_over(spec.entry(name).or_insert(Value::Null), value);
            }
        }
        (spec, more) => *spec = more.clone(),
    }
}

impl Story {
    /// The cluster of this name in the story's namespace, whether it is there or not.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Cluster {
        Cluster::at(&self.client, &self.namespace, name)
    }

    /// Makes a cluster.
    ///
    /// # Errors
    /// If it is refused.
    pub async fn make_cluster(&self, name: &str, spec: &Value) -> Result<Cluster> {
        let cluster = self.cluster(name);
        cluster.make(spec).await?;
        Ok(cluster)
    }
}

impl Cluster {
    /// The cluster of this name in a namespace, whether it is there or not.
    #[must_use]
    pub fn at(client: &Client, namespace: &str, name: &str) -> Self {
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(GROUP, "v1", "EtcdCluster"),
            "etcdclusters",
        );
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            objects: Api::namespaced_with(client.clone(), namespace, &kind),
            user: EtcdUser::of_cluster(client, namespace, name),
            client: client.clone(),
        }
    }

    /// Makes it.
    ///
    /// # Errors
    /// If it is refused.
    pub async fn make(&self, spec: &Value) -> Result<()> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "EtcdCluster",
            "metadata": {"name": self.name}, "spec": spec,
        }))?;
        let made = self.objects.create(&kube::api::PostParams::default(), &object).await;
        made.with_context(|| format!("EtcdCluster {} was refused", self.name)).map(drop)
    }

    /// Edits its spec; what is null goes.
    ///
    /// # Errors
    /// If the edit is refused.
    pub async fn edit(&self, spec: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let edited = self.objects.patch(&self.name, &PatchParams::default(), &patch).await;
        edited.with_context(|| format!("the edit {spec} was refused")).map(drop)
    }

    /// Deletes its object, and does not wait.
    ///
    /// # Errors
    /// If that is refused.
    pub async fn delete(&self) -> Result<()> {
        self.objects.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The object as it is now.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn look(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.objects.get(&self.name).await?)?)
    }

    /// The pods of its members.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        Ok(pods.list(&self.own()).await?.items)
    }

    /// The pod of a member.
    ///
    /// # Errors
    /// If there is none.
    pub async fn pod(&self, member: &str) -> Result<Pod> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        pods.get(member).await.with_context(|| format!("member {member} has no pod"))
    }

    /// The claims of its members.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn claims(&self) -> Result<Vec<PersistentVolumeClaim>> {
        let claims = Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), &self.namespace);
        Ok(claims.list(&self.own()).await?.items)
    }

    fn own(&self) -> ListParams {
        ListParams::default().labels(&format!("{CLUSTER_LABEL}={}", self.name))
    }

    /// Deletes pods, and gives them no time to say goodbye.
    ///
    /// # Errors
    /// If the API refuses.
    pub async fn lose_pods(&self, members: &[String]) -> Result<()> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        // Not 0: then the API forgets the pod before the node does, and the next one of its name meets it.
        let now = DeleteParams::default().grace_period(1);
        for member in members {
            pods.delete(member, &now).await.with_context(|| format!("cannot lose {member}"))?;
        }
        Ok(())
    }

    /// Deletes a member's volume and then its pod: the volume goes as soon as the pod lets go of it.
    ///
    /// # Errors
    /// If the API refuses.
    pub async fn lose_member(&self, member: &str) -> Result<()> {
        let claims = Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), &self.namespace);
        claims.delete(member, &DeleteParams::default()).await.context("cannot lose the volume")?;
        self.lose_pods(&[member.to_owned()]).await
    }

    /// Waits until it has so many healthy voters and nobody else, says so itself, and has seen the last edit.
    ///
    /// # Errors
    /// When the deadline passes, with what is missing.
    pub async fn comes(&self, story: &Story, voters: usize, deadline: Duration) -> Result<Listed> {
        let what = format!("{} to have {voters} healthy voters and to say so", self.name);
        story.wait_until(&what, deadline, async || self.at_rest(voters).await).await
    }

    /// Waits until all members are as the spec wants them, and healthy.
    ///
    /// # Errors
    /// When the deadline passes, with what is missing.
    pub async fn is_updated(&self, story: &Story, voters: usize, within: Duration) -> Result<()> {
        story
            .wait_until("all members to be as the spec wants them", within, async || {
                let object = self.look().await.map_err(|error| format!("{error:#}"))?;
                let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
                let seen = number("/status/observedGeneration") == number("/metadata/generation");
                let updated = number("/status/updatedReplicas");
                let all = seen && updated == u64::try_from(voters).ok();
                if all { Ok(()) } else { Err(format!("{updated:?} are; {}", summary(&object))) }
            })
            .await?;
        self.comes(story, voters, within).await.map(drop)
    }

    async fn at_rest(&self, voters: usize) -> Result<Listed, String> {
        let object = self.look().await.map_err(|error| format!("{error:#}"))?;
        let said = summary(&object);
        let listed = self.user.well(voters).await;
        let listed = listed.map_err(|error| format!("{error:#}; it says {said}"))?;
        match complaint(&object, voters) {
            None => Ok(listed),
            Some(words) => Err(format!("etcd is well, but {words}; it says {said}")),
        }
    }

    /// Waits until a condition has this status; answers with its reason and its message.
    ///
    /// # Errors
    /// When the deadline passes, with what is there instead.
    pub async fn says(
        &self,
        story: &Story,
        condition: &str,
        status: &str,
        deadline: Duration,
    ) -> Result<(String, String)> {
        let what = format!("{} to say {condition} {status}", self.name);
        story
            .wait_until(&what, deadline, async || {
                let object = self.look().await.map_err(|error| format!("{error:#}"))?;
                let found = condition_of(&object, condition);
                match found {
                    Some(found) if found.0 == status => Ok((found.1, found.2)),
                    _ => Err(format!("it says {}", summary(&object))),
                }
            })
            .await
    }
}

/// The status, the reason and the message of a condition.
#[must_use]
pub fn condition_of(object: &Value, condition: &str) -> Option<(String, String, String)> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|it| it.get("type").is_some_and(|it| it == condition))?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

/// All conditions and the plan in a line.
#[must_use]
pub fn summary(object: &Value) -> String {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    let kinds = all.into_iter().flatten().filter_map(|it| it.get("type")?.as_str());
    let words = kinds.filter_map(|kind| {
        let (status, reason, message) = condition_of(object, kind)?;
        Some(format!("{kind} {status} {reason}: {message:?}"))
    });
    let plan = object.pointer("/status/plan").cloned().unwrap_or_default();
    format!("[{}], plan {plan}", words.collect::<Vec<_>>().join("; "))
}

fn complaint(object: &Value, voters: usize) -> Option<String> {
    let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
    let wanted = u64::try_from(voters).ok();
    if number("/status/observedGeneration") != number("/metadata/generation") {
        return Some("the status is about an older spec".to_owned());
    }
    for field in ["replicas", "readyReplicas"] {
        let found = number(&format!("/status/{field}"));
        if found != wanted {
            return Some(format!("{field} is {found:?}"));
        }
    }
    match condition_of(object, "Ready") {
        Some((status, _, _)) if status == "True" => None,
        other => Some(format!("Ready is {other:?}")),
    }
}

/// The names of members, sorted.
#[must_use]
pub fn names(listed: &Listed) -> Vec<String> {
    let mut names: Vec<String> = listed.members.iter().map(|it| it.name.clone()).collect();
    names.sort();
    names
}

/// The uids of objects, with their names, sorted.
#[must_use]
pub fn uids<K: kube::Resource>(objects: &[K]) -> Vec<(String, String)> {
    let one = |it: &K| (it.name_any(), it.uid().unwrap_or_default());
    let mut all: Vec<(String, String)> = objects.iter().map(one).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_over_a_spec_wins_and_the_rest_stays() {
        let spec = small(1, &json!({"version": "3.5.35", "storage": {"className": "a"}}));
        assert_eq!(spec.pointer("/storage"), Some(&json!({"size": "400Mi", "className": "a"})));
        assert_eq!(spec.pointer("/version"), Some(&json!("3.5.35")));
        assert_eq!(spec.pointer("/replicas"), Some(&json!(1)));
    }

    #[test]
    fn a_cluster_at_rest_has_seen_the_last_edit_and_counts_right() {
        let object = |observed: u64, ready: u64, status: &str| {
            json!({"metadata": {"generation": 2}, "status": {
                "observedGeneration": observed, "replicas": 3, "readyReplicas": ready,
                "conditions": [{"type": "Ready", "status": status, "reason": "Healthy", "message": "."}],
            }})
        };
        assert_eq!(complaint(&object(2, 3, "True"), 3), None);
        assert!(complaint(&object(1, 3, "True"), 3).unwrap().contains("older"));
        assert!(complaint(&object(2, 2, "True"), 3).unwrap().contains("readyReplicas"));
        assert!(complaint(&object(2, 3, "False"), 3).unwrap().contains("Ready"));
    }
}
