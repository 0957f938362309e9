//! Renders the pod of a member, which the `restricted` Pod Security Standard admits.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    LocalObjectReference, Pod, PodSchedulingGate, PodSecurityContext, PodSpec, SeccompProfile,
};
use kube::api::ObjectMeta;

use super::{Blueprint, Peer, RenderError};
use crate::api::names;
use crate::api::start_mode::StartMode;
use crate::etcd_cluster::state::MemberName;

/// Any user but root: the image sets none.
const USER: i64 = 65532;
/// etcd stops in a second or two, after it has transferred the leadership.
const GRACE_SECONDS: i64 = 30;

impl Blueprint<'_> {
    /// The pod of a member.
    pub(crate) fn pod(
        &self,
        member: &MemberName,
        start_mode: StartMode,
        peers: &[Peer],
        member_uid: &str,
    ) -> Result<Pod, RenderError> {
        let pods = &self.spec.pods;
        let secrets = self.spec.image.secrets.iter();
        let secrets: Vec<_> =
            secrets.map(|name| LocalObjectReference { name: name.clone() }).collect();
        let spec = PodSpec {
            hostname: Some(member.to_string()),
            subdomain: Some(self.name.to_owned()),
            restart_policy: Some("Always".to_owned()),
            scheduling_gates: scheduling_gates(start_mode),
            automount_service_account_token: Some(false),
            // A user's Service named `etcd` would become environment variables that etcd reads as
            // flags.
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(GRACE_SECONDS),
            security_context: Some(pod_security_context()),
            image_pull_secrets: (!secrets.is_empty()).then_some(secrets),
            init_containers: Some(vec![self.install_container()]),
            containers: vec![self.etcd_container(member, start_mode, peers)?],
            volumes: Some(self.volumes(member)),
            affinity: Some(self.affinity()),
            topology_spread_constraints: self.spread(),
            node_selector: (!pods.node_selector.is_empty()).then(|| pods.node_selector.clone()),
            tolerations: (!pods.tolerations.is_empty()).then(|| pods.tolerations.clone()),
            ..PodSpec::default()
        };
        Ok(Pod { metadata: self.pod_metadata(member, member_uid), spec: Some(spec), status: None })
    }

    fn pod_metadata(&self, member: &MemberName, member_uid: &str) -> ObjectMeta {
        let metadata = self.member_metadata(member.0.as_str(), member, member_uid);
        let pods = &self.spec.pods;
        let mut labels = pods.labels.clone();
        // Only the operator labels a pod as a voter, and only after the member was promoted.
        labels.remove(names::ROLE_LABEL);
        labels.extend(metadata.labels.unwrap_or_default());
        ObjectMeta {
            labels: Some(labels),
            annotations: (!pods.annotations.is_empty()).then(|| pods.annotations.clone()),
            ..metadata
        }
    }
}

/// A pod that may bootstrap or join is gated until it is recorded that the member may start.
fn scheduling_gates(start_mode: StartMode) -> Option<Vec<PodSchedulingGate>> {
    let is_gated = match start_mode {
        StartMode::Bootstrap | StartMode::Join => true,
        StartMode::Rejoin => false,
    };
    is_gated.then(|| vec![PodSchedulingGate { name: names::SCHEDULING_GATE.to_owned() }])
}

fn pod_security_context() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        // Change the group of files on a new volume only: on a large one it would take minutes each
        // time.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        }),
        ..PodSecurityContext::default()
    }
}
