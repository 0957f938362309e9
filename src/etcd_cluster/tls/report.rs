//! What is to be told of the certificates of a cluster.
//! Comes in: nothing; the keyring fills it in. Goes out: what the status is made of. May touch: nothing; pure.
//! All of it is about what happens or is wrong now; what is as it should be is not told.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_rotation::RotationStatus;
use super::external_secret::CertificateProblem;
use super::secrets_plan::CertificateError;
use super::trust_change::TrustChangeStatus;

/// What is to be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateReport {
    /// Why nothing can be signed.
    pub(crate) stuck: Option<CertificateError>,
    /// What the authorities wait for that take the place of others.
    pub(crate) turning: Option<RotationStatus>,
    /// What a side waits for that comes to rest on others.
    pub(crate) changing: Option<TrustChangeStatus>,
    /// What is wrong with certificates from elsewhere.
    pub(crate) flaw: Option<CertificateProblem>,
    /// Whether any come from elsewhere.
    pub(crate) is_given: bool,
}
