//! The pod of a member.
//! Comes in: a blueprint, a member, what its pod is told, and who the members are. Goes out: a Pod that
//! the `restricted` pod security standard admits. May touch: `api`, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    LocalObjectReference, Pod, PodSchedulingGate, PodSecurityContext, PodSpec, SeccompProfile,
};
use kube::api::ObjectMeta;

use super::{Blueprint, NotInThisRelease, Peer};
use crate::api::names;
use crate::api::told::Told;
use crate::etcd_cluster::seen::Name;

/// Nobody in particular, and not root: the image names no user.
const USER: i64 = 65532;
/// etcd ends in a second or two, and lets another lead before.
const GRACE_SECONDS: i64 = 30;

impl Blueprint<'_> {
    /// The pod of a member.
    pub(crate) fn pod(
        &self,
        member: &Name,
        told: Told,
        peers: &[Peer],
        member_uid: &str,
    ) -> Result<Pod, NotInThisRelease> {
        let pods = &self.spec.pods;
        let secrets = self.spec.image.secrets.iter();
        let secrets: Vec<_> =
            secrets.map(|name| LocalObjectReference { name: name.clone() }).collect();
        let spec = PodSpec {
            hostname: Some(member.to_string()),
            subdomain: Some(self.name.to_owned()),
            restart_policy: Some("Always".to_owned()),
            scheduling_gates: gates(told),
            automount_service_account_token: Some(false),
            // A Service of the user's called `etcd` would become variables that look like its settings.
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(GRACE_SECONDS),
            security_context: Some(unprivileged()),
            image_pull_secrets: (!secrets.is_empty()).then_some(secrets),
            init_containers: Some(vec![self.install()]),
            containers: vec![self.etcd(member, told, peers)?],
            volumes: Some(self.volumes(member)),
            affinity: Some(self.affinity()),
            topology_spread_constraints: self.spread(),
            node_selector: (!pods.node_selector.is_empty()).then(|| pods.node_selector.clone()),
            tolerations: (!pods.tolerations.is_empty()).then(|| pods.tolerations.clone()),
            ..PodSpec::default()
        };
        Ok(Pod { metadata: self.pod_metadata(member, member_uid), spec: Some(spec), status: None })
    }

    fn pod_metadata(&self, member: &Name, member_uid: &str) -> ObjectMeta {
        let metadata = self.member_metadata(member.0.as_str(), member, member_uid);
        let pods = &self.spec.pods;
        let mut labels = pods.labels.clone();
        // A pod is told to be a voter's by nobody but the operator, once it is.
        labels.remove(names::ROLE_LABEL);
        labels.extend(metadata.labels.unwrap_or_default());
        ObjectMeta {
            labels: Some(labels),
            annotations: (!pods.annotations.is_empty()).then(|| pods.annotations.clone()),
            ..metadata
        }
    }
}

/// A pod that may found or join waits until it was written down that there is one.
fn gates(told: Told) -> Option<Vec<PodSchedulingGate>> {
    let waits = match told {
        Told::Found | Told::Join => true,
        Told::Return => false,
    };
    waits.then(|| vec![PodSchedulingGate { name: names::SCHEDULING_GATE.to_owned() }])
}

fn unprivileged() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        // Only a fresh volume is gone through file by file: a large one would take minutes each time.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        }),
        ..PodSecurityContext::default()
    }
}
