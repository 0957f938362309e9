//! External certificates: parses and verifies a user's or cert-manager's Secret. Pure.
//! Guarantees: a certificate is verified before any member gets it, with the same verifier that
//! handshakes use; errors contain nothing of the Secret's values.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::lifetimes::before;
use super::secret_keys::{APPLICATION, CA, InvalidSecret, KeyPairKeys, read_bundle};
use super::trust_bundle::{MAX_EXTERNAL_CAS, Side};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::ca::Certificate;
use crate::pki::leaf::{CertifiedKey, VerifyError};

/// The certificate that members and the operator present.
const MEMBER: KeyPairKeys = APPLICATION;
/// The optional client certificate for applications.
const CLIENT: KeyPairKeys = KeyPairKeys { certificate: "client.crt", key: "client.key" };
/// How long before its expiry a certificate is reported, at most a tenth of its lifetime.
const EXPIRY_WARNING: Duration = Duration::from_hours(24 * 30);

/// The content of an external Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExternalCertificate {
    pub(crate) key_pair: CertifiedKey,
    /// The CAs to trust.
    pub(crate) ca: Vec<Certificate>,
    /// The client certificate for applications.
    pub(crate) application: Option<CertifiedKey>,
}

/// What a certificate must be valid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// The required SANs; empty for a client-only certificate.
    pub(crate) hosts: Vec<String>,
    /// The SAN to suggest if one of them is missing.
    pub(crate) wildcard: Option<String>,
}

/// What is wrong with an external certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateProblem {
    #[error("Secret {0} not found")]
    SecretMissing(String),
    #[error(transparent)]
    Invalid(InvalidSecret),
    #[error("Secret {0}: ca.crt contains more than {MAX_EXTERNAL_CAS} CAs")]
    TooManyCas(String),
    /// Clients cannot present the certificate.
    #[error("Secret {secret}: {key} is not valid for a client: {error}")]
    ClientVerify { secret: String, key: &'static str, error: VerifyError },
    /// A server with this name cannot present the certificate.
    #[error("Secret {secret}: tls.crt is not valid for a server named {host}: {error}{advice}")]
    ServerVerify { secret: String, host: String, error: VerifyError, advice: String },
    /// The certificate is in use and about to expire.
    #[error("Secret {secret}: {key} expires at {until}: replace the certificate before")]
    Expiring { secret: String, key: &'static str, until: Timestamp },
    /// cert-manager has not issued the certificate yet.
    #[error("{0}")]
    NotIssuedYet(String),
    #[error("cert-manager is not installed: the API server does not serve the kind Certificate")]
    CertManagerMissing,
}

impl CertificateProblem {
    /// Whether the certificate cannot be used.
    pub(crate) const fn is_fatal(&self) -> bool {
        match self {
            Self::SecretMissing(_)
            | Self::Invalid(_)
            | Self::TooManyCas(_)
            | Self::ClientVerify { .. }
            | Self::ServerVerify { .. }
            | Self::CertManagerMissing
            | Self::NotIssuedYet(_) => true,
            Self::Expiring { .. } => false,
        }
    }

    /// Whether user action is required.
    pub(crate) const fn needs_user(&self) -> bool {
        self.is_fatal() && !matches!(self, Self::NotIssuedYet(_))
    }
}

impl Requirements {
    /// Requirements of one certificate for all members. Member names are not known in advance, so
    /// only a wildcard SAN matches them.
    pub(crate) fn for_all_members(blueprint: &Blueprint<'_>, side: Side) -> Self {
        let Blueprint { name, namespace, .. } = *blueprint;
        let member = names::member_host(&format!("{name}-member"), namespace);
        let other = match side {
            Side::Client => names::member_host(&names::client_service(name), namespace),
            // Members require the cluster's name of their peers, beside the dialed host.
            Side::Peer => names::member_host(name, namespace),
        };
        let wildcard = Some(format!("*.{namespace}.svc"));
        Self { hosts: vec![member, other], wildcard }
    }
}

impl ExternalCertificate {
    /// Parses and verifies a Secret; also returns a warning if a certificate is about to expire.
    pub(crate) fn read(
        secret: &Secret,
        requirements: &Requirements,
        now: Timestamp,
    ) -> Result<(Self, Option<CertificateProblem>), CertificateProblem> {
        let name = secret.name_any();
        let key_pair = MEMBER.read_key_pair(secret).map_err(CertificateProblem::Invalid)?;
        let mut ca = read_bundle(secret, CA).map_err(CertificateProblem::Invalid)?;
        ca.sort_by(|a, b| a.der.cmp(&b.der));
        ca.dedup();
        if ca.len() > MAX_EXTERNAL_CAS {
            return Err(CertificateProblem::TooManyCas(name));
        }
        let verify_client = |key_pair: &CertifiedKey, key| {
            let secret = name.clone();
            let rejected = |error| CertificateProblem::ClientVerify { secret, key, error };
            key_pair.verify_as_client(&ca, now).map_err(rejected)
        };
        // etcd presents its server certificate to itself, too, as a client.
        verify_client(&key_pair, MEMBER.certificate)?;
        for host in &requirements.hosts {
            key_pair.verify_as_server(&ca, host, now).map_err(|error| {
                CertificateProblem::ServerVerify {
                    secret: name.clone(),
                    host: host.clone(),
                    advice: advice(error, requirements.wildcard.as_deref()),
                    error,
                }
            })?;
        }
        let application = CLIENT.exists_in(secret).then(|| CLIENT.read_key_pair(secret));
        let application = application.transpose().map_err(CertificateProblem::Invalid)?;
        if let Some(application) = &application {
            verify_client(application, CLIENT.certificate)?;
        }
        let all =
            [(MEMBER.certificate, Some(&key_pair)), (CLIENT.certificate, application.as_ref())];
        let expiring = all.into_iter().find_map(|(key, key_pair)| {
            let certificate = &key_pair?.certificate;
            let (secret, until) = (name.clone(), certificate.until);
            let is_expiring = is_expiring(certificate, now);
            is_expiring.then_some(CertificateProblem::Expiring { secret, key, until })
        });
        Ok((Self { key_pair, ca, application }, expiring))
    }
}

fn advice(error: VerifyError, wildcard: Option<&str>) -> String {
    match (error, wildcard) {
        (VerifyError::HostMismatch, Some(wildcard)) => format!("; add the SAN {wildcard}"),
        (VerifyError::WrongUsage, _) => {
            "; add the usages `server auth` and `client auth`".to_owned()
        }
        (
            VerifyError::HostMismatch
            | VerifyError::Expired
            | VerifyError::NotYetValid
            | VerifyError::UnknownIssuer
            | VerifyError::Malformed,
            _,
        ) => String::new(),
    }
}

/// Whether the last tenth of the lifetime or the last month has begun, whichever is shorter.
fn is_expiring(certificate: &Certificate, now: Timestamp) -> bool {
    let Certificate { from, until, .. } = certificate;
    let lifetime = Duration::try_from(until.duration_since(*from)).unwrap_or_default();
    let warning = EXPIRY_WARNING.min(lifetime.checked_div(10).unwrap_or_default());
    before(*until, warning) <= now
}
