//! Renders the `PodDisruptionBudget`, which keeps a quorum of voters while nodes are drained.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Blueprint;
use crate::etcd_cluster::state::quorum;

impl Blueprint<'_> {
    /// The budget that keeps a quorum of voters. While members are added or removed the number of
    /// voters differs from the desired one; the larger of the two counts.
    pub(crate) fn pdb(&self, voters: usize) -> PodDisruptionBudget {
        let desired = usize::from(self.spec.replicas);
        // A hibernated cluster needs no member.
        let min = if desired == 0 { 0 } else { quorum(voters.max(desired)) };
        PodDisruptionBudget {
            metadata: self.metadata(self.name),
            spec: Some(PodDisruptionBudgetSpec {
                min_available: Some(IntOrString::Int(i32::try_from(min).unwrap_or(i32::MAX))),
                // A voter that is not ready may be evicted as long as enough others are. If they
                // are not, the cluster waits for the one that is recovering.
                unhealthy_pod_eviction_policy: Some("IfHealthyBudget".to_owned()),
                selector: Some(LabelSelector {
                    match_labels: Some(self.voter_selector()),
                    match_expressions: None,
                }),
                ..PodDisruptionBudgetSpec::default()
            }),
            ..PodDisruptionBudget::default()
        }
    }
}
