//! The words for pods that users know from Kubernetes: resources, tolerations, affinity.
//! Comes in: nothing. Goes out: blocks that mean what they mean in a Pod, with bounds.
//! May touch: `shape`, `texts`. They are written anew instead of taken from the core API because
//! its schema bounds nothing, and an unbounded list makes every rule over it too dear for CEL.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod affinity;
pub mod amount;
pub mod checked;

use std::collections::BTreeMap;

use crate::api::pod::amount::Amount;
use crate::api::shape::{choice, shape};
use crate::api::texts::{AnnotationValue, LabelKey, LabelValue, ObjectName, Repository};

/// Labels, by their keys.
pub type Labels = BTreeMap<String, LabelValue>;
/// Annotations, by their keys.
pub type Annotations = BTreeMap<String, AnnotationValue>;
/// Amounts of resources, by their names.
pub type Amounts = BTreeMap<String, Amount>;

shape! {
    /// What a container asks for, and what it may not exceed.
    pub struct Resources {
        /// What is set aside for the container, such as `cpu: 500m` and `memory: 1Gi`.
        #[schemars(extend("maxProperties" = 16))]
        requests: Amounts,
        /// What the container may not exceed. Go's memory limit and processor count follow these.
        #[schemars(extend("maxProperties" = 16))]
        limits: Amounts,
    }
}

choice! {
    /// How a toleration compares.
    pub enum TolerationOperator {
        /// The taint's value is the toleration's.
        Equal = "Equal",
        /// Any value of the taint is tolerated.
        Exists = "Exists",
    }
}

choice! {
    /// What a taint does to pods.
    pub enum TaintEffect {
        /// Pods that do not tolerate it are not scheduled.
        NoSchedule = "NoSchedule",
        /// Pods that do not tolerate it are scheduled elsewhere if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// Pods that do not tolerate it are evicted.
        NoExecute = "NoExecute",
    }
}

shape! {
    /// A taint of nodes that the pods put up with.
    pub struct Toleration {
        /// The taint's key; all keys if it is left out.
        key: LabelKey,
        /// How the taint is compared: `Equal` if it is left out, or `Exists`.
        operator: TolerationOperator,
        /// The taint's value, for `Equal`.
        value: LabelValue,
        /// The taint's effect; all effects if it is left out.
        effect: TaintEffect,
        /// For how long a `NoExecute` taint is put up with; for ever if it is left out.
        #[schemars(range(min = 0, max = 31_536_000))]
        toleration_seconds: i64,
    }
}

choice! {
    /// When an image is pulled.
    pub enum PullPolicy {
        /// Before every start of a container.
        Always = "Always",
        /// Only if the node does not have it.
        IfNotPresent = "IfNotPresent",
        /// Never: the node must have it.
        Never = "Never",
    }
}

shape! {
    /// Where an image comes from.
    pub struct Image {
        /// The repository, without a tag, such as `registry.example.com/team/name`.
        repository: Repository,
        /// When the image is pulled; Kubernetes' own rule if it is left out.
        pull_policy: PullPolicy,
        /// Secrets for the registry.
        #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        pull_secrets: Vec<LocalRef>,
    }
}

shape! {
    /// Another object in the same namespace, by its name.
    #[schemars(extend("required" = ["name"]))]
    pub struct LocalRef {
        /// The object's name. References never leave the namespace.
        name: ObjectName,
    }
}

impl LocalRef {
    /// A reference to `name`.
    #[must_use]
    pub fn to(name: impl Into<ObjectName>) -> Self {
        Self { name: crate::api::field::Field::Known(name.into()) }
    }
}
