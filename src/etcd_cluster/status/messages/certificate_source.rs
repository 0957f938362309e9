//! Reasons and messages about external certificates, and about a change of the trusted CAs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_rotation::waiting_for;
use crate::etcd_cluster::reason::{
    CA_RETIRING, CA_ROTATION_REQUESTED, CA_ROTATION_STARTED, CERTIFICATE_ERROR,
    CERTIFICATE_EXPIRING, INVALID_CERTIFICATE, OLD_CA_REMOVED, WAITING_FOR_CERTIFICATE,
};
use crate::etcd_cluster::tls::external_secret::CertificateProblem;
use crate::etcd_cluster::tls::report::CertificateReport;
use crate::etcd_cluster::tls::trust_change::{TrustChangeStatus, TrustPhase};

/// The reason of a problem of an external certificate.
pub(crate) const fn problem_reason(flaw: &CertificateProblem) -> &'static str {
    match flaw {
        CertificateProblem::SecretMissing(_)
        | CertificateProblem::Invalid(_)
        | CertificateProblem::TooManyCas(_)
        | CertificateProblem::ClientVerify { .. }
        | CertificateProblem::ServerVerify { .. }
        | CertificateProblem::CertManagerMissing => INVALID_CERTIFICATE,
        CertificateProblem::Expiring { .. } => CERTIFICATE_EXPIRING,
        CertificateProblem::NotIssuedYet(_) => WAITING_FOR_CERTIFICATE,
    }
}

/// The message of a problem of an external certificate.
pub(crate) fn problem_message(flaw: &CertificateProblem) -> String {
    if flaw.is_fatal() {
        format!("{flaw}. Members keep their current certificates")
    } else {
        flaw.to_string()
    }
}

/// The problem that a user must fix, if there is one: its reason and its message.
pub(crate) fn needs_user(certificates: &CertificateReport) -> Option<(&'static str, String)> {
    if let Some(stuck) = &certificates.stuck {
        return Some((CERTIFICATE_ERROR, stuck.to_string()));
    }
    let flaw = certificates.flaw.as_ref().filter(|it| it.needs_user());
    flaw.map(|it| (problem_reason(it), problem_message(it)))
}

/// The reason while the trusted CAs of a side change.
pub(crate) const fn change_reason(changing: &TrustChangeStatus) -> &'static str {
    match changing.stage {
        TrustPhase::Requested => CA_ROTATION_REQUESTED,
        TrustPhase::Distributing => CA_ROTATION_STARTED,
        TrustPhase::Retiring => CA_RETIRING,
        TrustPhase::Verifying => OLD_CA_REMOVED,
    }
}

/// The message while the trusted CAs of a side change.
pub(crate) fn change_message(changing: &TrustChangeStatus) -> String {
    let TrustChangeStatus { side, stage, waits } = changing;
    let (done, next) = match stage {
        TrustPhase::Requested => ("new CAs are requested", "adding them to the trust bundles"),
        TrustPhase::Distributing => {
            ("new CAs are in the trust bundles", "switching members to certificates issued by them")
        }
        TrustPhase::Retiring => (
            "members present certificates of the new CAs, the old CAs are still trusted",
            "removing the old CAs",
        ),
        TrustPhase::Verifying => ("old CAs are removed from the trust bundles", "finishing"),
    };
    format!("spec.tls.{}: {done}; {} before {next}", side.word(), waiting_for(waits))
}
