//! Issues the CAs and the serving certificates of the webhooks.

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::leaf::{Leaf, leaf_validity};
use super::lifetimes::{Lifetimes, later};
use crate::api::names;
use crate::pki::ca::{Certificate, CertificateAuthority};
use crate::pki::issue::{self, CertificateRequest, CertifiedKey as IssuedKey, Purpose, Validity};

pub(crate) use crate::pki::issue::IssueError;

const CA_NAME: &str = "quorate webhook CA";

/// A new CA that is valid from now on.
pub(crate) fn new_ca(
    lifetimes: &Lifetimes,
    wall: Timestamp,
) -> Result<CertificateAuthority, IssueError> {
    let (from, until) = (lifetimes.not_before(wall), later(wall, lifetimes.ca));
    issue::self_signed_ca(CA_NAME, Validity { from, until })
}

/// A leaf for the webhooks' Service in `namespace`, with a new key.
pub(crate) fn new_leaf(
    lifetimes: &Lifetimes,
    ca: &CertificateAuthority,
    namespace: &str,
    wall: Timestamp,
) -> Result<(Leaf, CertifiedKey), IssueError> {
    let (from, until) = leaf_validity(lifetimes, &ca.certificate, wall);
    let [host, ..] = hosts(namespace);
    let request = CertificateRequest {
        name: &host,
        hosts: hosts(namespace).to_vec(),
        purpose: Purpose::Server,
        validity: Validity { from, until },
    };
    let IssuedKey { certificate, chain: _, key } = issue::sign(ca, &request)?;
    let Certificate { der, from, until } = certificate;
    let key = PrivateKeyDer::Pkcs8(key.pkcs8().to_vec().into());
    let certified_key =
        CertifiedKey::from_der(vec![CertificateDer::from(der)], key, &default_provider())
            .map_err(IssueError::Load)?;
    Ok((Leaf { ca: ca.certificate.clone(), issued: wall, from, until }, certified_key))
}

/// The DNS names of the Service. The API server dials the first one.
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
