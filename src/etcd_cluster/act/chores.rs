//! The chores: safe at any time, in any order, and again.
//! Comes in: a chore. Goes out: nothing, or why it was not done. May touch: `ports`.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{Act, ActError};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::{EtcdMember, Intent};
use crate::api::names;
use crate::api::told::Told;
use crate::etcd_cluster::compose::{self, pod::recipe};
use crate::etcd_cluster::plan::{Chore, MadeOf};
use crate::etcd_cluster::render::{Blueprint, Peer};
use crate::etcd_cluster::report;
use crate::etcd_cluster::seen::{Name, Registered};
use crate::etcd_cluster::undo::{self, Before};
use crate::ports::call::Class;
use crate::ports::objects::{Kept, ObjectError};

impl Act<'_> {
    pub(super) async fn chore(&mut self, chore: &Chore) -> Result<(), ActError> {
        match chore {
            Chore::RecordFounders(names) => {
                let members: Vec<&str> = names.iter().map(|it| it.0.as_str()).collect();
                let founding = json!({ "members": members, "begun": false, "abandoned": false });
                self.record(json!({ "founding": founding })).await
            }
            Chore::RecordBegun => self.record_founding("begun").await,
            Chore::RecordAbandoned => self.record_founding("abandoned").await,
            Chore::RecordFormed(id) => {
                self.record(json!({ "clusterID": format!("{:x}", id.0) })).await
            }
            Chore::MakeFounder(name) => self.make_member(name, Intent::Bootstrap, false).await,
            Chore::Adopt(name) => self.make_member(name, Intent::Join, true).await,
            Chore::MakePod { member, told, of } => self.make_pod(member, *told, *of).await,
            Chore::RecordPod(name) => self.change_member(name, &json!({ "started": true })).await,
            Chore::LetGo(name) => self.let_go(name).await,
            Chore::ClearPod(name) | Chore::Sleep(name) => self.delete_pod(name).await,
            Chore::Scrap(name) => self.clear_away(name).await,
        }
    }

    /// Writes something down that is never decided twice, into exactly the object that was looked at.
    pub(super) async fn record(&mut self, change: Value) -> Result<(), ActError> {
        let body = report::with_record(&self.stock.cluster, &change);
        let (name, namespace) = (self.blueprint.name, self.blueprint.namespace);
        let written = self.objects.apply_status::<EtcdCluster>(namespace, name, &body).await;
        self.stock.cluster = written.map_err(ActError::Object)?;
        Ok(())
    }

    async fn record_founding(&mut self, what: &str) -> Result<(), ActError> {
        let status = self.stock.cluster.status.clone().unwrap_or_default();
        let mut founding = json!(status.founding);
        if let Value::Object(founding) = &mut founding {
            founding.insert(what.to_owned(), json!(true));
        }
        self.record(json!({ "founding": founding })).await
    }

    pub(super) async fn make_member(
        &self,
        name: &Name,
        intent: Intent,
        started: bool,
    ) -> Result<(), ActError> {
        if_not_there(self.objects.create(&self.blueprint.member(name, intent, started)).await)
    }

    /// Changes what is written down about a member, if it is still as it was looked at.
    pub(super) async fn change_member(&self, name: &Name, spec: &Value) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "write down something about", name: name.clone() };
        let member = self.stock.member(name).ok_or_else(gone)?;
        let patch = json!({
            "metadata": { "uid": member.uid(), "resourceVersion": member.resource_version() },
            "spec": spec,
        });
        let done =
            self.objects.merge::<EtcdMember>(self.blueprint.namespace, &name.0, &patch).await;
        done.map(drop).map_err(ActError::Object)
    }

    async fn make_pod(&self, name: &Name, told: Told, of: MadeOf) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "make the pod of", name: name.clone() };
        let member = self.stock.member(name).ok_or_else(gone)?;
        let (blueprint, made_of) = match of {
            MadeOf::Wanted => {
                let release = self.blueprint.spec.version;
                (*self.blueprint, undo::made_of(&self.stock.cluster, release))
            }
            MadeOf::Before => {
                let Before { text, spec } = self.before.ok_or_else(gone)?;
                (Blueprint { spec, ..*self.blueprint }, Some(text.clone()))
            }
        };
        // Only a first pod brings its volume along. Who comes back to one that is gone must not find another.
        let brings_volume = match told {
            Told::Found | Told::Join => true,
            Told::Return => false,
        };
        if let Some(volume) = blueprint.volume(name).filter(|_| brings_volume) {
            if_not_there(self.objects.create(&volume).await)?;
        }
        let peers = self.peers(told);
        let made = blueprint.pod(name, told, &peers, &compose::uid(member));
        let mut pod = made.map_err(ActError::CannotMake)?;
        if let Some(recipe) = recipe(&blueprint, name) {
            pod.annotations_mut().insert(names::RECIPE_ANNOTATION.to_owned(), recipe);
        }
        if let Some(trust) = self.trust {
            pod.annotations_mut().insert(names::TRUST_ANNOTATION.to_owned(), trust.word.clone());
        }
        if let Some(made_of) = made_of {
            pod.annotations_mut().insert(names::MADE_OF_ANNOTATION.to_owned(), made_of);
        }
        let listed = self.seen.etcd.known().and_then(|etcd| etcd.entry(name));
        if listed.is_some_and(|it| !it.learner) {
            pod.labels_mut().insert(names::ROLE_LABEL.to_owned(), names::VOTER.to_owned());
        }
        match self.objects.create(&pod).await {
            Err(error) if error.is_denied() => Err(ActError::PodRefused(error)),
            made => if_not_there(made),
        }
    }

    /// Whom a pod is told of: the founders, or everybody that etcd lists.
    fn peers(&self, told: Told) -> Vec<Peer> {
        let peer = |name: &Name| (name.clone(), self.blueprint.peer_url(name));
        match (told, self.seen.etcd.known()) {
            (Told::Found, _) | (Told::Join | Told::Return, None) => {
                self.seen.record.founders.iter().map(peer).collect()
            }
            (Told::Join | Told::Return, Some(etcd)) => {
                // As etcd lists them: who joins must say the same.
                let listed = |it: &Registered| {
                    (it.name.clone(), self.blueprint.peer_url_by(it.peer, &it.name))
                };
                etcd.list.iter().map(listed).collect()
            }
        }
    }

    /// Takes the gate away from exactly the pod that was looked at.
    async fn let_go(&self, name: &Name) -> Result<(), ActError> {
        let gone = || ActError::Gone { doing: "let go the pod of", name: name.clone() };
        let pod = self.stock.pod(name).ok_or_else(gone)?;
        let patch = json!({
            "metadata": { "uid": pod.uid(), "resourceVersion": pod.resource_version() },
            "spec": { "schedulingGates": [] },
        });
        let done = self.objects.merge::<Pod>(self.blueprint.namespace, &name.0, &patch).await;
        done.map(drop).map_err(ActError::Object)
    }

    /// Says on a pod that its member votes.
    pub(super) async fn mark(&self, name: &Name) -> Result<(), ObjectError> {
        let patch = json!({ "metadata": { "labels": { names::ROLE_LABEL: names::VOTER } } });
        let done = self.objects.merge::<Pod>(self.blueprint.namespace, &name.0, &patch).await;
        match done {
            Ok(_) => Ok(()),
            Err(error) if error.class() == Class::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn delete_pod(&self, name: &Name) -> Result<(), ActError> {
        self.delete(self.stock.pod(name)).await
    }

    /// Deletes what is left of a member: the volume first, because nobody would look for it without its
    /// EtcdMember; the pod and the Secret go with that.
    pub(super) async fn clear_away(&self, name: &Name) -> Result<(), ActError> {
        self.delete(self.stock.pod(name)).await?;
        let claim: Option<&PersistentVolumeClaim> =
            self.stock.claim(name).filter(|it| self.stock.is_ours(it));
        self.delete(claim).await?;
        self.delete(self.stock.member(name)).await
    }

    async fn delete<K: Kept>(&self, object: Option<&K>) -> Result<(), ActError> {
        let Some(object) = object.filter(|it| it.meta().deletion_timestamp.is_none()) else {
            return Ok(());
        };
        self.objects.delete(object).await.map_err(ActError::Object)
    }
}

/// What is there already was made by a pass before this one, whose end nobody saw.
fn if_not_there<K>(made: Result<K, ObjectError>) -> Result<(), ActError> {
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_there() => Ok(()),
        Err(error) => Err(ActError::Object(error)),
    }
}
