//! The tasks: idempotent, and safe in any order.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{ActError, Executor};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::{EtcdMember, Intent};
use crate::api::names;
use crate::api::start_mode::StartMode;
use crate::clients::error::ErrorClass;
use crate::clients::objects::{NamespacedResource, ObjectError};
use crate::etcd_cluster::plan::{PodTemplate, Task};
use crate::etcd_cluster::render::{Blueprint, Peer};
use crate::etcd_cluster::report;
use crate::etcd_cluster::rollback::{self, PreviousSpec};
use crate::etcd_cluster::state::build::uid;
use crate::etcd_cluster::state::pod::template_hash;
use crate::etcd_cluster::state::{ListedMember, MemberName};

impl Executor<'_> {
    pub(super) async fn task(&mut self, task: &Task) -> Result<(), ActError> {
        match task {
            Task::RecordBootstrapMembers(names) => {
                let members: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
                let bootstrap = json!({ "members": members, "started": false, "aborted": false });
                self.record(json!({ "bootstrap": bootstrap })).await
            }
            Task::RecordBootstrapStarted => self.record_bootstrap("started").await,
            Task::AbortBootstrap => self.record_bootstrap("aborted").await,
            Task::RecordClusterId(id) => {
                self.record(json!({ "clusterID": format!("{:x}", id.0) })).await
            }
            Task::CreateBootstrapMember(name) => {
                self.create_member(name, Intent::Bootstrap, false).await
            }
            Task::AdoptVolume(name) => self.create_member(name, Intent::Join, true).await,
            Task::CreatePod { member, start_mode, template } => {
                self.create_pod(member, *start_mode, *template).await
            }
            Task::MarkStarted(name) => self.change_member(name, &json!({ "started": true })).await,
            Task::RemoveSchedulingGate(name) => self.remove_scheduling_gate(name).await,
            Task::DeleteInactivePod(name) | Task::Hibernate(name) => self.delete_pod(name).await,
            Task::DeleteBootstrapMember(name) => self.delete_member_objects(name).await,
        }
    }

    /// Records a decision that is never made twice, in exactly the object that was observed.
    pub(super) async fn record(&mut self, change: Value) -> Result<(), ActError> {
        let body = report::with_recorded_fields(&self.observed.cluster, &change);
        let (name, namespace) = (self.blueprint.name, self.blueprint.namespace);
        let updated = self.objects.apply_status::<EtcdCluster>(namespace, name, &body).await;
        self.observed.cluster = updated.map_err(ActError::Object)?;
        Ok(())
    }

    async fn record_bootstrap(&mut self, field: &str) -> Result<(), ActError> {
        let status = self.observed.cluster.status.clone().unwrap_or_default();
        let mut bootstrap = json!(status.bootstrap);
        if let Value::Object(bootstrap) = &mut bootstrap {
            bootstrap.insert(field.to_owned(), json!(true));
        }
        self.record(json!({ "bootstrap": bootstrap })).await
    }

    pub(super) async fn create_member(
        &self,
        name: &MemberName,
        intent: Intent,
        started: bool,
    ) -> Result<(), ActError> {
        ignore_already_exists(
            self.objects.create(&self.blueprint.member(name, intent, started)).await,
        )
    }

    /// Patches the spec of an EtcdMember, if it is unchanged since it was observed.
    pub(super) async fn change_member(
        &self,
        name: &MemberName,
        spec: &Value,
    ) -> Result<(), ActError> {
        let not_found = || ActError::NotFound { action: "update member", name: name.clone() };
        let member = self.observed.member(name).ok_or_else(not_found)?;
        let patch = json!({
            "metadata": { "uid": member.uid(), "resourceVersion": member.resource_version() },
            "spec": spec,
        });
        let patched =
            self.objects.merge::<EtcdMember>(self.blueprint.namespace, &name.0, &patch).await;
        patched.map(drop).map_err(ActError::Object)
    }

    async fn create_pod(
        &self,
        name: &MemberName,
        start_mode: StartMode,
        template: PodTemplate,
    ) -> Result<(), ActError> {
        let not_found = || ActError::NotFound { action: "create the pod of", name: name.clone() };
        let member = self.observed.member(name).ok_or_else(not_found)?;
        let (blueprint, source) = match template {
            PodTemplate::Desired => {
                let release = self.blueprint.spec.version;
                (*self.blueprint, rollback::template_source(&self.observed.cluster, release))
            }
            PodTemplate::Previous => {
                let PreviousSpec { template, spec } = self.previous.ok_or_else(not_found)?;
                (Blueprint { spec, ..*self.blueprint }, Some(template.clone()))
            }
        };
        // Only the first pod of a member creates its PVC. A member whose PVC is lost must not
        // rejoin with an empty one.
        let creates_pvc = match start_mode {
            StartMode::Bootstrap | StartMode::Join => true,
            StartMode::Rejoin => false,
        };
        if let Some(pvc) = blueprint.pvc(name).filter(|_| creates_pvc) {
            ignore_already_exists(self.objects.create(&pvc).await)?;
        }
        let peers = self.peers(start_mode);
        let pod = blueprint.pod(name, start_mode, &peers, &uid(member));
        let mut pod = pod.map_err(ActError::Unsupported)?;
        if let Some(hash) = template_hash(&blueprint, name) {
            pod.annotations_mut().insert(names::POD_TEMPLATE_HASH_ANNOTATION.to_owned(), hash);
        }
        if let Some(trust) = self.trust {
            pod.annotations_mut()
                .insert(names::TRUST_BUNDLE_HASH_ANNOTATION.to_owned(), trust.hash.clone());
        }
        if let Some(source) = source {
            pod.annotations_mut().insert(names::POD_TEMPLATE_ANNOTATION.to_owned(), source);
        }
        let listed = self.state.etcd.known().and_then(|etcd| etcd.entry(name));
        if listed.is_some_and(|member| !member.is_learner) {
            pod.labels_mut().insert(names::ROLE_LABEL.to_owned(), names::VOTER.to_owned());
        }
        match self.objects.create(&pod).await {
            Err(error) if error.is_denied() => Err(ActError::PodRejected(error)),
            result => ignore_already_exists(result),
        }
    }

    /// The initial cluster of a pod: the initial members, or all members that etcd lists.
    fn peers(&self, start_mode: StartMode) -> Vec<Peer> {
        let peer = |name: &MemberName| (name.clone(), self.blueprint.peer_url(name));
        match (start_mode, self.state.etcd.known()) {
            (StartMode::Bootstrap, _) | (StartMode::Join | StartMode::Rejoin, None) => {
                self.state.bootstrap.members.iter().map(peer).collect()
            }
            (StartMode::Join | StartMode::Rejoin, Some(etcd)) => {
                // With the peer URLs of the member list: etcd refuses to join with others.
                let listed = |member: &ListedMember| {
                    let url = self.blueprint.peer_url_with(member.peer_scheme, &member.name);
                    (member.name.clone(), url)
                };
                etcd.members.iter().map(listed).collect()
            }
        }
    }

    /// Removes the scheduling gate from exactly the pod that was observed.
    async fn remove_scheduling_gate(&self, name: &MemberName) -> Result<(), ActError> {
        let not_found = || ActError::NotFound {
            action: "remove the scheduling gate of pod",
            name: name.clone(),
        };
        let pod = self.observed.pod(name).ok_or_else(not_found)?;
        let patch = json!({
            "metadata": { "uid": pod.uid(), "resourceVersion": pod.resource_version() },
            "spec": { "schedulingGates": [] },
        });
        let patched = self.objects.merge::<Pod>(self.blueprint.namespace, &name.0, &patch).await;
        patched.map(drop).map_err(ActError::Object)
    }

    /// Labels the pod of a voter, for the PodDisruptionBudget.
    pub(super) async fn label_voter(&self, name: &MemberName) -> Result<(), ObjectError> {
        let patch = json!({ "metadata": { "labels": { names::ROLE_LABEL: names::VOTER } } });
        match self.objects.merge::<Pod>(self.blueprint.namespace, &name.0, &patch).await {
            Ok(_) => Ok(()),
            Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn delete_pod(&self, name: &MemberName) -> Result<(), ActError> {
        self.delete(self.observed.pod(name)).await
    }

    /// Deletes the pod, the PVC and the EtcdMember of a member, in this order: a PVC without an
    /// EtcdMember would be adopted. The Secret is deleted with the EtcdMember.
    pub(super) async fn delete_member_objects(&self, name: &MemberName) -> Result<(), ActError> {
        self.delete(self.observed.pod(name)).await?;
        let pvc: Option<&PersistentVolumeClaim> =
            self.observed.pvc(name).filter(|pvc| self.observed.is_ours(pvc));
        self.delete(pvc).await?;
        self.delete(self.observed.member(name)).await
    }

    async fn delete<K: NamespacedResource>(&self, object: Option<&K>) -> Result<(), ActError> {
        let Some(object) = object.filter(|object| object.meta().deletion_timestamp.is_none())
        else {
            return Ok(());
        };
        self.objects.delete(object).await.map_err(ActError::Object)
    }
}

/// An object that exists was created by an earlier reconciliation whose response was lost.
fn ignore_already_exists<K>(result: Result<K, ObjectError>) -> Result<(), ActError> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(ActError::Object(error)),
    }
}
