//! The reasons of plans and of conditions. A reason of a plan has the same name in conditions,
//! Events, metrics and logs, and everything that depends on a reason alone stands in its row, so
//! that a new reason is entered once.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::requeue::{HEALTHY_INTERVAL, IDLE_INTERVAL, RETRY_DELAY, WAITING_INTERVAL};
use crate::api::condition::{
    AVAILABLE, CERTIFICATES_VALID, HEALTHY, ISOLATED, NAMESPACE_NOT_GRANTED, PAUSED, POD_REJECTED,
    QUORUM_LOST, REACHABLE, READY, RECONCILING, RECOVERING, SCALING, STALLED, UPDATING,
};

/// The type of the Events with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Part of normal operation.
    Normal,
    /// A fault, or a state that needs attention.
    Warning,
}

/// What ends a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// The operator, or a pod that starts.
    Automatic,
    /// The user: the condition Stalled is true until then.
    UserAction,
}

/// One row of the table below.
struct Row {
    name: &'static str,
    severity: Severity,
    resolution: Resolution,
    requeue_after: Duration,
    summary: &'static str,
}

/// `Variant: name on the wire, severity, resolution, requeue delay while no step is due, summary;`
macro_rules! reasons {
    ($($variant:ident: $name:literal, $severity:ident, $resolution:ident, $requeue:ident, $summary:literal;)+) => {
        /// The reason of a plan.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Reason {
            $(#[doc = $summary] $variant,)+
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            const fn row(self) -> Row {
                match self {
                    $(Self::$variant => Row {
                        name: $name,
                        severity: Severity::$severity,
                        resolution: Resolution::$resolution,
                        requeue_after: $requeue,
                        summary: $summary,
                    },)+
                }
            }
        }
    };
}

reasons! {
    Paused: "Paused", Normal, Automatic, IDLE_INTERVAL,
        "Reconciliation is paused";
    CreatingMembers: "CreatingMembers", Normal, Automatic, WAITING_INTERVAL,
        "Creating the initial members";
    Bootstrapping: "Bootstrapping", Normal, Automatic, WAITING_INTERVAL,
        "Waiting for a quorum of the initial members";
    BootstrapFailed: "BootstrapFailed", Warning, Automatic, WAITING_INTERVAL,
        "Bootstrap failed; recreating the initial members";
    RetainedVolumesExist: "RetainedVolumesExist", Warning, UserAction, IDLE_INTERVAL,
        "PVCs of a previous cluster with this name exist";
    PreviousClusterTerminating: "PreviousClusterTerminating", Normal, Automatic, WAITING_INTERVAL,
        "Waiting for a previous cluster with this name to terminate";
    Hibernated: "Hibernated", Normal, Automatic, IDLE_INTERVAL,
        "Cluster is hibernated";
    QuorumLost: "QuorumLost", Warning, Automatic, WAITING_INTERVAL,
        "No quorum of voters is reachable";
    ClusterIdMismatch: "ClusterIDMismatch", Warning, UserAction, WAITING_INTERVAL,
        "Cluster ID mismatch";
    UnknownMember: "UnknownMember", Warning, UserAction, WAITING_INTERVAL,
        "etcd reports unknown members";
    RemovingMember: "RemovingMember", Normal, Automatic, WAITING_INTERVAL,
        "Removing a member";
    RemovalBlocked: "RemovalBlocked", Warning, Automatic, WAITING_INTERVAL,
        "Member removal blocked: quorum would be lost";
    AddingMember: "AddingMember", Normal, Automatic, WAITING_INTERVAL,
        "Adding a member";
    LearnerFailed: "LearnerFailed", Warning, Automatic, WAITING_INTERVAL,
        "Learner failed to start or catch up";
    ReplacingMember: "ReplacingMember", Warning, Automatic, WAITING_INTERVAL,
        "Replacing a failed member";
    ReplacementBlocked: "ReplacementBlocked", Warning, Automatic, WAITING_INTERVAL,
        "Member replacement blocked: quorum would be lost";
    RollingUpdate: "RollingUpdate", Normal, Automatic, WAITING_INTERVAL,
        "Rolling update in progress";
    RollingUpdateBlocked: "RollingUpdateBlocked", Warning, Automatic, WAITING_INTERVAL,
        "Rolling update blocked";
    UpdateFailed: "UpdateFailed", Warning, Automatic, WAITING_INTERVAL,
        "Update failed on the first member; rolling back";
    RolledBack: "RolledBack", Warning, UserAction, HEALTHY_INTERVAL,
        "Update rolled back";
    TlsTransition: "TLSTransition", Normal, Automatic, RETRY_DELAY,
        "TLS transition in progress";
    ConfiguringAuth: "ConfiguringAuth", Normal, Automatic, RETRY_DELAY,
        "Configuring etcd authentication";
    RootPasswordMissing: "RootPasswordMissing", Warning, UserAction, HEALTHY_INTERVAL,
        "Root password is missing";
    PreparingVersionChange: "PreparingVersionChange", Normal, Automatic, WAITING_INTERVAL,
        "Preparing the version change";
    NoUpgradePath: "NoUpgradePath", Warning, UserAction, WAITING_INTERVAL,
        "No upgrade path to spec.version";
    ScalingUp: "ScalingUp", Normal, Automatic, WAITING_INTERVAL,
        "Scaling up";
    ScalingDown: "ScalingDown", Normal, Automatic, WAITING_INTERVAL,
        "Scaling down";
    Defragmenting: "Defragmenting", Normal, Automatic, WAITING_INTERVAL,
        "Defragmenting members one at a time";
    NoSpace: "NoSpace", Warning, Automatic, WAITING_INTERVAL,
        "NOSPACE alarm: reclaiming space";
    NoSpaceUnresolved: "NoSpaceUnresolved", Warning, UserAction, RETRY_DELAY,
        "NOSPACE alarm: no space can be reclaimed";
    CorruptMember: "CorruptMember", Warning, Automatic, RETRY_DELAY,
        "CORRUPT alarm: replacing corrupt members";
    CorruptionUnresolved: "CorruptionUnresolved", Warning, UserAction, HEALTHY_INTERVAL,
        "CORRUPT alarm: no majority of members has the same data";
    MemberUnhealthy: "MemberUnhealthy", Warning, Automatic, WAITING_INTERVAL,
        "Waiting for an unhealthy voter to recover";
    Healthy: "Healthy", Normal, Automatic, HEALTHY_INTERVAL,
        "Observed state matches the spec";
}

