//! Affinity with the fields of the core API, bounded; see `pod` for the reason.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::macros::{object, string_enum};
use crate::api::pod::Labels;
use crate::api::strings::{LabelKey, LabelValue, ObjectName};

object! {
    /// Affinity and anti-affinity of pods.
    pub struct Affinity {
        /// Affinity to nodes.
        node_affinity: NodeAffinity,
        /// Affinity to other pods.
        pod_affinity: PodAffinity,
        /// Anti-affinity to other pods.
        pod_anti_affinity: PodAffinity,
    }
}

object! {
    /// Affinity to nodes.
    pub struct NodeAffinity {
        /// Required nodes.
        required_during_scheduling_ignored_during_execution: NodeSelector,
        /// Preferred nodes, with weights.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        preferred_during_scheduling_ignored_during_execution: Vec<PreferredNodes>,
    }
}

object! {
    /// Nodes that match at least one of the terms.
    #[schemars(extend("required" = ["nodeSelectorTerms"]))]
    pub struct NodeSelector {
        /// Terms, combined by OR.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        node_selector_terms: Vec<NodeTerm>,
    }
}

object! {
    /// Preferred nodes with a weight.
    #[schemars(extend("required" = ["weight", "preference"]))]
    pub struct PreferredNodes {
        /// Weight, 1 to 100.
        #[schemars(range(min = 1, max = 100))]
        weight: i32,
        /// Node term.
        preference: NodeTerm,
    }
}

object! {
    /// Nodes that match all of the requirements.
    pub struct NodeTerm {
        /// Requirements on labels.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_expressions: Vec<NodeRequirement>,
        /// Requirements on fields, such as `metadata.name`.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_fields: Vec<NodeRequirement>,
    }
}

string_enum! {
    /// Operator of a node requirement.
    pub enum NodeOperator {
        /// The value is one of the values.
        In = "In",
        /// The value is none of the values.
        NotIn = "NotIn",
        /// The label exists.
        Exists = "Exists",
        /// The label does not exist.
        DoesNotExist = "DoesNotExist",
        /// The value is greater than the single value.
        Gt = "Gt",
        /// The value is less than the single value.
        Lt = "Lt",
    }
}

object! {
    /// Requirement on a node.
    #[schemars(extend("required" = ["key", "operator"]))]
    pub struct NodeRequirement {
        /// Label key or field name.
        key: LabelKey,
        /// Operator.
        operator: NodeOperator,
        /// Values of the operator.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        values: Vec<LabelValue>,
    }
}

object! {
    /// Affinity or anti-affinity to pods.
    pub struct PodAffinity {
        /// Required terms.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        required_during_scheduling_ignored_during_execution: Vec<PodTerm>,
        /// Preferred terms, with weights.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodTerm>,
    }
}

object! {
    /// Preferred term with a weight.
    #[schemars(extend("required" = ["weight", "podAffinityTerm"]))]
    pub struct WeightedPodTerm {
        /// Weight, 1 to 100.
        #[schemars(range(min = 1, max = 100))]
        weight: i32,
        /// Pod term.
        pod_affinity_term: PodTerm,
    }
}

object! {
    /// Set of pods and a topology.
    #[schemars(extend("required" = ["topologyKey"]))]
    pub struct PodTerm {
        /// Label selector of the pods.
        label_selector: LabelSelector,
        /// Namespaces of the pods. Default: the namespace of the pod itself.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        namespaces: Vec<ObjectName>,
        /// Namespaces of the pods, by label.
        namespace_selector: LabelSelector,
        /// Node label that defines the topology, such as `kubernetes.io/hostname`.
        topology_key: LabelKey,
        /// Label keys whose values must be equal to those of the pod itself.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_label_keys: Vec<LabelKey>,
        /// Label keys whose values must differ from those of the pod itself.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        mismatch_label_keys: Vec<LabelKey>,
    }
}

object! {
    /// Objects that match all labels and requirements.
    pub struct LabelSelector {
        /// Required labels.
        #[schemars(extend("maxProperties" = 32))]
        match_labels: Labels,
        /// Requirements on labels.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_expressions: Vec<LabelRequirement>,
    }
}

string_enum! {
    /// Operator of a label requirement.
    pub enum LabelOperator {
        /// The value is one of the values.
        In = "In",
        /// The value is none of the values.
        NotIn = "NotIn",
        /// The label exists.
        Exists = "Exists",
        /// The label does not exist.
        DoesNotExist = "DoesNotExist",
    }
}

object! {
    /// Requirement on a label.
    #[schemars(extend("required" = ["key", "operator"]))]
    pub struct LabelRequirement {
        /// Label key.
        key: LabelKey,
        /// Operator.
        operator: LabelOperator,
        /// Values of the operator.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        values: Vec<LabelValue>,
    }
}
