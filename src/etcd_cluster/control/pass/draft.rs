//! What an object says of its cluster, and what holds of it.
//! Comes in: an EtcdCluster, as a watch or the API server told of it. Goes out: a spec that passed the checks, and a
//! blueprint. May touch: `api`, the clock. It asks nobody.

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::check::release::Abilities;
use crate::api::check::{Facts, Verdict};
use crate::api::checked::Checked;
use crate::api::etcd_cluster::checked;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::kinds;
use crate::etcd_cluster::compose::uid;
use crate::etcd_cluster::control::Context;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::tune::Found;
use crate::etcd_cluster::undo;
use crate::ports::clock;

/// What an object says of its cluster.
pub(super) struct Draft {
    name: String,
    namespace: String,
    uid: String,
    spec: Checked<checked::EtcdCluster>,
}

impl Draft {
    pub(super) fn of(cluster: &EtcdCluster) -> Result<Self, Verdict> {
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
            doors: None,
            found: Found::default(),
            named: false,
            agent_image: &context.agent_image,
            agent_pull_policy: Some("IfNotPresent"),
        }
    }
}

/// The spec that holds: what is asked for, or what worked before, if that was taken back.
fn holds(cluster: &EtcdCluster) -> Result<Checked<checked::EtcdCluster>, Verdict> {
    let asked = spec(&json!(cluster))?;
    let instead = undo::instead(cluster).and_then(|it| spec(&it).ok());
    Ok(instead.unwrap_or(asked))
}

/// A spec that passes the checks.
pub(super) fn spec(object: &Value) -> Result<Checked<checked::EtcdCluster>, Verdict> {
    let facts = Facts {
        now: clock::wall(),
        can: Abilities::THIS_RELEASE,
        written_in: kinds::ETCD_CLUSTER.hub().name,
    };
    Checked::read(object, &facts)
}
