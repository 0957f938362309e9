//! An EtcdCluster from a user's side: its object, its pods and PVCs, and waiting for its status.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::context::TestContext;
use crate::etcd::{CLUSTER_LABEL, EtcdClient, MemberList};

const GROUP: &str = "etcd.appdelivery.cncf.io";

/// An EtcdCluster, whether it exists or not.
#[derive(Clone)]
pub struct Cluster {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// The API of the kind in the namespace.
    pub objects: Api<DynamicObject>,
    /// A client of its etcd.
    pub etcd: EtcdClient,
    client: Client,
}

/// A spec for a small machine, with `more` merged into it.
#[must_use]
pub fn small_spec(replicas: i32, more: &Value) -> Value {
    let mut spec = json!({
        "replicas": replicas,
        "version": "3.6.16",
        "storage": {"size": "400Mi"},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    });
    merge_into(&mut spec, more);
    spec
}

fn merge_into(spec: &mut Value, more: &Value) {
    match (spec, more) {
        (Value::Object(spec), Value::Object(more)) => {
            for (name, value) in more {
                merge_into(spec.entry(name).or_insert(Value::Null), value);
            }
        }
        (spec, more) => *spec = more.clone(),
    }
}

impl TestContext {
    /// The cluster of this name in the test's namespace, whether it exists or not.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Cluster {
        Cluster::at(&self.client, &self.namespace, name)
    }

    /// Creates a cluster.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn create_cluster(&self, name: &str, spec: &Value) -> Result<Cluster> {
        let cluster = self.cluster(name);
        cluster.create(spec).await?;
        Ok(cluster)
    }
}

impl Cluster {
    /// The cluster of this name in a namespace, whether it exists or not.
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
            etcd: EtcdClient::of_cluster(client, namespace, name),
            client: client.clone(),
        }
    }

    /// Creates the object.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn create(&self, spec: &Value) -> Result<()> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "EtcdCluster",
            "metadata": {"name": self.name}, "spec": spec,
        }))?;
        let created = self.objects.create(&kube::api::PostParams::default(), &object).await;
        created.with_context(|| format!("EtcdCluster {} was rejected", self.name)).map(drop)
    }

    /// Merges an edit into the spec; null removes a field.
    ///
    /// # Errors
    /// If the API server rejects the edit.
    pub async fn edit(&self, spec: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let edited = self.objects.patch(&self.name, &PatchParams::default(), &patch).await;
        edited.with_context(|| format!("the edit {spec} was rejected")).map(drop)
    }

    /// Deletes the object, and does not wait.
    ///
    /// # Errors
    /// If the API server rejects the deletion.
    pub async fn delete(&self) -> Result<()> {
        self.objects.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The object as JSON.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.objects.get(&self.name).await?)?)
    }

    /// The pods of the members.
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
    /// If it does not exist.
    pub async fn pod(&self, member: &str) -> Result<Pod> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        pods.get(member).await.with_context(|| format!("member {member} has no pod"))
    }

    /// The PVCs of the members.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn pvcs(&self) -> Result<Vec<PersistentVolumeClaim>> {
        let pvcs = Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), &self.namespace);
        Ok(pvcs.list(&self.own()).await?.items)
    }

    fn own(&self) -> ListParams {
        ListParams::default().labels(&format!("{CLUSTER_LABEL}={}", self.name))
    }

    /// Deletes pods with a grace period of one second.
    ///
    /// # Errors
    /// If the API server rejects a deletion.
    pub async fn delete_pods(&self, members: &[String]) -> Result<()> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        // Not 0: then the object is deleted before the kubelet has stopped the pod, and a new pod
        // of the same name would run beside it.
        let short_grace = DeleteParams::default().grace_period(1);
        for member in members {
            let deleted = pods.delete(member, &short_grace).await;
            deleted.with_context(|| format!("cannot delete pod {member}"))?;
        }
        Ok(())
    }

    /// Deletes a member's PVC and then its pod: the PVC is deleted once no pod uses it.
    ///
    /// # Errors
    /// If the API server rejects a deletion.
    pub async fn delete_pod_and_pvc(&self, member: &str) -> Result<()> {
        let pvcs = Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), &self.namespace);
        pvcs.delete(member, &DeleteParams::default()).await.context("cannot delete the PVC")?;
        self.delete_pods(&[member.to_owned()]).await
    }

    /// Waits until exactly this many voters are healthy and no other member is listed, and the
    /// status reports that for the present generation.
    ///
    /// # Errors
    /// After the timeout, with what is missing.
    pub async fn wait_healthy(
        &self,
        ctx: &TestContext,
        voters: usize,
        timeout: Duration,
    ) -> Result<MemberList> {
        let what = format!("{} to have and report {voters} healthy voters", self.name);
        ctx.wait_until(&what, timeout, async || self.check_healthy(voters).await).await
    }

    /// Waits until all members are up to date and healthy.
    ///
    /// # Errors
    /// After the timeout, with what is missing.
    pub async fn wait_updated(
        &self,
        ctx: &TestContext,
        voters: usize,
        timeout: Duration,
    ) -> Result<()> {
        ctx.wait_until("all members to be up to date", timeout, async || {
            let object = self.get().await.map_err(|error| format!("{error:#}"))?;
            let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
            let current = number("/status/observedGeneration") == number("/metadata/generation");
            let updated = number("/status/updatedReplicas");
            let all = current && updated == u64::try_from(voters).ok();
            if all { Ok(()) } else { Err(format!("{updated:?} are; {}", summary(&object))) }
        })
        .await?;
        self.wait_healthy(ctx, voters, timeout).await.map(drop)
    }

    async fn check_healthy(&self, voters: usize) -> Result<MemberList, String> {
        let object = self.get().await.map_err(|error| format!("{error:#}"))?;
        let reported = summary(&object);
        let list = self.etcd.healthy(voters).await;
        let list = list.map_err(|error| format!("{error:#}; reported: {reported}"))?;
        match status_problem(&object, voters) {
            None => Ok(list),
            Some(problem) => Err(format!("etcd is healthy, but {problem}; reported: {reported}")),
        }
    }

    /// Waits until a condition has this status; returns its reason and its message.
    ///
    /// # Errors
    /// After the timeout, with the reported conditions.
    pub async fn wait_condition(
        &self,
        ctx: &TestContext,
        kind: &str,
        status: &str,
        timeout: Duration,
    ) -> Result<(String, String)> {
        let what = format!("{} to report {kind}={status}", self.name);
        ctx.wait_until(&what, timeout, async || {
            let object = self.get().await.map_err(|error| format!("{error:#}"))?;
            match condition(&object, kind) {
                Some(found) if found.0 == status => Ok((found.1, found.2)),
                _ => Err(format!("reported: {}", summary(&object))),
            }
        })
        .await
    }
}

