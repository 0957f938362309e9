//! Certificates from elsewhere: what a Secret of somebody else's gives, and what is wrong with it.
//! Comes in: a Secret that anyone may have written to, whom it is for, the time. Goes out: what it gives, or the first flaw.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure. It is looked through before anybody is given it, with the
//! same verifier that a handshake has; what is in it is never told.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::lifetimes::before;
use super::secret_keys::{APPLICATION, CA, InvalidSecret, KeyPairKeys, trusted};
use super::trust_bundle::{MAX_EXTERNAL_CAS, Side};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::ca::Certificate;
use crate::pki::leaf::{CertifiedKey, VerifyError};

/// What a certificate of somebody else's is shown by: whoever is called, and whoever calls.
const SHOWN: KeyPairKeys = APPLICATION;
/// What is handed on to applications, if it is there.
const HANDED_ON: KeyPairKeys = KeyPairKeys { certificate: "client.crt", key: "client.key" };
/// So long before its end a certificate is said to end, if that is not most of its life.
const EXPIRY_WARNING: Duration = Duration::from_hours(24 * 30);

/// What a Secret gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExternalCertificate {
    pub(crate) pair: CertifiedKey,
    /// Whom to trust.
    pub(crate) ca: Vec<Certificate>,
    /// What applications are handed.
    pub(crate) application: Option<CertifiedKey>,
}

/// What it must be good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// The hosts by which whoever shows it is called; nothing if nobody calls it.
    pub(crate) hosts: Vec<String>,
    /// What to ask for if one of them is missing.
    pub(crate) wildcard: Option<String>,
}

/// What is wrong with a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateProblem {
    /// There is none.
    #[error("Secret {0} is not there")]
    SecretMissing(String),
    /// Something of it cannot be read.
    #[error(transparent)]
    Invalid(InvalidSecret),
    /// It names too many.
    #[error("Secret {0}: ca.crt names more than {MAX_EXTERNAL_CAS} authorities, or one twice")]
    TooManyCas(String),
    /// Nobody would take it from whoever calls.
    #[error("Secret {secret}: {key} cannot be shown by a client: {why}")]
    ClientVerify { secret: String, key: &'static str, why: VerifyError },
    /// Nobody would take it from whoever is called so.
    #[error(
        "Secret {secret}: tls.crt cannot be shown by a server that is called {host}: {why}{advice}"
    )]
    ServerVerify { secret: String, host: String, why: VerifyError, advice: String },
    /// It is used, and soon over.
    #[error("Secret {secret}: {key} ends at {until}: put another there before")]
    Expiring { secret: String, key: &'static str, until: Timestamp },
    /// Somebody else has not made it yet.
    #[error("{0}")]
    NotIssuedYet(String),
    /// Nobody here knows what a Certificate is.
    #[error("cert-manager is not installed: the API server does not know its Certificates")]
    CertManagerMissing,
}

impl CertificateProblem {
    /// Whether nothing can be done with it.
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

    /// Whether it stays until somebody mends it.
    pub(crate) const fn needs_user(&self) -> bool {
        self.is_fatal() && !matches!(self, Self::NotIssuedYet(_))
    }
}

impl Requirements {
    /// What one certificate for all members of a cluster needs. Members' names are not known before they are there, so only
    /// a wildcard can name them.
    pub(crate) fn of_all(blueprint: &Blueprint<'_>, side: Side) -> Self {
        let Blueprint { name, namespace, .. } = *blueprint;
        let member = names::member_host(&format!("{name}-member"), namespace);
        let other = match side {
            Side::Client => names::member_host(&names::client_service(name), namespace),
            // What members ask of each other, beside the name by which they call.
            Side::Peer => names::member_host(name, namespace),
        };
        let wildcard = Some(format!("*.{namespace}.svc"));
        Self { hosts: vec![member, other], wildcard }
    }
}

impl ExternalCertificate {
    /// What a Secret gives, and whether it is soon over.
    pub(crate) fn read(
        secret: &Secret,
        needs: &Requirements,
        now: Timestamp,
    ) -> Result<(Self, Option<CertificateProblem>), CertificateProblem> {
        let name = secret.name_any();
        let pair = SHOWN.signed(secret).map_err(CertificateProblem::Invalid)?;
        let mut ca = trusted(secret, CA).map_err(CertificateProblem::Invalid)?;
        ca.sort_by(|a, b| a.der.cmp(&b.der));
        ca.dedup();
        if ca.len() > MAX_EXTERNAL_CAS {
            return Err(CertificateProblem::TooManyCas(name));
        }
        let calls = |it: &CertifiedKey, key| {
            let untaken = |why| CertificateProblem::ClientVerify { secret: name.clone(), key, why };
            it.verify_as_client(&ca, now).map_err(untaken)
        };
        // etcd shows it to itself, too, as a client.
        calls(&pair, SHOWN.certificate)?;
        for host in &needs.hosts {
            pair.verify_as_server(&ca, host, now).map_err(|why| {
                CertificateProblem::ServerVerify {
                    secret: name.clone(),
                    host: host.clone(),
                    advice: advice(why, needs.wildcard.as_deref()),
                    why,
                }
            })?;
        }
        let handed_on = HANDED_ON.is_there(secret).then(|| HANDED_ON.signed(secret));
        let application = handed_on.transpose().map_err(CertificateProblem::Invalid)?;
        if let Some(application) = &application {
            calls(application, HANDED_ON.certificate)?;
        }
        let all = [(SHOWN.certificate, Some(&pair)), (HANDED_ON.certificate, application.as_ref())];
        let ends = all.into_iter().find_map(|(key, it)| {
            let until = it?.certificate.until;
            let over = is_soon_over(&it?.certificate, now);
            over.then(|| CertificateProblem::Expiring { secret: name.clone(), key, until })
        });
        Ok((Self { pair, ca, application }, ends))
    }
}

fn advice(why: VerifyError, wildcard: Option<&str>) -> String {
    match (why, wildcard) {
        (VerifyError::HostMismatch, Some(wildcard)) => format!("; it must name {wildcard}"),
        (VerifyError::WrongUsage, _) => "; it needs `server auth` and `client auth`".to_owned(),
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

/// Whether the last tenth of its life has begun, or the last month.
fn is_soon_over(certificate: &Certificate, now: Timestamp) -> bool {
    let Certificate { from, until, .. } = certificate;
    let life = Duration::try_from(until.duration_since(*from)).unwrap_or_default();
    let warned = EXPIRY_WARNING.min(life.checked_div(10).unwrap_or_default());
    before(*until, warned) <= now
}
