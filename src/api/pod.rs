//! Pod fields with the names of Kubernetes: resources, tolerations, images, references.
//! They are declared here and not taken from the core API because its schema has no bounds, and an
//! unbounded list exceeds the cost limit of every CEL rule over it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod affinity;
pub mod quantity;
pub mod validated;

use std::collections::BTreeMap;

use crate::api::macros::{object, string_enum};
use crate::api::pod::quantity::Quantity;
use crate::api::strings::{AnnotationValue, LabelKey, LabelValue, ObjectName, Repository};

/// Labels by key.
pub type Labels = BTreeMap<String, LabelValue>;
/// Annotations by key.
pub type Annotations = BTreeMap<String, AnnotationValue>;
/// Quantities by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

object! {
    /// Resource requests and limits of a container.
    pub struct Resources {
        /// Resource requests, such as `cpu: 500m` and `memory: 1Gi`.
        #[schemars(extend("maxProperties" = 16))]
        requests: ResourceList,
        /// Resource limits. GOMEMLIMIT and GOMAXPROCS are derived from them.
        #[schemars(extend("maxProperties" = 16))]
        limits: ResourceList,
    }
}

string_enum! {
    /// Operator of a toleration.
    pub enum TolerationOperator {
        /// The value of the taint equals the value of the toleration.
        Equal = "Equal",
        /// Every value of the taint is tolerated.
        Exists = "Exists",
    }
}

string_enum! {
    /// Effect of a taint.
    pub enum TaintEffect {
        /// Pods that do not tolerate it are not scheduled.
        NoSchedule = "NoSchedule",
        /// Pods that do not tolerate it are scheduled elsewhere if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// Pods that do not tolerate it are evicted.
        NoExecute = "NoExecute",
    }
}

object! {
    /// Toleration of node taints.
    pub struct Toleration {
        /// Key of the taint. Default: all keys.
        key: LabelKey,
        /// Operator: `Equal` or `Exists`. Default: `Equal`.
        operator: TolerationOperator,
        /// Value of the taint, for `Equal`.
        value: LabelValue,
        /// Effect of the taint. Default: all effects.
        effect: TaintEffect,
        /// Seconds for which a `NoExecute` taint is tolerated. Default: forever.
        #[schemars(range(min = 0, max = 31_536_000))]
        toleration_seconds: i64,
    }
}

string_enum! {
    /// Pull policy of an image.
    pub enum PullPolicy {
        /// Before every start of a container.
        Always = "Always",
        /// Only if the node does not have it.
        IfNotPresent = "IfNotPresent",
        /// Never: the node must have it.
        Never = "Never",
    }
}

object! {
    /// Container image.
    pub struct Image {
        /// Image repository without a tag, such as `registry.example.com/team/name`. Default: that
        /// of the kind.
        repository: Repository,
        /// Pull policy of the image. Default: that of Kubernetes.
        pull_policy: PullPolicy,
        /// Image pull Secrets.
        #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        pull_secrets: Vec<LocalRef>,
    }
}

object! {
    /// Reference to an object in the same namespace.
    #[schemars(extend("required" = ["name"]))]
    pub struct LocalRef {
        /// Name of the object.
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
