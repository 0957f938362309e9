//! Where members like to be.
//! Comes in: a blueprint. Goes out: an affinity and a spread. May touch: Kubernetes' own types; pure.
//! Wishes and not conditions: on a cluster of one node all members must still run.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    Affinity, PodAffinityTerm, PodAntiAffinity, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Blueprint;

impl Blueprint<'_> {
    /// What the user said, or nodes of their own.
    pub(super) fn affinity(&self) -> Affinity {
        self.spec.pods.affinity.clone().unwrap_or_else(|| self.apart())
    }

    /// Zones of their own, if the user said nothing about where members like to be.
    pub(super) fn spread(&self) -> Option<Vec<TopologySpreadConstraint>> {
        self.spec.pods.affinity.is_none().then(|| {
            vec![TopologySpreadConstraint {
                max_skew: 1,
                topology_key: "topology.kubernetes.io/zone".to_owned(),
                when_unsatisfiable: "ScheduleAnyway".to_owned(),
                label_selector: Some(self.members()),
                ..TopologySpreadConstraint::default()
            }]
        })
    }

    fn apart(&self) -> Affinity {
        let wish = WeightedPodAffinityTerm {
            weight: 100,
            pod_affinity_term: PodAffinityTerm {
                topology_key: "kubernetes.io/hostname".to_owned(),
                label_selector: Some(self.members()),
                ..PodAffinityTerm::default()
            },
        };
        Affinity {
            pod_anti_affinity: Some(PodAntiAffinity {
                preferred_during_scheduling_ignored_during_execution: Some(vec![wish]),
                ..PodAntiAffinity::default()
            }),
            ..Affinity::default()
        }
    }

    fn members(&self) -> LabelSelector {
        LabelSelector { match_labels: Some(self.selected()), match_expressions: None }
    }
}