impl Reason {
    /// The name in conditions, Events, metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The type of its Events.
    #[must_use]
    pub const fn severity(self) -> Severity {
        self.row().severity
    }

    /// Whether nothing continues until the user acts.
    #[must_use]
    pub const fn needs_user(self) -> bool {
        matches!(self.row().resolution, Resolution::UserAction)
    }

    /// The delay until the next reconciliation while no step is due.
    pub(crate) const fn requeue_after(self) -> Duration {
        self.row().requeue_after
    }

    /// The reason in a short sentence.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.row().summary
    }

    /// Whether the observed state matches the spec.
    pub(crate) const fn is_in_sync(self) -> bool {
        matches!(self, Self::Healthy | Self::Hibernated)
    }
}

/// The condition types of a cluster.
pub const CLUSTER_CONDITIONS: &[&str] = &[
    READY,
    AVAILABLE,
    RECONCILING,
    STALLED,
    QUORUM_LOST,
    PAUSED,
    UPDATING,
    SCALING,
    RECOVERING,
    CERTIFICATES_VALID,
];

/// The condition types of a member.
pub const MEMBER_CONDITIONS: &[&str] = &[HEALTHY, REACHABLE, ISOLATED, POD_REJECTED];

/// `NAME = name on the wire;`
macro_rules! condition_reasons {
    ($($name:ident = $text:literal;)+) => {
        $(pub(crate) const $name: &str = $text;)+

        /// The reasons of conditions that are not reasons of plans.
        pub const CONDITION_REASONS: &[&str] =
            &[$($name,)+ NAMESPACE_NOT_GRANTED, REACHABLE, ISOLATED, POD_REJECTED];
    };
}

condition_reasons! {
    ALARM_ACTIVE = "AlarmActive";
    AT_DESIRED_SIZE = "AtDesiredSize";
    INVALID_SPEC = "InvalidSpec";
    NOT_BOOTSTRAPPED = "NotBootstrapped";
    NOT_CONFIRMED = "NotConfirmed";
    NOT_PAUSED = "NotPaused";
    NOT_RECOVERING = "NotRecovering";
    NOT_STALLED = "NotStalled";
    QUORUM_AVAILABLE = "QuorumAvailable";
    RECONCILE_ERROR = "ReconcileError";
    UP_TO_DATE = "UpToDate";

    VALID = "Valid";
    CERTIFICATE_ERROR = "CertificateError";
    WAITING_FOR_CERTIFICATE = "WaitingForCertificate";
    INVALID_CERTIFICATE = "InvalidCertificate";
    CERTIFICATE_EXPIRING = "CertificateExpiring";
    CA_ROTATION_REQUESTED = "CARotationRequested";
    CA_ROTATION_STARTED = "CARotationStarted";
    CA_RETIRING = "CARetiring";
    OLD_CA_REMOVED = "OldCARemoved";

    DATA_LOST = "DataLost";
    POD_GATED = "PodGated";
    POD_MISSING = "PodMissing";
    POD_TERMINATED = "PodTerminated";
    POD_TERMINATING = "PodTerminating";
    UNREACHABLE = "Unreachable";
}
