//! Reasons and messages about external certificates, and about a change of the trusted CAs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_rotation::waiting_message;
use crate::etcd_cluster::reason::{
    CA_RETIRING, CA_ROTATION_REQUESTED, CA_ROTATION_STARTED, CERTIFICATE_ERROR,
    CERTIFICATE_EXPIRING, INVALID_CERTIFICATE, OLD_CA_REMOVED, WAITING_FOR_CERTIFICATE,
};
use crate::etcd_cluster::tls::external_secret::CertificateProblem;
use crate::etcd_cluster::tls::report::CertificateReport;
use crate::etcd_cluster::tls::trust_change::{TrustChangeStatus, TrustPhase};

/// The reason of a problem of an external certificate.
pub(crate) const fn problem_reason(problem: &CertificateProblem) -> &'static str {
    match problem {
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
pub(crate) fn problem_message(problem: &CertificateProblem) -> String {
    if problem.is_fatal() {
        format!("{problem}. Members keep their current certificates")
    } else {
        problem.to_string()
    }
}

/// The problem that a user must fix, if there is one: its reason and its message.
pub(crate) fn needs_user(certificates: &CertificateReport) -> Option<(&'static str, String)> {
    if let Some(error) = &certificates.error {
        return Some((CERTIFICATE_ERROR, error.to_string()));
    }
    let problem = certificates.problem.as_ref().filter(|problem| problem.needs_user());
    problem.map(|problem| (problem_reason(problem), problem_message(problem)))
}

/// The reason while the trusted CAs of a side change.
pub(crate) const fn change_reason(change: &TrustChangeStatus) -> &'static str {
    match change.phase {
        TrustPhase::Requested => CA_ROTATION_REQUESTED,
        TrustPhase::Distributing => CA_ROTATION_STARTED,
        TrustPhase::Retiring => CA_RETIRING,
        TrustPhase::Verifying => OLD_CA_REMOVED,
    }
}

/// The message while the trusted CAs of a side change.
pub(crate) fn change_message(change: &TrustChangeStatus) -> String {
    let TrustChangeStatus { side, phase, waiting_for } = change;
    let (done, next) = match phase {
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
    format!("spec.tls.{}: {done}; {} before {next}", side.as_str(), waiting_message(waiting_for))
}
