//! Enables and disables etcd's authentication. Users and roles are created before it is enabled, so
//! that neither the operator nor applications lose access.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{AuthState, EtcdState, ObservedState};

/// Disables authentication before members are changed: over plaintext etcd cannot identify the
/// operator by its certificate. An unknown state may be enabled.
pub(super) fn revert(_: &ObservedState, etcd: &EtcdState) -> Decision {
    let step = match etcd.auth {
        AuthState::EnabledUnexpectedly => Step::DisableAuth,
        AuthState::Unknown => Step::Wait,
        AuthState::InSync
        | AuthState::UsersMissing
        | AuthState::UsersReady
        | AuthState::RootPasswordMismatch
        | AuthState::RootPasswordMissing
        | AuthState::OperatorNotRecognized => return None,
    };
    Some((step, Reason::ConfiguringAuth))
}

pub(super) fn rule(_: &ObservedState, etcd: &EtcdState) -> Decision {
    let step = match etcd.auth {
        AuthState::UsersMissing | AuthState::RootPasswordMismatch => Step::EnsureUsers,
        AuthState::UsersReady => Step::EnableAuth,
        AuthState::InSync
        | AuthState::EnabledUnexpectedly
        | AuthState::Unknown
        | AuthState::RootPasswordMissing
        | AuthState::OperatorNotRecognized => {
            return None;
        }
    };
    etcd.all_voters_healthy().then_some((step, Reason::ConfiguringAuth))
}
