//! Conditions in the form of `metav1.Condition`, and the condition types of the operator.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::{object, string_enum, string_type};
use crate::api::strings::{Message, Time};

string_type! {
    /// Type of a condition.
    pub struct ConditionType;
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[A-Z][A-Za-z0-9]*$" }
}

string_type! {
    /// Reason of a condition, in CamelCase.
    pub struct Reason;
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[A-Z][A-Za-z0-9]*$" }
}

string_enum! {
    /// Status of a condition.
    pub enum ConditionStatus {
        /// The condition is true.
        True = "True",
        /// The condition is false.
        False = "False",
        /// The status could not be determined.
        Unknown = "Unknown",
    }
}

object! {
    /// Condition of the object.
    #[schemars(extend("required" = ["type", "status", "lastTransitionTime", "reason", "message"]))]
    pub struct Condition {
        /// Type of the condition, such as `Ready`.
        kind as "type": ConditionType,
        /// Status of the condition: `True`, `False` or `Unknown`.
        status: ConditionStatus,
        /// Generation of the spec that the condition refers to.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        observed_generation: i64,
        /// Time of the last change of `status`.
        last_transition_time: Time,
        /// Reason for the last transition, in CamelCase.
        reason: Reason,
        /// Human-readable message: current state, what is waited for, required user action.
        message: Message,
    }
}

/// The observed state matches the spec.
pub const READY: &str = "Ready";
/// The cluster serves reads and writes.
pub const AVAILABLE: &str = "Available";
/// A member is healthy.
pub const HEALTHY: &str = "Healthy";
/// A member is reachable.
pub const REACHABLE: &str = "Reachable";
/// A member is reachable and its linearizable reads fail, while those of a quorum succeed. Absent
/// otherwise.
pub const ISOLATED: &str = "Isolated";
/// The API server rejects the pod of a member. Absent otherwise.
pub const POD_REJECTED: &str = "PodRejected";
/// Members are being added or removed to reach the desired number.
pub const SCALING: &str = "Scaling";
/// Members are being recreated one at a time with another pod template.
pub const UPDATING: &str = "Updating";
/// A member is being recovered or replaced.
pub const RECOVERING: &str = "Recovering";
/// Certificates exist and are not close to expiry.
pub const CERTIFICATES_VALID: &str = "CertificatesValid";
/// Reconciliation is paused.
pub const PAUSED: &str = "Paused";
/// Reconciliation is in progress.
pub const RECONCILING: &str = "Reconciling";
/// User action is required.
pub const STALLED: &str = "Stalled";
/// Too few voters are available for a quorum.
pub const QUORUM_LOST: &str = "QuorumLost";

/// Reason while the operator has no permissions in the namespace of the object.
pub const NAMESPACE_NOT_GRANTED: &str = "NamespaceNotGranted";
