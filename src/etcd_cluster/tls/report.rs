//! The certificate facts that the status reports: only what happens or is wrong now. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_rotation::RotationStatus;
use super::external_secret::CertificateProblem;
use super::secrets_plan::CertificateError;
use super::trust_change::TrustChangeStatus;

/// What the status reports about certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateReport {
    /// Why no certificate can be issued.
    pub(crate) error: Option<CertificateError>,
    /// What the rotation of the managed CAs waits for.
    pub(crate) rotation: Option<RotationStatus>,
    /// What the trust change of a side waits for.
    pub(crate) trust_change: Option<TrustChangeStatus>,
    /// The problem of an external certificate.
    pub(crate) problem: Option<CertificateProblem>,
    /// Whether a side uses external certificates.
    pub(crate) is_external: bool,
}
