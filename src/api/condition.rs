//! Conditions: what is the case with an object, as every tool of the ecosystem reads it.
//! Comes in: nothing. Goes out: the block, and the words for its types.
//! May touch: `shape`, `texts`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::{object, string_enum, string_type};
use crate::api::strings::{Message, Time};

string_type! {
    /// The type of a condition.
    pub struct ConditionType;
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[A-Z][A-Za-z0-9]*$" }
}

string_type! {
    /// The reason of a condition: one word.
    pub struct Reason;
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[A-Z][A-Za-z0-9]*$" }
}

string_enum! {
    /// Whether a condition holds.
    pub enum ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// It could not be found out.
        Unknown = "Unknown",
    }
}

object! {
    /// One thing that is, is not, or may be the case.
    #[schemars(extend("required" = ["type", "status", "lastTransitionTime", "reason", "message"]))]
    pub struct Condition {
        /// What it is about, such as `Ready`.
        kind as "type": ConditionType,
        /// Whether it holds: `True`, `False`, or `Unknown`.
        status: ConditionStatus,
        /// The generation of the spec that this was said about.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        observed_generation: i64,
        /// Since when it is so.
        last_transition_time: Time,
        /// Why, in one word.
        reason: Reason,
        /// Why, in a sentence: what is waited for, since when, what comes next, what you can do.
        message: Message,
    }
}

/// All is as the spec says.
pub const READY: &str = "Ready";
/// The cluster serves reads and writes.
pub const AVAILABLE: &str = "Available";
/// A member answers as it should.
pub const HEALTHY: &str = "Healthy";
/// A member answers for itself.
pub const REACHABLE: &str = "Reachable";
/// A member answers for itself, and does not agree with the others, who agree. Said only while it is so.
pub const ISOLATED: &str = "Isolated";
/// The API server refuses a member's pod. Said only while it is so.
pub const POD_REJECTED: &str = "PodRejected";
/// Members come or go because another number is wanted.
pub const SCALING: &str = "Scaling";
/// Members are made anew, one after the other, because they should be different.
pub const UPDATING: &str = "Updating";
/// A member is being brought back or replaced.
pub const RECOVERING: &str = "Recovering";
/// Certificates are there, and good for a while.
pub const CERTIFICATES_VALID: &str = "CertificatesValid";
/// The operator leaves the object alone.
pub const PAUSED: &str = "Paused";
/// Work goes on.
pub const RECONCILING: &str = "Reconciling";
/// A person is needed.
pub const STALLED: &str = "Stalled";
/// Too few members are left to agree.
pub const QUORUM_LOST: &str = "QuorumLost";

/// The reason of an object that waits for its namespace to be granted to the operator.
pub const NAMESPACE_NOT_GRANTED: &str = "NamespaceNotGranted";
