//! What an object says of its cluster, and what holds of it.
//! Comes in: an EtcdCluster, as a watch or the API server told of it. Goes out: a spec that passed the checks, and a
//! blueprint. May touch: `api`, the clock. It asks nobody.

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::validated;
use crate::api::kinds;
use crate::api::validated::Validated;
use crate::api::validation::features::FeatureSet;
use crate::api::validation::{ValidationContext, ValidationResult};
use crate::clients::clock;
use crate::etcd_cluster::controller::Context;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::options::Measured;
use crate::etcd_cluster::rollback;
use crate::etcd_cluster::state::build::uid;

/// What an object says of its cluster.
pub(super) struct ValidatedCluster {
    name: String,
    namespace: String,
    uid: String,
    spec: Validated<validated::EtcdCluster>,
}

impl ValidatedCluster {
    pub(super) fn new(cluster: &EtcdCluster) -> Result<Self, ValidationResult> {
        Ok(Self {
            name: cluster.name_any(),
            namespace: cluster.namespace().unwrap_or_default(),
            uid: uid(cluster),
            spec: holds(cluster)?,
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

/// The spec that holds: what is asked for, or what worked before, if that was taken back.
fn holds(cluster: &EtcdCluster) -> Result<Validated<validated::EtcdCluster>, ValidationResult> {
    let asked = spec(&json!(cluster))?;
    let instead = rollback::effective_object(cluster).and_then(|it| spec(&it).ok());
    Ok(instead.unwrap_or(asked))
}

/// A spec that passes the checks.
pub(super) fn spec(object: &Value) -> Result<Validated<validated::EtcdCluster>, ValidationResult> {
    let facts = ValidationContext {
        now: clock::wall(),
        features: FeatureSet::CURRENT,
        request_version: kinds::ETCD_CLUSTER.hub().name,
    };
    Validated::read(object, &facts)
}
