//! What one reconciliation observes and derives from it: the effective version and pod template, the
//! transport, and the inputs of the observed state. Read by both the cached and the live round.

use serde_json::json;

use super::certificate_scope::certificate_scope;
use super::{CANDIDATE_NAMES, Observation, Reconciler};
use crate::api::etcd_cluster::validated;
use crate::clients::{fault_injection, random};
use crate::etcd_cluster::controller::Context;
use crate::etcd_cluster::heartbeat::HeartbeatProfile;
use crate::etcd_cluster::observe;
use crate::etcd_cluster::observe::objects::ClusterObjects;
use crate::etcd_cluster::plan::Plan;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::options::{self, Measured};
use crate::etcd_cluster::rollback::PreviousSpec;
use crate::etcd_cluster::state::build::StateInputs;
use crate::etcd_cluster::state::{MemberName, ObservedState};
use crate::etcd_cluster::tls::manager::CertificateScope;
use crate::etcd_cluster::transport::observed::Transport;
use crate::etcd_cluster::version::UpgradePath;

impl Reconciler<'_> {
    /// Which release the cluster is on its way to, and what is made of it now: that may be a step on the way.
    pub(super) fn effective_version(
        &self,
        observation: &Observation,
    ) -> (UpgradePath, validated::EtcdCluster) {
        let asked = self.blueprint.spec;
        let way = UpgradePath::new(asked.version, &observation.stock, &observation.heard);
        (way, validated::EtcdCluster { version: way.effective(), ..asked.clone() })
    }

    /// The pace that members should keep, where nobody has asked for one.
    pub(super) fn pace(&self, observation: &Observation) -> HeartbeatProfile {
        if options::heartbeat_is_set(self.blueprint.spec) {
            return HeartbeatProfile::ETCD_DEFAULT;
        }
        HeartbeatProfile::desired(
            observation.stock.cluster.status.as_ref(),
            &observation.stock.pods,
            observation.measured,
        )
    }

    /// What members are made of now.
    pub(super) fn effective_blueprint<'b>(
        &'b self,
        spec: &'b validated::EtcdCluster,
        doors: &'b Transport,
        observation: &Observation,
    ) -> Blueprint<'b> {
        let named = self.context.keyring.requires_cluster_name(self.blueprint.uid);
        let found = Measured {
            heartbeat: self.pace(observation),
            smallest_volume: options::smallest_volume(&observation.stock),
        };
        Blueprint {
            spec,
            requires_cluster_name: named,
            measured: found,
            transport: Some(doors),
            ..*self.blueprint
        }
    }

    /// A page for the diary, if one is kept.
    pub(super) fn trace(&self, asked: bool, seen: &ObservedState, plan: &Plan) {
        let cluster = self.blueprint.name;
        let page = json!({ "cluster": cluster, "live": asked, "state": seen, "plan": plan });
        fault_injection::trace(&page);
    }

    pub(super) fn certificate_scope<'b>(
        &self,
        blueprint: &'b Blueprint<'b>,
        stock: &ClusterObjects,
    ) -> CertificateScope<'b> {
        certificate_scope(blueprint, stock, &self.context.auth, self.now)
    }

    pub(super) fn doors(&self, stock: &ClusterObjects) -> Transport {
        Transport::observe(self.blueprint.spec, stock, self.now)
    }

    pub(super) async fn observe(&self, stock: ClusterObjects, doors: &Transport) -> Observation {
        let Context { keyring, auth, objects, peer_rtt, .. } = self.context;
        let credentials = keyring.credentials(self.blueprint.uid, self.now);
        let (mut heard, lines) = observe::probe_etcd(&stock, credentials.as_ref(), self.now).await;
        let blueprint = Blueprint { transport: Some(doors), ..*self.blueprint };
        let known = keyring.operator_cn_recognized(self.blueprint.uid);
        heard.auth = auth.ask(objects, &blueprint, (&heard, &lines, known), self.now).await;
        let named = |word: String| MemberName(format!("{}-{word}", self.blueprint.name));
        let free = random::name_suffixes(CANDIDATE_NAMES).into_iter().map(named).collect();
        let trust = keyring.trust_hash(self.blueprint.uid);
        // Who is silent must not be waited for once more.
        let may_ask = !options::heartbeat_is_set(self.blueprint.spec) && heard.all_reachable();
        let measured = match heard.quorum.known().filter(|_| may_ask) {
            Some(council) => peer_rtt.ask(&stock, council, self.now).await,
            None => None,
        };
        Observation { stock, heard, lines, names: free, trust, measured }
    }

    pub(super) fn inputs<'b>(
        &self,
        blueprint: &'b Blueprint<'b>,
        way: UpgradePath,
        before: Option<&'b PreviousSpec>,
        observation: &'b Observation,
    ) -> StateInputs<'b> {
        let Observation { stock, heard, names, trust, .. } = observation;
        let (now, since, trust) = (self.now, self.context.since, trust.as_ref());
        StateInputs {
            blueprint,
            objects: stock,
            probe: heard,
            path: way,
            previous: before,
            now,
            observing_since: since,
            names: names.clone(),
            trust,
        }
    }
}
