//! Whether etcd asks for users: whom it must know is made known first, and only then it asks.
//! Comes in: a formed cluster. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{AuthState, EtcdState, ObservedState};

/// What is not wanted any more ends before members are changed: whoever takes calls in the clear knows nobody. What is not known
/// may be the case.
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
