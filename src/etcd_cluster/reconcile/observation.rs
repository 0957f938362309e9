//! What one reconciliation observes, what follows from it, and what is decided: the same for the
//! cached and the live round.

use std::sync::Arc;

use serde_json::json;

use super::Reconciler;
use super::certificate_scope::certificate_scope;
use crate::api::etcd_cluster::validated;
use crate::clients::{fault_injection, random};
use crate::etcd_cluster::controller::Context;
use crate::etcd_cluster::decide::decide;
use crate::etcd_cluster::heartbeat::{HeartbeatProfile, RoundTrip};
use crate::etcd_cluster::observe::etcd::EtcdProbe;
use crate::etcd_cluster::observe::objects::ClusterObjects;
use crate::etcd_cluster::observe::{self, MemberClients};
use crate::etcd_cluster::plan::Plan;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::options::{self, Measured};
use crate::etcd_cluster::rollback::{self, PreviousSpec};
use crate::etcd_cluster::state::build::StateInputs;
use crate::etcd_cluster::state::{MemberName, ObservedState};
use crate::etcd_cluster::tls::manager::CertificateScope;
use crate::etcd_cluster::tls::trust_hash::TrustHash;
use crate::etcd_cluster::transport::observed::Transport;
use crate::etcd_cluster::version::UpgradePath;

/// More names than new members are ever created at once.
const MAX_CANDIDATE_NAMES: usize = 8;

/// Everything that was read, and what follows from it without a decision.
pub(super) struct Observed {
    pub(super) objects: ClusterObjects,
    /// The hash of the trust bundle that pods should have.
    pub(super) trust: Option<TrustHash>,
    /// The template of members that run another one than the desired.
    pub(super) previous: Option<Arc<PreviousSpec>>,
    probe: EtcdProbe,
    names: Vec<MemberName>,
    transport: Transport,
    path: UpgradePath,
    /// The spec with the version of the next step of the upgrade path.
    spec: validated::EtcdCluster,
    measured: Measured,
}

/// One observation with its decision.
pub(super) struct Observation {
    pub(super) observed: Observed,
    pub(super) clients: MemberClients,
    pub(super) state: ObservedState,
    pub(super) plan: Plan,
}

impl Reconciler<'_> {
    /// Probes etcd, builds the observed state and decides.
    pub(super) async fn observe_and_decide(
        &self,
        objects: ClusterObjects,
        transport: Transport,
    ) -> Observation {
        let (probe, clients, round_trip) = self.probe(&objects, &transport).await;
        let desired = self.blueprint.spec;
        let path = UpgradePath::new(desired.version, &objects, &probe);
        let spec = validated::EtcdCluster { version: path.effective(), ..desired.clone() };
        let measured = Measured {
            heartbeat: self.heartbeat(&objects, round_trip),
            smallest_volume: options::smallest_volume(&objects),
        };
        let name = |suffix: String| MemberName(format!("{}-{suffix}", self.blueprint.name));
        let mut observed = Observed {
            objects,
            trust: self.context.certificates.trust_hash(self.blueprint.uid),
            previous: None,
            probe,
            names: random::name_suffixes(MAX_CANDIDATE_NAMES).into_iter().map(name).collect(),
            transport,
            path,
            spec,
            measured,
        };
        observed.previous = self.previous_spec(&observed);
        let state = self.inputs(&self.effective_blueprint(&observed), &observed).build();
        let plan = decide(&state);
        Observation { observed, clients, state, plan }
    }

    /// Probes etcd: members, authentication and, where the heartbeat depends on it, the peer RTT.
    async fn probe(
        &self,
        objects: &ClusterObjects,
        transport: &Transport,
    ) -> (EtcdProbe, MemberClients, Option<RoundTrip>) {
        let Context { certificates, auth, peer_rtt, .. } = self.context;
        let credentials = certificates.credentials(self.blueprint.uid, self.now);
        let (mut probe, clients) =
            observe::probe_etcd(objects, credentials.as_ref(), self.now).await;
        let blueprint = Blueprint { transport: Some(transport), ..*self.blueprint };
        let is_recognized = certificates.operator_cn_recognized(self.blueprint.uid);
        let observed = (&probe, &clients, is_recognized);
        probe.auth = auth.observe(&self.context.objects, &blueprint, observed, self.now).await;
        // An unreachable member would cost a second timeout.
        let is_measurable =
            !options::heartbeat_is_set(self.blueprint.spec) && probe.all_reachable();
        let round_trip = match probe.quorum.known().filter(|_| is_measurable) {
            Some(quorum) => peer_rtt.observe(objects, quorum, self.now).await,
            None => None,
        };
        (probe, clients, round_trip)
    }

    /// The heartbeat profile of the members where the spec sets none.
    fn heartbeat(
        &self,
        objects: &ClusterObjects,
        round_trip: Option<RoundTrip>,
    ) -> HeartbeatProfile {
        if options::heartbeat_is_set(self.blueprint.spec) {
            return HeartbeatProfile::ETCD_DEFAULT;
        }
        HeartbeatProfile::desired(objects.cluster.status.as_ref(), &objects.pods, round_trip)
    }

    /// The template of members that run another one than the desired, if there are any and it is
    /// valid.
    fn previous_spec(&self, observed: &Observed) -> Option<Arc<PreviousSpec>> {
        let Observed { objects, probe, .. } = observed;
        let blueprint = self.effective_blueprint(observed);
        let template = rollback::last_working_template(&blueprint, objects, probe)?;
        self.context.validation.previous_spec(&objects.cluster, template)
    }

    /// The desired objects at the next step of the upgrade path.
    pub(super) fn effective_blueprint<'b>(&'b self, observed: &'b Observed) -> Blueprint<'b> {
        let certificates = &self.context.certificates;
        Blueprint {
            spec: &observed.spec,
            requires_cluster_name: certificates.requires_cluster_name(self.blueprint.uid),
            measured: observed.measured,
            transport: Some(&observed.transport),
            ..*self.blueprint
        }
    }

    pub(super) fn inputs<'b>(
        &self,
        blueprint: &'b Blueprint<'b>,
        observed: &'b Observed,
    ) -> StateInputs<'b> {
        StateInputs {
            blueprint,
            objects: &observed.objects,
            probe: &observed.probe,
            path: observed.path,
            previous: observed.previous.as_deref(),
            now: self.now,
            observing_since: self.context.observing_since,
            names: observed.names.clone(),
            trust: observed.trust.as_ref(),
        }
    }

    pub(super) fn certificate_scope<'b>(
        &self,
        blueprint: &'b Blueprint<'b>,
        objects: &ClusterObjects,
    ) -> CertificateScope<'b> {
        certificate_scope(blueprint, objects, &self.context.auth, self.now)
    }

    pub(super) fn transport(&self, objects: &ClusterObjects) -> Transport {
        Transport::observe(self.blueprint.spec, objects, self.now)
    }

    /// Appends the observation to the trace of a test build.
    pub(super) fn trace(&self, live: bool, observation: &Observation) {
        let Observation { state, plan, .. } = observation;
        let cluster = self.blueprint.name;
        fault_injection::trace(
            || json!({ "cluster": cluster, "live": live, "state": state, "plan": plan }),
        );
    }
}
