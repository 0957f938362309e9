//! The webhooks' own authorities and certificates.
//! Comes in: how long, for whom, and who signs. Goes out: new keys with their certificates.
//! May touch: `pki`, which asks for randomness.

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::lifetimes::{Lifetimes, later};
use super::renew::{Leaf, span};
use crate::api::names;
use crate::pki::authority::{Authority, Certificate};
use crate::pki::mint::{self, Life, Purpose, Signed, Wanted};

pub(crate) use crate::pki::mint::Unmade;

const AUTHORITY: &str = "quorate webhook CA";

/// A new authority that is valid from now on.
pub(crate) fn authority(lifetimes: &Lifetimes, wall: Timestamp) -> Result<Authority, Unmade> {
    let (from, until) = (lifetimes.from(wall), later(wall, lifetimes.ca));
    mint::authority(AUTHORITY, Life { from, until })
}

/// A certificate for the webhooks' Service in `namespace`, with a new key.
pub(crate) fn leaf(
    lifetimes: &Lifetimes,
    authority: &Authority,
    namespace: &str,
    wall: Timestamp,
) -> Result<(Leaf, CertifiedKey), Unmade> {
    let (from, until) = span(lifetimes, &authority.certificate, wall);
    let [host, ..] = hosts(namespace);
    let wanted = Wanted {
        name: &host,
        hosts: hosts(namespace).to_vec(),
        purpose: Purpose::Server,
        life: Life { from, until },
    };
    let Signed { certificate, chain: _, key } = mint::sign(authority, &wanted)?;
    let Certificate { der, from, until } = certificate;
    let key = PrivateKeyDer::Pkcs8(key.pkcs8().to_vec().into());
    let shown = CertifiedKey::from_der(vec![CertificateDer::from(der)], key, &default_provider())
        .map_err(Unmade::Unusable)?;
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
