//! The ring as a Secret, and back.
//! Comes in: a Secret that anyone may have written to, or a ring. Goes out: a ring and what was
//! found broken, or the Secret to send, with the uid and the version that were read still in it.
//! May touch: `api::names` and k8s-openapi types. Pure. What others added to the Secret stays.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::ca_set::{CaSet, InvalidEntry};
use crate::api::names;
use crate::pki::ca::{Certificate, CertificateAuthority, ParseError, bundle};

const CURRENT: [&str; 2] = ["current.crt", "current.key"];
const NEXT: [&str; 2] = ["next.crt", "next.key"];
const PREVIOUS: &str = "previous.crt";
/// For people, and for tools that look for this name.
const BUNDLE: &str = "ca.crt";
/// When an authority was last promoted, by the wall clock of the leader that did it.
const PROMOTED_AT: &str = "quorate.appdelivery.cncf.io/promoted-at";
/// The API server takes no larger one.
const MAX_SECRET_BYTES: usize = 1024 * 1024;

/// What a Secret says, and what of it is broken.
pub(crate) fn read(secret: &Secret) -> (CaSet, Vec<InvalidEntry>) {
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().filter(|data| size(data) <= MAX_SECRET_BYTES).unwrap_or(&empty);
    let mut invalid = Vec::new();
    let mut loose = Vec::new();
    let current = authority(data, CURRENT, &mut invalid, &mut loose);
    let next = authority(data, NEXT, &mut invalid, &mut loose);
    let mut previous = data.get(PREVIOUS).map_or_else(Vec::new, |pem| Certificate::list(&pem.0));
    if data.get(PREVIOUS).is_some_and(|pem| pem.0 != bundle(&previous)) {
        invalid.push(InvalidEntry { place: PREVIOUS, why: ParseError::NotPem });
    }
    // A certificate without its key signs nothing more, and what it signed may be in use.
    previous.extend(loose);
    let notes = secret.metadata.annotations.as_ref();
    let promoted = notes.and_then(|notes| notes.get(PROMOTED_AT)?.parse().ok());
    let ca_set = CaSet { current, next, previous, promoted };
    if data.get(BUNDLE).is_none_or(|pem| pem.0 != ca_set.bundle()) {
        invalid.push(InvalidEntry { place: BUNDLE, why: ParseError::NotPem });
    }
    (ca_set, invalid)
}

/// The pair of this name, if it is whole. Of a broken one the certificate is kept, if it is one.
fn authority(
    data: &BTreeMap<String, ByteString>,
    [certificate, key]: [&'static str; 2],
    invalid: &mut Vec<InvalidEntry>,
    loose: &mut Vec<Certificate>,
) -> Option<CertificateAuthority> {
    let (found, with) = match (data.get(certificate), data.get(key)) {
        (None, None) => return None,
        (None, Some(_)) => {
            invalid.push(InvalidEntry { place: certificate, why: ParseError::Missing });
            return None;
        }
        (Some(found), None) => (found, Err(ParseError::Missing)),
        (Some(found), Some(key)) => (found, CertificateAuthority::read(&found.0, &key.0)),
    };
    let whole = with.map_err(|why| {
        let readable = Certificate::one(&found.0);
        let place = if readable.is_ok() { key } else { certificate };
        invalid.push(InvalidEntry { place, why });
        loose.extend(readable);
    });
    whole.ok()
}

fn size(data: &BTreeMap<String, ByteString>) -> usize {
    data.values().fold(0, |sum, value| sum.saturating_add(value.0.len()))
}

/// A Secret that does not exist yet.
pub(crate) fn created(namespace: &str, ca_set: &CaSet) -> Secret {
    let labels = [
        (names::NAME_LABEL, names::OPERATOR),
        (names::PART_OF_LABEL, names::OPERATOR),
        (names::COMPONENT_LABEL, "webhook"),
        (names::MANAGED_BY_LABEL, names::OPERATOR),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let metadata = ObjectMeta {
        name: Some(names::WEBHOOK_CA_SECRET.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels.into()),
        ..ObjectMeta::default()
    };
    let type_ = Some("Opaque".to_owned());
    replaced(&Secret { metadata, type_, ..Secret::default() }, ca_set)
}

/// The Secret with this ring in it.
pub(crate) fn replaced(read: &Secret, ca_set: &CaSet) -> Secret {
    let mut secret = read.clone();
    let data = secret.data.get_or_insert_default();
    if size(data) > MAX_SECRET_BYTES {
        data.clear();
    }
    let mut put = |key: &str, value: Option<Vec<u8>>| {
        match value {
            Some(value) => data.insert(key.to_owned(), ByteString(value)),
            None => data.remove(key),
        };
    };
    for ([certificate, key], authority) in [(CURRENT, &ca_set.current), (NEXT, &ca_set.next)] {
        put(certificate, authority.as_ref().map(|it| it.certificate.pem().into_bytes()));
        put(key, authority.as_ref().map(|it| it.key.pem().into_bytes()));
    }
    put(PREVIOUS, (!ca_set.previous.is_empty()).then(|| bundle(&ca_set.previous)));
    put(BUNDLE, Some(ca_set.bundle()));
    let notes = secret.metadata.annotations.get_or_insert_default();
    match ca_set.promoted {
        Some(time) => notes.insert(PROMOTED_AT.to_owned(), whole_seconds(time).to_string()),
        None => notes.remove(PROMOTED_AT),
    };
    secret
}

/// Rounded up, so that nothing is ever dropped early.
fn whole_seconds(time: Timestamp) -> Timestamp {
    let up = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Ceil);
    time.round(up).unwrap_or(time)
}

#[cfg(test)]
mod tests;
