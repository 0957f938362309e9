//! The webhooks' own authorities and certificates.
//! Comes in: how long, for whom, and who signs. Goes out: new keys with their certificates.
//! May touch: `pki`, which asks for randomness.

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::leaf::{Leaf, span};
use super::lifetimes::{Lifetimes, later};
use crate::api::names;
use crate::pki::ca::{Certificate, CertificateAuthority};
use crate::pki::issue::{self, CertificateRequest, CertifiedKey as IssuedKey, Purpose, Validity};

pub(crate) use crate::pki::issue::IssueError;

const AUTHORITY: &str = "quorate webhook CA";

/// A new authority that is valid from now on.
pub(crate) fn authority(
    lifetimes: &Lifetimes,
    wall: Timestamp,
) -> Result<CertificateAuthority, IssueError> {
    let (from, until) = (lifetimes.from(wall), later(wall, lifetimes.ca));
    issue::self_signed_ca(AUTHORITY, Validity { from, until })
}

/// A certificate for the webhooks' Service in `namespace`, with a new key.
pub(crate) fn leaf(
    lifetimes: &Lifetimes,
    authority: &CertificateAuthority,
    namespace: &str,
    wall: Timestamp,
) -> Result<(Leaf, CertifiedKey), IssueError> {
    let (from, until) = span(lifetimes, &authority.certificate, wall);
    let [host, ..] = hosts(namespace);
    let wanted = CertificateRequest {
        name: &host,
        hosts: hosts(namespace).to_vec(),
        purpose: Purpose::Server,
        validity: Validity { from, until },
    };
    let IssuedKey { certificate, chain: _, key } = issue::sign(authority, &wanted)?;
    let Certificate { der, from, until } = certificate;
    let key = PrivateKeyDer::Pkcs8(key.pkcs8().to_vec().into());
    let shown = CertifiedKey::from_der(vec![CertificateDer::from(der)], key, &default_provider())
        .map_err(IssueError::Unusable)?;
    Ok((Leaf { authority: authority.certificate.clone(), signed: wall, from, until }, shown))
}

/// The names by which the Service can be called. The first one is what an API server asks for.
fn hosts(namespace: &str) -> [String; 3] {
    let service = names::WEBHOOK_SERVICE;
    [
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
    ]
}

#[cfg(test)]
mod tests;
