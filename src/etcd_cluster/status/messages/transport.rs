//! Messages about the schemes of peer and client URLs, and about etcd authentication.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::StatusInput;
use crate::api::names;
use crate::etcd_cluster::plan::Reason;
use crate::etcd_cluster::state::{AuthState, Reading};
use crate::etcd_cluster::transport::Scheme;

/// The progress of a TLS transition, or of a change of authentication.
pub(crate) fn message(input: &StatusInput<'_>) -> String {
    if input.plan.reason == Reason::TlsTransition { tls_transition(input) } else { auth(input) }
}

/// First the peer URLs, then the clients.
fn tls_transition(input: &StatusInput<'_>) -> String {
    let peers = input.state.desired.peer_scheme;
    let total = input.state.remaining().count();
    let done = input.state.remaining().filter(|member| member.peer_scheme == peers).count();
    if done < total {
        return format!("Switching peer URLs to {}: {done}/{total} members done", peers.as_str());
    }
    let transport = input.inputs.blueprint.transport;
    let advertised = transport.map_or(Scheme::Https, |transport| transport.advertised);
    let Some(until) = transport.and_then(|transport| transport.overlap_end) else {
        return format!(
            "Switching clients to {}: members accept both schemes; waiting for the client Secret to be updated",
            advertised.other().as_str(),
        );
    };
    format!(
        "Switching clients to {}: the client Secret is updated; members accept both schemes until {until}. Applications must read the Secret \
         again before then",
        advertised.as_str(),
    )
}

fn auth(input: &StatusInput<'_>) -> String {
    let secret = input.inputs.blueprint.spec.root_secret.as_deref().unwrap_or_default();
    let namespace = input.inputs.blueprint.namespace;
    let auth = match &input.state.etcd {
        Reading::Known(etcd) => etcd.auth,
        Reading::Unknown => AuthState::Unknown,
    };
    match auth {
        AuthState::RootPasswordMissing => format!(
            "Cannot enable etcd authentication: Secret {secret} does not exist or has no key `password`. Create the Secret: kubectl -n {namespace} \
             create secret generic {secret} --from-literal=password=..."
        ),
        AuthState::UsersMissing | AuthState::UsersReady | AuthState::InSync => {
            "Enabling etcd authentication: creating the users root, operator and applications first".to_owned()
        }
        AuthState::RootPasswordMismatch => {
            format!("Updating the password of the etcd user root from Secret {secret}")
        }
        AuthState::OperatorNotRecognized => format!(
            "Cannot enable etcd authentication: the operator's client certificate does not have the common name `{}`. A running CA rotation \
             fixes this automatically; an external issuer must keep the requested common name",
            names::OPERATOR,
        ),
        AuthState::EnabledUnexpectedly => "Disabling etcd authentication".to_owned(),
        AuthState::Unknown => {
            "Waiting for etcd to report whether authentication is enabled; members are not changed until then".to_owned()
        }
    }
}
