//! Validates specs, and caches the results: validation is a pure function of the spec and the
//! release.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::RollbackStatus;
use crate::api::etcd_cluster::validated;
use crate::api::kinds;
use crate::api::validated::Validated;
use crate::api::validation::features::FeatureSet;
use crate::api::validation::{ValidationContext, ValidationResult};
use crate::clients::clock;
use crate::etcd_cluster::controller::Context;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::options::Measured;
use crate::etcd_cluster::rollback::{self, PreviousSpec};
use crate::etcd_cluster::state::build::uid;

/// The validated spec of a cluster: what the user asks for, or what was rolled back to.
#[derive(Debug)]
pub(super) struct ValidatedCluster {
    name: String,
    namespace: String,
    uid: String,
    spec: Validated<validated::EtcdCluster>,
}

impl ValidatedCluster {
    fn new(cluster: &EtcdCluster) -> Result<Self, ValidationResult> {
        let desired = validate(&json!(cluster))?;
        let rolled_back = rollback::effective_object(cluster);
        let rolled_back = rolled_back.and_then(|object| validate(&object).ok());
        Ok(Self {
            name: cluster.name_any(),
            namespace: cluster.namespace().unwrap_or_default(),
            uid: uid(cluster),
            spec: rolled_back.unwrap_or(desired),
        })
    }

    pub(super) fn blueprint<'a>(&'a self, context: &'a Context) -> Blueprint<'a> {
        Blueprint {
            name: &self.name,
            namespace: &self.namespace,
            uid: &self.uid,
            spec: &self.spec,
            transport: None,
            measured: Measured::default(),
            requires_cluster_name: false,
            agent_image: &context.agent_image,
            agent_pull_policy: Some("IfNotPresent"),
        }
    }
}

type Outcome = Result<Arc<ValidatedCluster>, Arc<ValidationResult>>;

/// What was validated of one cluster, and what that depends on.
struct Entry {
    generation: Option<i64>,
    rollback: Option<RollbackStatus>,
    outcome: Outcome,
    /// The last previous template, and its spec if that is valid.
    previous: Option<(String, Option<Arc<PreviousSpec>>)>,
}

/// The validation results of clusters, by uid and generation.
#[derive(Default)]
pub(in crate::etcd_cluster) struct ValidationCache(Mutex<HashMap<String, Entry>>);

impl ValidationCache {
    /// Validates a cluster.
    pub(super) fn validate(&self, cluster: &EtcdCluster) -> Outcome {
        let rollback = cluster.status.as_ref().and_then(|status| status.rollback.known());
        let generation = cluster.metadata.generation;
        if let Some(entry) = self.lock().get(&uid(cluster))
            && generation.is_some()
            && entry.generation == generation
            && entry.rollback.as_ref() == rollback
        {
            return entry.outcome.clone();
        }
        let outcome = ValidatedCluster::new(cluster).map(Arc::new).map_err(Arc::new);
        let rollback = rollback.cloned();
        let entry = Entry { generation, rollback, outcome: outcome.clone(), previous: None };
        self.lock().insert(uid(cluster), entry);
        outcome
    }

    /// The spec of members that run another template than the desired; none if it is invalid.
    pub(super) fn previous_spec(
        &self,
        cluster: &EtcdCluster,
        template: String,
    ) -> Option<Arc<PreviousSpec>> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&uid(cluster));
        if let Some((cached, previous)) = entry.as_ref().and_then(|entry| entry.previous.as_ref())
            && *cached == template
        {
            return previous.clone();
        }
        let object = rollback::with_template_fields(cluster, &template);
        let spec = object.and_then(|object| validate(&object).ok());
        let previous = spec.map(|spec| {
            Arc::new(PreviousSpec { template: template.clone(), spec: (*spec).clone() })
        });
        if let Some(entry) = entry {
            entry.previous = Some((template, previous.clone()));
        }
        previous
    }

    /// Evicts a deleted cluster.
    pub(in crate::etcd_cluster) fn evict(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn validate(object: &Value) -> Result<Validated<validated::EtcdCluster>, ValidationResult> {
    let context = ValidationContext {
        now: clock::wall(),
        features: FeatureSet::CURRENT,
        request_version: kinds::ETCD_CLUSTER.hub().name,
    };
    Validated::read(object, &context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(generation: i64, replicas: i64) -> EtcdCluster {
        serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1",
            "kind": "EtcdCluster",
            "metadata": {
                "name": "main", "namespace": "default", "uid": "u", "generation": generation,
            },
            "spec": { "replicas": replicas, "version": "3.6.16" },
        }))
        .unwrap()
    }

    #[test]
    fn result_is_cached_until_the_generation_changes() {
        let cache = ValidationCache::default();
        let first = cache.validate(&cluster(1, 3)).unwrap();
        let again = cache.validate(&cluster(1, 3)).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let changed = cache.validate(&cluster(2, 5)).unwrap();
        assert_eq!(changed.spec.replicas, 5);
        cache.evict("u");
        assert!(cache.lock().is_empty());
    }

    #[test]
    fn errors_are_cached_until_the_generation_changes() {
        let cache = ValidationCache::default();
        let first = cache.validate(&cluster(1, 99)).unwrap_err();
        assert!(Arc::ptr_eq(&first, &cache.validate(&cluster(1, 99)).unwrap_err()));
        assert!(cache.validate(&cluster(2, 3)).is_ok());
    }
}
