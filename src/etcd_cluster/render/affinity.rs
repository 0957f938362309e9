//! Renders affinity and topology spread. Both are preferences: on a cluster with one node all
//! members must still be scheduled.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    Affinity, PodAffinityTerm, PodAntiAffinity, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Blueprint;

impl Blueprint<'_> {
    /// The affinity of the spec, or a preference for different nodes.
    pub(super) fn affinity(&self) -> Affinity {
        self.spec.pods.affinity.clone().unwrap_or_else(|| self.anti_affinity())
    }

    /// A preference for different zones, unless the spec sets an affinity.
    pub(super) fn spread(&self) -> Option<Vec<TopologySpreadConstraint>> {
        self.spec.pods.affinity.is_none().then(|| {
            vec![TopologySpreadConstraint {
                max_skew: 1,
                topology_key: "topology.kubernetes.io/zone".to_owned(),
                when_unsatisfiable: "ScheduleAnyway".to_owned(),
                label_selector: Some(self.label_selector()),
                ..TopologySpreadConstraint::default()
            }]
        })
    }

    fn anti_affinity(&self) -> Affinity {
        let preferred = WeightedPodAffinityTerm {
            weight: 100,
            pod_affinity_term: PodAffinityTerm {
                topology_key: "kubernetes.io/hostname".to_owned(),
                label_selector: Some(self.label_selector()),
                ..PodAffinityTerm::default()
            },
        };
        Affinity {
            pod_anti_affinity: Some(PodAntiAffinity {
                preferred_during_scheduling_ignored_during_execution: Some(vec![preferred]),
                ..PodAntiAffinity::default()
            }),
            ..Affinity::default()
        }
    }

    fn label_selector(&self) -> LabelSelector {
        LabelSelector { match_labels: Some(self.member_selector()), match_expressions: None }
    }
}
