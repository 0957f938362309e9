//! Where pods like to be, in the words of a Pod.
//! Comes in: nothing. Goes out: the blocks of `affinity`, with bounds.
//! May touch: `shape`, `texts`. Field for field what the core API has; see `pod` for why it is here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::pod::Labels;
use crate::api::shape::{choice, shape};
use crate::api::texts::{LabelKey, LabelValue, ObjectName};

shape! {
    /// Where pods like, and do not like, to be.
    pub struct Affinity {
        /// By the labels of nodes.
        node_affinity: NodeAffinity,
        /// Near other pods.
        pod_affinity: PodAffinity,
        /// Far from other pods.
        pod_anti_affinity: PodAffinity,
    }
}

shape! {
    /// Which nodes a pod may run on, and which it likes.
    pub struct NodeAffinity {
        /// The nodes a pod may run on at all.
        required_during_scheduling_ignored_during_execution: NodeSelector,
        /// The nodes it likes, with weights.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        preferred_during_scheduling_ignored_during_execution: Vec<PreferredNodes>,
    }
}

shape! {
    /// Nodes: those that match one of the terms.
    #[schemars(extend("required" = ["nodeSelectorTerms"]))]
    pub struct NodeSelector {
        /// The terms, of which one must match.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        node_selector_terms: Vec<NodeTerm>,
    }
}

shape! {
    /// Nodes that are liked, and how much.
    #[schemars(extend("required" = ["weight", "preference"]))]
    pub struct PreferredNodes {
        /// How much, from 1 to 100.
        #[schemars(range(min = 1, max = 100))]
        weight: i32,
        /// Which nodes.
        preference: NodeTerm,
    }
}

shape! {
    /// Nodes that match all of these.
    pub struct NodeTerm {
        /// By labels.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_expressions: Vec<NodeRequirement>,
        /// By fields, such as `metadata.name`.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_fields: Vec<NodeRequirement>,
    }
}

choice! {
    /// How a node's label is compared.
    pub enum NodeOperator {
        /// Its value is one of the values.
        In = "In",
        /// Its value is none of the values.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is not there.
        DoesNotExist = "DoesNotExist",
        /// Its value is greater than the one value.
        Gt = "Gt",
        /// Its value is less than the one value.
        Lt = "Lt",
    }
}

shape! {
    /// One demand on a node.
    #[schemars(extend("required" = ["key", "operator"]))]
    pub struct NodeRequirement {
        /// The label or field.
        key: LabelKey,
        /// How it is compared.
        operator: NodeOperator,
        /// With what.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        values: Vec<LabelValue>,
    }
}

shape! {
    /// Which pods a pod must or likes to be near to, or far from.
    pub struct PodAffinity {
        /// What must hold.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        required_during_scheduling_ignored_during_execution: Vec<PodTerm>,
        /// What is liked, with weights.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodTerm>,
    }
}

shape! {
    /// What is liked, and how much.
    #[schemars(extend("required" = ["weight", "podAffinityTerm"]))]
    pub struct WeightedPodTerm {
        /// How much, from 1 to 100.
        #[schemars(range(min = 1, max = 100))]
        weight: i32,
        /// What is liked.
        pod_affinity_term: PodTerm,
    }
}

shape! {
    /// Pods, and what counts as near.
    #[schemars(extend("required" = ["topologyKey"]))]
    pub struct PodTerm {
        /// The pods.
        label_selector: LabelSelector,
        /// The namespaces in which to look; the pod's own if it is left out.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        namespaces: Vec<ObjectName>,
        /// The namespaces in which to look, by their labels.
        namespace_selector: LabelSelector,
        /// The label of nodes whose value says what is near, such as `kubernetes.io/hostname`.
        topology_key: LabelKey,
        /// Labels of the pod itself that must be equal for another to count.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_label_keys: Vec<LabelKey>,
        /// Labels of the pod itself that must differ for another to count.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        mismatch_label_keys: Vec<LabelKey>,
    }
}

shape! {
    /// Objects that have these labels and meet these demands.
    pub struct LabelSelector {
        /// Labels with their values.
        #[schemars(extend("maxProperties" = 32))]
        match_labels: Labels,
        /// Demands on labels.
        #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        match_expressions: Vec<LabelRequirement>,
    }
}

choice! {
    /// How a label is compared.
    pub enum LabelOperator {
        /// Its value is one of the values.
        In = "In",
        /// Its value is none of the values.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is not there.
        DoesNotExist = "DoesNotExist",
    }
}

shape! {
    /// One demand on a label.
    #[schemars(extend("required" = ["key", "operator"]))]
    pub struct LabelRequirement {
        /// The label.
        key: LabelKey,
        /// How it is compared.
        operator: LabelOperator,
        /// With what.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        values: Vec<LabelValue>,
    }
}