/// The status, the reason and the message of a condition.
#[must_use]
pub fn condition(object: &Value, kind: &str) -> Option<(String, String, String)> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|entry| entry.get("type").is_some_and(|found| found == kind))?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

/// All conditions and the plan in a line.
#[must_use]
pub fn summary(object: &Value) -> String {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    let kinds = all.into_iter().flatten().filter_map(|condition| condition.get("type")?.as_str());
    let conditions = kinds.filter_map(|kind| {
        let (status, reason, message) = condition(object, kind)?;
        Some(format!("{kind} {status} {reason}: {message:?}"))
    });
    let plan = object.pointer("/status/plan").cloned().unwrap_or_default();
    format!("[{}], plan {plan}", conditions.collect::<Vec<_>>().join("; "))
}

fn status_problem(object: &Value, voters: usize) -> Option<String> {
    let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
    let expected = u64::try_from(voters).ok();
    if number("/status/observedGeneration") != number("/metadata/generation") {
        return Some("the status is of an older generation".to_owned());
    }
    for field in ["replicas", "readyReplicas"] {
        let found = number(&format!("/status/{field}"));
        if found != expected {
            return Some(format!("{field} is {found:?}"));
        }
    }
    match condition(object, "Ready") {
        Some((status, _, _)) if status == "True" => None,
        other => Some(format!("Ready is {other:?}")),
    }
}

/// The names of the members, sorted.
#[must_use]
pub fn member_names(list: &MemberList) -> Vec<String> {
    let mut names: Vec<String> = list.members.iter().map(|member| member.name.clone()).collect();
    names.sort();
    names
}

/// The names and uids of objects, sorted.
#[must_use]
pub fn uids<K: kube::Resource>(objects: &[K]) -> Vec<(String, String)> {
    let uid = |object: &K| (object.name_any(), object.uid().unwrap_or_default());
    let mut all: Vec<(String, String)> = objects.iter().map(uid).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_fields_win_and_the_others_stay() {
        let spec = small_spec(1, &json!({"version": "3.5.35", "storage": {"className": "a"}}));
        assert_eq!(spec.pointer("/storage"), Some(&json!({"size": "400Mi", "className": "a"})));
        assert_eq!(spec.pointer("/version"), Some(&json!("3.5.35")));
        assert_eq!(spec.pointer("/replicas"), Some(&json!(1)));
    }

    #[test]
    fn status_must_be_of_the_present_generation_and_count_all_voters() {
        let object = |observed: u64, ready: u64, status: &str| {
            json!({"metadata": {"generation": 2}, "status": {
                "observedGeneration": observed, "replicas": 3, "readyReplicas": ready,
                "conditions": [{"type": "Ready", "status": status, "reason": "Healthy", "message": "."}],
            }})
        };
        assert_eq!(status_problem(&object(2, 3, "True"), 3), None);
        assert!(status_problem(&object(1, 3, "True"), 3).unwrap().contains("older"));
        assert!(status_problem(&object(2, 2, "True"), 3).unwrap().contains("readyReplicas"));
        assert!(status_problem(&object(2, 3, "False"), 3).unwrap().contains("Ready"));
    }
}
