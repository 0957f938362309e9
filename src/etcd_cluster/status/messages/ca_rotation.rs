//! Reasons and messages about the rotation of managed CAs.
//! Times are absolute and never a remaining duration, so that a status that waits is not rewritten.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::etcd_cluster::reason::{CA_RETIRING, CA_ROTATION_STARTED, OLD_CA_REMOVED, VALID};
use crate::etcd_cluster::tls::ca_rotation::RotationStatus;
use crate::etcd_cluster::tls::ca_set::RotationPhase;
use crate::etcd_cluster::tls::readiness::{TlsProbe, WaitingFor};

/// The reason of the current phase.
pub(crate) const fn rotation_reason(rotation: &RotationStatus) -> &'static str {
    match rotation.phase {
        RotationPhase::Idle => VALID,
        RotationPhase::Distributing(_) => CA_ROTATION_STARTED,
        RotationPhase::Retiring(_) => CA_RETIRING,
        RotationPhase::Verifying(_) => OLD_CA_REMOVED,
    }
}

/// The message of the current phase: what is done, what is waited for, and what follows.
pub(crate) fn rotation_message(rotation: &RotationStatus) -> String {
    let (done, next) = match rotation.phase {
        RotationPhase::Idle => ("no rotation is in progress", "starting one"),
        RotationPhase::Distributing(_) => ("new CA is in the trust bundles", "issuing from it"),
        RotationPhase::Retiring(_) => (
            "certificates are issued by the new CA, the old CA is still trusted",
            "removing the old CA",
        ),
        RotationPhase::Verifying(_) => ("old CA is removed from the trust bundles", "finishing"),
    };
    format!("CA rotation: {done}; {} before {next}", waiting_message(&rotation.waiting_for))
}

/// What is waited for.
pub(super) fn waiting_message(waiting_for: &WaitingFor) -> String {
    match waiting_for {
        WaitingFor::Unpause => "waiting for spec.paused to be false".to_owned(),
        WaitingFor::BundleSpace => {
            "waiting for space in the trust bundle, which contains too many \
                                    CAs (request the previous CAs again, let that change finish, \
                                    then request these)"
                .to_owned()
        }
        WaitingFor::Restart(names) => {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            format!("waiting for restart of {}", names.join(", "))
        }
        WaitingFor::Overlap(at) => {
            format!("waiting until {at} (applications must read their Secret again by then)")
        }
        WaitingFor::Probe(name, probe) => format!("waiting for {name} {}", probe_message(probe)),
    }
}

fn probe_message(probe: &TlsProbe) -> String {
    match probe {
        TlsProbe::Ok => "to be probed again".to_owned(),
        TlsProbe::RejectsNewCa => {
            "to be restarted, because the member rejects certificates of the new CA".to_owned()
        }
        TlsProbe::PresentsOldCert => {
            "to present the new certificate, which the kubelet updates within minutes".to_owned()
        }
        TlsProbe::TrustsOldCa => {
            "to be restarted, because the member still accepts certificates of the old CA"
                .to_owned()
        }
        TlsProbe::Unreachable(error) => format!("to become reachable for the operator ({error})"),
    }
}
